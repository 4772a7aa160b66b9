"""``yarnflow drill``: what is asked, refused, printed, and with which status it ends."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from tests.client.fakes import FakeConnection
from yarnflow.cli.main import main
from yarnflow.client import targets
from yarnflow.client.drill.commits import Gaps, Replay
from yarnflow.client.drill.report import DrillKind, DrillReport, Event
from yarnflow.client.drill.run import Drill
from yarnflow.core.ids import JobId
from yarnflow.core.messages import (
    FaultKind,
    FaultRequest,
    JobSubmission,
    ProgramKind,
)
from yarnflow.core.states import JobStatus
from yarnflow.errors import HaError
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

JOB = JobId("ab" * 16)
REPORT = DrillReport(
    DrillKind.LEADER,
    JOB,
    "numbered",
    "pid 7",
    10_000,
    (Event("fault", 10_000, "pid 7"), Event("elected", 11_250, "host:2 leads, epoch 2")),
    Gaps(500, 700, exact=True),
    Replay(0, "nothing was started again", ""),
    True,
    "the job runs again and commits",
)


class Cluster(FakeDispatcher):
    def __init__(self) -> None:
        super().__init__([JobStatus.RUNNING])
        self.submissions.append(JobSubmission(JOB, "numbered", ProgramKind.GRAPH, "{}", {}))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    fake = Cluster()

    def connect(target: targets.Target, configuration: object, *_: object) -> FakeConnection:
        return FakeConnection(fake, target.owned)

    for name in ("YARNFLOW_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(targets.Target, "connect", connect)
    monkeypatch.setattr(Drill, "watch_before", lambda drill: None)
    monkeypatch.setattr(Drill, "run", lambda drill: REPORT)
    on_term = signal.getsignal(signal.SIGTERM)
    yield fake
    signal.signal(signal.SIGTERM, on_term)


def test_a_drill_that_passes(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drill", "leader", JOB, "--yes"]) == 0
    out = capsys.readouterr().out
    assert "    1.25 s  elected   host:2 leads, epoch 2" in out
    assert "largest 700 ms, usually 500 ms, 1.4 times as long" in out
    assert "Records processed again: 0 (nothing was started again)" in out
    assert out.endswith("Verdict: passed, the job runs again and commits\n")
    assert cluster.faults == [FaultRequest(FaultKind.LEADER, JOB, check_only=True)]


def test_a_drill_that_fails_has_a_status_of_its_own(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    failed = replace(REPORT, passed=False, verdict="the job is RESTARTING")
    monkeypatch.setattr(Drill, "run", lambda drill: failed)
    assert main(["drill", "driver", JOB, "--yes", "--json"]) == 47
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert report["passed"] is False and report["kind"] == "leader"
    assert report["events"][1] == {
        "name": "elected",
        "at_ms": 11_250,
        "note": "host:2 leads, epoch 2",
        "after_fault_ms": 1_250,
    }
    error = json.loads(captured.err.splitlines()[-1])["error"]
    assert error["message"] == f"drill driver of job {JOB}: the job is RESTARTING"


def test_nobody_is_hit_without_being_asked_about(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(drill: object) -> DrillReport:
        raise AssertionError("carried out")

    monkeypatch.setattr(Drill, "run", run)
    assert main(["drill", "leader", JOB]) == 12
    assert "--yes is needed" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", _Terminal("n\n"))
    assert main(["drill", "leader", JOB]) == 130
    assert not any(not request.check_only for request in cluster.faults)


class _Terminal:
    def __init__(self, answer: str) -> None:
        import io

        self._text = io.StringIO(answer)

    def isatty(self) -> bool:
        return True

    def readline(self, *_: int) -> str:
        return self._text.readline()


def test_the_only_job_need_not_be_named(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drill", "taskmanager", "--yes"]) == 0
    other = JobSubmission(JobId("cd" * 16), "other", ProgramKind.GRAPH, "{}", {})
    cluster.submissions.append(other)
    assert main(["drill", "taskmanager", "--yes"]) == 40
    err = capsys.readouterr().err
    assert JOB in err and "other" in err
    cluster.submissions.clear()
    assert main(["drill", "taskmanager", "--yes"]) == 40


def test_what_the_cluster_refuses(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.refuse_faults = HaError("without high availability …")
    assert main(["drill", "leader", JOB, "--yes"]) == 60
    assert main(["drill", "leader", JOB, "--yes", "--for", "5"]) == 2
    assert main(["drill", "moon", JOB]) == 2
    assert main(["drill", "leader", "nonsense"]) == 41


def test_hdfs_needs_hadoops_command(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["drill", "hdfs", JOB, "--yes"]) == 66
    assert "no hdfs command on the PATH" in capsys.readouterr().err
