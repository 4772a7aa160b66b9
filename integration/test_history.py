"""Jobs of a standalone cluster that is gone: the history server answers what the JobManager had said."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from integration.conftest import ROOT, Commands, commands_in, wait_until
from integration.processes import processes
from integration.rest.client import Served
from integration.servers import free_port
from tests.patience import PATIENCE

PROGRAM: Final = """
from yarnflow.api import *
env = StreamExecutionEnvironment.get_execution_environment()

def check(value):
    if {fails} and value == 3:
        raise ValueError("three is too many")
    return value

env.from_collection([1, 2, 3, 4]).map(check).print()
env.execute({name!r})
"""
#: change from one answer to the next
MOMENTS: Final = {"now", "end-timestamp"}


@dataclass
class Archived:
    """A cluster that has ended, and what its JobManager had answered about its jobs."""

    commands: Commands
    directory: Path
    #: name → id
    jobs: dict[str, str]
    #: path → answer
    answers: dict[str, Any]

    @property
    def archives(self) -> Path:
        return self.directory / "archives"


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=PATIENCE.answer_s) as answer:
        return json.load(answer)


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE.answer_s) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _lasting(answer: Any) -> Any:
    """Without what is different at every moment."""
    if isinstance(answer, dict):
        return {key: _lasting(value) for key, value in answer.items() if key not in MOMENTS}
    return [_lasting(each) for each in answer] if isinstance(answer, list) else answer


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archived]:
    """Two jobs end, one of them FAILED, and then their cluster."""
    directory = tmp_path_factory.mktemp("history")
    (directory / "events").mkdir()
    where = [f"-Djobmanager.rpc.port={free_port()}", f"-Dio.tmp.dirs={directory}"]
    archives = f"-Djobmanager.archive.fs.dir=file://{directory}/archives"
    settings = [*where, "-Drest.port=0", archives, "-Dtaskmanager.numberOfTaskSlots=2"]
    environment = {"YARNFLOW_PID_DIR": str(directory / "pids")}
    events = ["-Dspark.eventLog.enabled=true", f"-Dspark.eventLog.dir=file://{directory}/events",
              "-Dhistoryserver.spark.url=http://spark:18080"]  # fmt: skip
    with commands_in(directory) as commands:
        start = commands.start_command([ROOT / "scripts" / "start-cluster.sh", "1", *settings], environment)
        assert start.wait() == 0, start.stdout + start.stderr
        try:
            jobs = {}
            for name in ("good", "bad"):
                program = directory / f"{name}.py"
                program.write_text(PROGRAM.format(name=name, fails=name == "bad"))
                done = commands.run("submit", "-d", "--target", "remote", *where, *events, program)
                assert done.process.returncode == 0, done.stdout + done.stderr
                found = re.search(r"[0-9a-f]{32}", done.stdout + done.stderr)
                assert found
                jobs[name] = found[0]
            files = [directory / "archives" / job_id for job_id in jobs.values()]
            wait_until(
                lambda: all(file.exists() for file in files), "the archives of both jobs", PATIENCE.job_s
            )
            answers = {}
            served = wait_until(lambda: Served.below(directory), "the JobManager's tokens")
            for file in files:
                assert file.stat().st_mode & 0o077 == 0
                for entry in json.loads(file.read_bytes())["archive"]:
                    answers[entry["path"]] = served.rest.get(entry["path"])
        finally:
            stop = commands.start_command([ROOT / "scripts" / "stop-cluster.sh"], environment)
            assert stop.wait() == 0, stop.stdout + stop.stderr
        yield Archived(commands, directory, jobs, answers)


@contextmanager
def history_server(archived: Archived, name: str, *options: str) -> Iterator[str]:
    """The address of a history server that its script has started."""
    environment = {"YARNFLOW_PID_DIR": str(archived.directory / "pids")}
    script = ROOT / "scripts" / "historyserver.sh"
    settings = [
        f"-Dhistoryserver.archive.fs.dir=file://{archived.archives}", "-Dhistoryserver.web.port=0",
        f"-Dhistoryserver.web.tmpdir={archived.directory / name}", f"-Dio.tmp.dirs={archived.directory}",
        "-Dhistoryserver.archive.fs.refresh-interval=200 ms", *options,
    ]  # fmt: skip
    start = archived.commands.start_command([script, "start", *settings], environment)
    assert start.wait() == 0, start.stdout + start.stderr
    found = re.search(r"serves at (http://\S+)", start.stdout)
    assert found
    yield found[1]
    stop = archived.commands.start_command([script, "stop"], environment)
    assert stop.wait() == 0 and "stopped" in stop.stdout, stop.stdout + stop.stderr
    assert not processes(archived.commands.mark, "historyserver")


def _jobs(url: str) -> dict[str, str]:
    return {each["name"]: each["state"] for each in _get(f"{url}/jobs/overview")["jobs"]}


def test_it_answers_as_the_job_manager_did(archived: Archived) -> None:
    for _ in range(2):  # the second one has its copies already
        with history_server(archived, "copies") as url:
            wait_until(lambda: len(_jobs(url)) == 2, "both jobs")
            assert _jobs(url) == {"good": "FINISHED", "bad": "FAILED"}
            for path, answer in archived.answers.items():
                assert _lasting(_get(url + path)) == _lasting(answer), path
            assert _get(f"{url}/config")["features"]["web-history"] is True
            assert _get(f"{url}/overview")["jobs-failed"] == 1
            assert _status(f"{url}/taskmanagers") == 404
            bad = archived.jobs["bad"]
            (failure,) = _get(f"{url}/jobs/{bad}/exceptions")["exceptionHistory"]["entries"]
            assert "three is too many" in failure["stacktrace"]
            assert {each["id"] for each in _get(f"{url}/applications/overview")["applications"]} == set(
                archived.jobs.values()
            )


def test_sparks_event_log_is_where_the_answer_says(archived: Archived) -> None:
    for job_id in archived.jobs.values():
        (log,) = archived.answers[f"/jobs/{job_id}/logs"]["spark-event-logs"]
        names = {file.name for file in Path(log["path"].removeprefix("file://")).iterdir()}
        # Spark's word for a log whose application has ended
        assert f"appstatus_{log['application-id']}" in names, names
        assert log["url"] == f"http://spark:18080/history/{log['application-id']}/"


@pytest.mark.may_rerun("archives are looked for at intervals")
def test_a_job_whose_archive_is_gone_is_forgotten(archived: Archived, tmp_path: Path) -> None:
    options = (
        "-Dhistoryserver.archive.clean-expired-jobs=true",
        f"-Dhistoryserver.web.token-file={tmp_path}/t",
    )
    (tmp_path / "t").write_text("sesame\n")
    (tmp_path / "t").chmod(0o600)

    def jobs(url: str) -> list[str]:
        request = urllib.request.Request(f"{url}/jobs/overview", headers={"Authorization": "Bearer sesame"})
        with urllib.request.urlopen(request, timeout=PATIENCE.answer_s) as answer:
            return [each["jid"] for each in json.load(answer)["jobs"]]

    with history_server(archived, "clean", *options) as url:
        assert _status(f"{url}/jobs/overview") == 401
        wait_until(lambda: len(jobs(url)) == 2, "both jobs")
        (archived.archives / archived.jobs["bad"]).unlink()
        wait_until(lambda: jobs(url) == [archived.jobs["good"]], "the job to be forgotten")
