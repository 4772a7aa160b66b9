"""The dashboard in a real browser, over a cluster whose job reads, keeps state and writes."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect

from integration.conftest import Commands, Started, commands_in, wait_until
from integration.processes import JOB_MANAGER, processes
from integration.rest.client import Served
from integration.rest.conftest import Reader, tab_to, violations
from integration.servers import free_port
from tests.patience import PATIENCE

pytestmark = pytest.mark.may_rerun("a browser draws when it likes")

#: columns: starts without Python workers
COUNTS: Final = """
from yarnflow.api import RateSource, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
rows = env.from_source(RateSource(rows_per_second=20)).name("numbers")
rows.key_by("value % 3 AS part").count().name("per part").print()
env.execute("counts")
"""
CLICKS: Final = """
from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows
from yarnflow.api import RateSource

class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]

CLICK = Types.TUPLE([Types.STRING(), Types.LONG()])
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
rows = env.from_source(RateSource(rows_per_second=10)).name("clicks")
clicks = rows.map(lambda row: (f"page-{row[1] % 3}", int(row[0].timestamp() * 1000)), CLICK).name("parse")
stamped = clicks.assign_timestamps_and_watermarks(
    WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(Stamp())
)
keyed = stamped.key_by(lambda click: click[0], Types.STRING())
windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(1)))
windows.reduce(lambda a, b: (a[0], max(a[1], b[1]))).name("newest per page").print()
env.execute("clicks")
"""
FAILING: Final = """
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

def parse(text):
    return int(text)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
env.from_collection(["1", "NA"], Types.STRING()).map(parse, Types.INT()).print()
env.execute("import")
"""
SCRIPT: Final = """
from pyspark.sql import SparkSession
from pyspark.sql.functions import window

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
counts = rows.withWatermark("timestamp", "1 second").groupBy(window("timestamp", "2 seconds")).count()
counts.writeStream.format("console").outputMode("append").queryName("rates").start().awaitTermination()
"""
#: pages of a job that runs → what stands there
OF_A_JOB: Final = {
    "": "newest per page",
    "/queries": "Time of the last batch",
    "/timeline": "RUNNING",
    "/exceptions": "Nothing has failed.",
    "/checkpoints": "Latest completed",
    "/checkpoints/history": "COMPLETED",
    "/checkpoints/summary": "99.9 %",
    "/checkpoints/configuration": "exactly once",
    "/metrics": "secondsSinceLastCommit",
    "/configuration": "exponential-delay",
}
OF_A_VERTEX: Final = {
    "": "RUNNING",
    "/metrics": "busyTimeMsPerSecond",
    "/backpressure": "Held back",
    "/watermarks": "Behind",
    "/taskmanagers": "RUNNING",
    "/accumulators": "The program has none.",
}
OF_A_TASK_MANAGER: Final = {
    "": "Python workers",
    "/metrics": "Status.JVM.Memory.Resident",
    "/logs": "taskmanager",
    "/stdout": "Follow the end",
    "/threads": "MainThread",
}
OF_THE_JOB_MANAGER: Final = {
    "": "rest.port",
    "/leadership": "",
    "/environment": "CPython",
    "/metrics": "Status.Python.Memory.Resident",
    "/logs": "jobmanager",
    "/stdout": "Follow the end",
    "/threads": "MainThread",
}


@dataclass
class Cluster:
    """A JobManager and a TaskManager, which the test may kill."""

    commands: Commands
    directory: Path
    port: int
    options: list[str]
    client_options: list[str]
    job_manager: Started | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/"

    @property
    def link(self) -> str:
        """A link to the dashboard by which a browser may change something."""
        told = self.run("dashboard")
        assert told.process.returncode == 0, told.stderr
        return told.stdout.strip()

    def get(self, path: str) -> Any:
        served = wait_until(lambda: Served.below(self.directory), "the JobManager's tokens")
        return served.rest.get(f"/{path}")

    def start_job_manager(self) -> Started:
        """None runs."""
        started = self.job_manager = self.commands.start("jobmanager", *self.options)
        wait_until(lambda: "serves at" in started.stdout, "the JobManager")
        return started

    def run(self, verb: str, *arguments: str | Path) -> Started:
        """Run a verb against the cluster to its end."""
        return self.commands.run(verb, "--target", "remote", *self.client_options, *arguments)

    def submit(self, name: str, program: str) -> str:
        """Id of a job of a program."""
        path = self.directory / name
        path.write_text(program)
        done = self.run(
            "submit",
            "-d",
            f"-Dexecution.checkpointing.savepoint-dir={(self.directory / 'savepoints').as_uri()}",
            "-Dexecution.checkpointing.interval=2 s",
            path,
        )
        assert done.process.returncode == 0, done.stderr
        found = re.search(r"[0-9a-f]{32}", done.stdout + done.stderr)
        assert found
        return found[0]

    def vertices(self, job_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"jobs/{job_id}")["vertices"]
        return found

    def await_records(self, job_id: str) -> None:
        """Wait until records have gone through all of a job."""
        wait_until(
            lambda: all(
                vertex["metrics"]["write-records"] > 0 for vertex in (self.vertices(job_id) or [{}])
            ),
            "records of all vertices",
            pause_s=1.0,
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("dashboard")
    port = free_port()
    client_options = [f"-Djobmanager.rpc.port={free_port()}", f"-Dio.tmp.dirs={directory}"]
    options = [
        *client_options,
        f"-Drest.port={port}",
        "-Dmetrics.fetcher.update-interval=1 s",
        "-Dweb.refresh-interval=1000",
        "-Dtaskmanager.numberOfTaskSlots=2",
    ]
    with commands_in(directory) as commands:
        made = Cluster(commands, directory, port, options, client_options)
        made.start_job_manager()
        commands.start("taskmanager", *options)
        wait_until(lambda: _has_slots(made), "the TaskManager")
        yield made


def _slow_ms() -> float:
    """Return how long a job may take to start, or a savepoint to be taken."""
    return PATIENCE.condition_s * 1000


def _has_slots(cluster: Cluster) -> bool:
    try:
        return bool(cluster.get("overview")["slots-total"])
    except OSError:
        return False


def _number(text: str) -> float:
    """What is shown, also as "≥ 12" while a part has not been told; -1 for "–", of which nothing has been."""
    found = re.search(r"\d[\d,.]*k?", text)
    return float(found[0].replace(",", "").replace("k", "e3")) if found else -1.0


def _grows(locator: Locator) -> None:
    """Wait until a number that is shown has grown, without anything being done."""
    found: list[float] = []

    def is_told() -> bool:
        # kept, as the next look may see another one
        found.append(_number(locator.inner_text()))
        return found[-1] >= 0

    wait_until(is_told, "a number")
    before = found[-1]
    wait_until(lambda: _number(locator.inner_text()) > before, f"more than {before}")


@pytest.mark.gate
def test_job_is_watched_and_stopped_by_keyboard(cluster: Cluster, reader: Reader) -> None:
    job_id = cluster.submit("counts.py", COUNTS)
    reader.sign_in(cluster.link)
    page = reader.open(cluster.url, "overview")
    expect(page.get_by_role("link", name="counts")).to_be_visible()
    tab_to(page, "counts")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("counts")
    expect(page.locator("h1 + .badge")).to_have_text("RUNNING", timeout=_slow_ms())
    boxes = page.locator(".graph a.vertex")
    expect(boxes).to_have_count(2)
    # what the source reads
    _grows(boxes.first.locator(".numbers b").first)
    expect(boxes.first.locator(".strain")).to_contain_text("busy", timeout=_slow_ms())
    assert violations(page) == []

    tab_to(page, cluster.vertices(job_id)[0]["name"])
    page.keyboard.press("Enter")
    # the job has "Metrics", too, behind what is beside it now
    expect(page.locator("#vertex-title")).to_be_focused(timeout=_slow_ms())
    tab_to(page, "Metrics")
    page.keyboard.press("Enter")
    points = "element => element.getAttribute('points').split(' ').length"
    line = page.locator("figure", has_text="numRecordsInPerSecond").locator("polyline").first
    wait_until(lambda: line.evaluate(points) > 3, "points of a chart")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.locator(".drawer")).to_have_count(0, timeout=_slow_ms())

    tab_to(page, "Stop…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Stop counts?")
    tab_to(page, "Stop with savepoint")
    page.keyboard.press("Enter")
    notice = page.locator("#notices")
    expect(notice).to_contain_text("its savepoint: file:", timeout=_slow_ms())
    said = notice.inner_text()  # it goes away by itself
    expect(page.locator("h1 + .badge")).to_have_text("FINISHED", timeout=_slow_ms())
    assert cluster.get(f"jobs/{job_id}/checkpoints")["latest"]["savepoint"]["external_path"] in said
    assert list((cluster.directory / "savepoints").iterdir())


def test_page_goes_on_when_the_job_manager_was_killed(cluster: Cluster, reader: Reader) -> None:
    reader.sign_in(cluster.link)
    page = reader.open(cluster.url, "overview")
    expect(page.locator("main")).to_contain_text("TaskManagers")
    before = cluster.job_manager
    assert before is not None
    for process in processes(cluster.commands.mark, JOB_MANAGER):
        process.send_signal(signal.SIGKILL)
    expect(page.locator("#connection")).to_contain_text("No connection since")
    assert before.wait() != 0
    cluster.start_job_manager()
    expect(page.locator("#connection")).to_be_empty(timeout=_slow_ms())
    # the jobs are gone with a JobManager that was alone; the TaskManager comes back by itself
    expect(page.locator("main")).to_contain_text("No job is running.", timeout=_slow_ms())
    expect(page.locator("main")).to_contain_text("of 2", timeout=_slow_ms())


@pytest.mark.drill
def test_every_page_shows_what_happens(cluster: Cluster, desk: Reader, phone: Reader) -> None:
    """The desk with light colours, the phone with dark ones."""
    for reader in (desk, phone):
        reader.sign_in(cluster.link)
        for place, text in {"overview": "yarnflow submit", "jobs": "No job is running."}.items():
            look(reader, cluster, place, text)
    failed = cluster.submit("failing.py", FAILING)
    wait_until(
        lambda: cluster.get(f"jobs/{failed}")["state"] == "FAILED", "the job to fail", pause_s=1.0
    )
    job = cluster.submit("clicks.py", CLICKS)
    script = cluster.submit("script.py", SCRIPT)
    for job_id in (job, script):
        cluster.await_records(job_id)
        wait_until(
            lambda: cluster.get(f"jobs/{job_id}/checkpoints")["counts"]["completed"] > 1,
            "checkpoints",
            pause_s=1.0,
        )
    vertex = cluster.vertices(job)[-1]["id"]
    task_manager = cluster.get("taskmanagers")["taskmanagers"][0]["id"].replace(":", "%3A")
    pages = {
        "overview": "import",
        "jobs": "clicks",
        "taskmanagers": "of 2",
        **{f"job/{job}{part}": text for part, text in OF_A_JOB.items()},
        **{f"job/{job}/vertex/{vertex}{part}": text for part, text in OF_A_VERTEX.items()},
        f"job/{script}": "PySpark script",
        f"job/{script}/queries": "rates",
        f"job/{failed}": "FAILED",
        f"job/{failed}/exceptions": "ValueError: invalid literal for int()",
        **{f"taskmanager/{task_manager}{part}": text for part, text in OF_A_TASK_MANAGER.items()},
        **{f"jobmanager{part}": text for part, text in OF_THE_JOB_MANAGER.items()},
        "submit": "",
    }
    for reader in (desk, phone):
        for place, text in pages.items():
            look(reader, cluster, place, text)
    page = desk.go(cluster.url, f"job/{failed}/exceptions")
    traceback = page.get_by_role("region", name="Python traceback")
    expect(traceback).to_contain_text(re.compile(r'^Traceback .*File ".*failing\.py".*ValueError', re.DOTALL))
    for job_id in (job, script):
        cluster.run("cancel", job_id)


def look(reader: Reader, cluster: Cluster, place: str, text: str) -> Page:
    """Everything is in sight, and for everybody."""
    page = reader.go(cluster.url, place)
    expect(page.locator("main")).to_contain_text(text)
    expect(page.locator("main h1")).to_have_count(1)
    expect(page.locator("main [role=alert]")).to_have_count(0)
    width = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width[0] <= width[1], f"{place} is wider than the window"
    assert violations(page) == [], place
    reader.check()
    return page
