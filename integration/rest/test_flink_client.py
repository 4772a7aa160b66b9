"""Apache Flink's own command line and dashboard, unmodified, pointed at a standalone cluster of yarnflow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from integration.conftest import ROOT, Commands, commands_in, wait_until
from integration.rest.client import Rest, Served
from integration.rest.conftest import DESKTOP
from integration.rest.flink import FlinkCommand, FlinkDashboard
from tests.patience import PATIENCE

PROGRAM: Final = """
from yarnflow.api import *
env = StreamExecutionEnvironment.get_execution_environment()
rows = env.from_source(RateSource(rows_per_second=20))
rows.key_by("value % 3 AS part").count().sink_to(FileSink.for_path({output!r}).format("parquet").build())
env.execute({name!r})
"""
NOBODY: Final = "f" * 32
#: what Flink's dashboard asks for and yarnflow answers with a reason instead
REFUSED: Final = {
    (501, "jobmanager/profiler"),
    (501, "taskmanagers/ID/profiler"),
    (501, "jobs/ID/vertices/ID/flamegraph"),
    (501, "jobs/ID/checkpoints/details/N/subtasks/ID"),
}


@dataclass
class Cluster:
    """A standalone cluster with one TaskManager of one slot."""

    commands: Commands
    directory: Path
    options: list[str]
    rest: Rest

    def get(self, path: str) -> Any:
        return self.rest.get(path)

    def submit(self, name: str, parallelism: int = 1) -> str:
        """Submit a job that never ends by itself; returns its id."""
        program = self.directory / f"{name}.py"
        program.write_text(PROGRAM.format(output=str(self.directory / f"{name}-out"), name=name))
        done = self.commands.run(
            "submit", "-d", "--target", "remote", *self.options, "-p", str(parallelism), program
        )
        assert done.process.returncode == 0, done.stderr
        found = re.search("JobID ([0-9a-f]{32})", done.stdout + done.stderr)
        assert found
        return found[1]

    def is_in(self, job: str, status: str) -> Callable[[], bool]:
        return lambda: self.get(f"/jobs/{job}/status")["status"] == status


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("flink")
    options = [
        f"-Dio.tmp.dirs={directory}", f"-Dexecution.checkpointing.savepoint-dir={directory}/savepoints",
    ]  # fmt: skip
    environment = {"YARNFLOW_PID_DIR": str(directory / "pids")}
    ports = ["-Djobmanager.rpc.port=0", "-Drest.bind-port=0"]
    with commands_in(directory) as commands:
        start = commands.start_command(
            [ROOT / "scripts/start-cluster.sh", "1", *options, *ports], environment
        )
        assert start.wait() == 0, start.stdout + start.stderr
        served = wait_until(lambda: Served.below(directory), "the JobManager to serve")
        yield Cluster(commands, directory, [*options, "-m", served.address], served.rest)
        stop = commands.start_command([ROOT / "scripts/stop-cluster.sh"], environment)
        assert stop.wait() == 0, stop.stdout + stop.stderr


@pytest.fixture
def flink(cluster: Cluster, tmp_path: Path) -> FlinkCommand:
    return FlinkCommand(tmp_path, cluster.rest)


@pytest.mark.drill
def test_a_job_is_driven_by_flinks_command_line(cluster: Cluster, flink: FlinkCommand) -> None:
    job = cluster.submit("counts")
    wait_until(cluster.is_in(job, "RUNNING"), "the job to run")
    # for slots that nobody has
    waiting = cluster.submit("waiting", parallelism=2)

    listed = flink("list")
    assert listed.status == 0, listed.text
    running, _, scheduled = listed.text.partition("Scheduled Jobs")
    assert f"{job} : counts (RUNNING)" in running
    assert f"{waiting} : waiting (CREATED)" in scheduled

    checkpoint = flink("checkpoint", job)
    assert checkpoint.status == 0 and f"for job {job} completed." in checkpoint.text

    taken = flink("savepoint", job)
    path = re.search(r"Savepoint completed. Path: (\S+)", taken.text)
    assert taken.status == 0 and path, taken.text
    savepoint = Path(path[1].removeprefix("file://"))
    assert savepoint.parent == cluster.directory / "savepoints" and (savepoint / "_metadata").exists()
    disposed = flink("savepoint", "--dispose", path[1])
    assert disposed.status == 0 and not savepoint.exists(), disposed.text
    again = flink("savepoint", "--dispose", path[1])
    # the reason is an exception of Java's that yarnflow has written
    assert again.status != 0 and "does not exist; check the path of the savepoint" in again.text

    stopped = flink("stop", "--savepointPath", cluster.directory / "last", job)
    path = re.search(r"Savepoint completed. Path: (\S+)", stopped.text)
    assert stopped.status == 0 and path, stopped.text
    assert Path(path[1].removeprefix("file://"), "_metadata").exists()
    # the savepoint is complete a moment before the job has ended
    wait_until(cluster.is_in(job, "FINISHED"), "the job to end")

    canceled = flink("cancel", waiting)
    assert canceled.status == 0 and f"Cancelled job {waiting}." in canceled.text
    wait_until(cluster.is_in(waiting, "CANCELED"), "the other job to end")
    ended = flink("cancel", job)
    assert ended.status != 0 and "already reached another terminal state (FINISHED)" in ended.text
    unknown = flink("savepoint", NOBODY)
    assert unknown.status != 0 and NOBODY in unknown.text
    assert f"{job} : counts (FINISHED)" in flink("list", "--all").text


@dataclass
class Visitor:
    """Somebody who looks at Flink's dashboard, and what went wrong meanwhile."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    refused: set[tuple[int, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        page, complaints = self.page, self.complaints
        page.set_default_timeout(PATIENCE.page_s * 1000)
        page.on("pageerror", lambda error: complaints.append(f"{error}"))
        page.on(
            "console",
            lambda said: (
                complaints.append(said.text)
                if said.type == "error" and "Failed to load resource" not in said.text
                else None
            ),
        )
        page.on("response", lambda response: self._see(response.status, response.url))

    def _see(self, status: int, url: str) -> None:
        path = url.removeprefix(self.url).partition("?")[0]
        if status >= 400:
            self.refused.add((status, _general(path)))

    def open(self, place: str, text: str) -> None:
        """Go to a place, and find a text there."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}#/{place}")
        expect(self.page.locator("body")).to_contain_text(text)
        self.page.wait_for_load_state("networkidle")
        assert self.page.url.partition("#/")[2].replace("%3A", ":") == place, "there is no such page"
        assert not self.complaints, f"{place}: {self.complaints}"


def _general(path: str) -> str:
    path = re.sub(r"(?<=details/)\d+", "N", path)
    return re.sub(r"[0-9a-f]{32}|(?<=taskmanagers/)[^/]+", "ID", path)


@pytest.fixture
def visitor(browser: Browser, cluster: Cluster, tmp_path: Path) -> Iterator[Visitor]:
    dashboard = FlinkDashboard(tmp_path, cluster.rest)
    context = browser.new_context(viewport=DESKTOP)
    yield Visitor(context.new_page(), dashboard.url)
    context.close()
    dashboard.stop()


def _pages_of_job(cluster: Cluster, kind: str, job: str) -> dict[str, str]:
    root = f"job/{kind}/{job}"
    (source, *_) = cluster.get(f"/jobs/{job}")["vertices"]
    vertex = f"{root}/overview/{source['id']}"
    return {
        f"{root}/overview": "Rate Source",
        f"{root}/exceptions": "No Root Exception",
        f"{root}/dataskew": "Data Skew",
        f"{root}/timeline": "Vertex TimeLine",
        f"{root}/checkpoints": "file://",
        f"{root}/configuration": "exponential-delay",
        f"{vertex}/detail": "Rate Source",
        f"{vertex}/subtasks": "127.0.0.1",
        f"{vertex}/taskmanagers": "127.0.0.1",
        f"{vertex}/watermarks": "Watermark",
        f"{vertex}/accumulators": "Accumulators",
        f"{vertex}/backpressure": "Backpressure Status",
        f"{vertex}/metrics": "Metrics",
        f"{vertex}/flamegraph": "takes no samples of threads",
    }


@pytest.mark.may_rerun("a browser draws when it likes")
@pytest.mark.drill
def test_every_page_of_flinks_dashboard_whose_data_exist(cluster: Cluster, visitor: Visitor) -> None:
    job = cluster.submit("shown")
    wait_until(cluster.is_in(job, "RUNNING"), "the job to run")
    trigger = cluster.rest.post(f"/jobs/{job}/checkpoints", {})["request-id"]
    wait_until(
        lambda: cluster.get(f"/jobs/{job}/checkpoints/{trigger}")["status"]["id"] == "COMPLETED",
        "a checkpoint",
    )
    (manager,) = [each["id"] for each in cluster.get("/taskmanagers")["taskmanagers"]]
    root = f"task-manager/{manager}"
    pages = {
        "overview": "shown",
        "job/running": "shown",
        "application/running": "shown",
        "task-manager": manager,
        f"{root}/metrics": "Managed Memory",
        f"{root}/logs": "Started executor",
        f"{root}/stdout": "Stdout",
        f"{root}/log-list": "taskmanager",
        f"{root}/thread-dump": "MainThread",
        f"{root}/profiler": "has no built-in profiler",
        "job-manager/metrics": "JVM",
        "job-manager/config": "execution.checkpointing.savepoint-dir",
        "job-manager/logs": "Job shown",
        "job-manager/stdout": "Stdout",
        "job-manager/log": "jobmanager",
        "job-manager/thread-dump": "MainThread",
        "job-manager/profiler": "has no built-in profiler",
    }
    for place, text in {**pages, **_pages_of_job(cluster, "running", job)}.items():
        visitor.open(place, text)

    uploaded = cluster.directory / "uploaded.py"
    uploaded.write_text(PROGRAM.format(output=str(cluster.directory / "uploaded-out"), name="uploaded"))
    visitor.open("submit", "Entry Class")
    visitor.page.locator("input[type=file]").set_input_files(uploaded)
    expect(visitor.page.get_by_text("uploaded.py")).to_be_visible()

    visitor.open(f"job/running/{job}/overview", "Rate Source")
    visitor.page.get_by_text("Cancel Job").click()
    visitor.page.get_by_role("button", name="Yes").click()
    wait_until(cluster.is_in(job, "CANCELED"), "the job to be canceled")
    ended = {"job/completed": "shown", "application/completed": "shown"}
    for place, text in {**ended, **_pages_of_job(cluster, "completed", job)}.items():
        visitor.open(place, text)
    assert visitor.refused <= REFUSED
