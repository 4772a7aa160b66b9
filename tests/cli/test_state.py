"""The verbs that save state: what goes to standard output, what is refused, and with which status."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.state_cluster import JOB, PROGRAM, SAVEPOINT, Cluster, S
from tests.client import saved
from tests.client.fakes import checkpoint
from yarnflow.cli.main import main
from yarnflow.core.checkpoint.manifest import METADATA_FILE
from yarnflow.core.checkpoint.messages import AfterSavepoint, CheckpointKind
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ErrorInfo, FailureInfo, JobDetails
from yarnflow.errors import CheckpointError, LeadershipLost, RpcUnavailable

pytestmark = pytest.mark.usefixtures("interpreter")


def test_a_savepoint_is_one_line_for_scripts(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cluster.outcomes = [replace(SAVEPOINT, pause_ms=40)]
    assert main(["savepoint", JOB, "sp"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{SAVEPOINT.external_path}\n"
    assert err == f"Savepoint 7 of job {JOB} is complete (2.5 s, 40 ms without a batch).\n"
    ((job_id, request),) = cluster.requests
    assert (job_id, request.kind, request.after) == (JOB, CheckpointKind.SAVEPOINT, AfterSavepoint.CONTINUE)
    assert request.target_dir == f"file://{tmp_path}/sp"


@pytest.mark.parametrize(
    "arguments",
    [[JOB], ["trigger", JOB], ["-t", "remote", JOB], ["-m", "h:1", JOB], [JOB, "-Dclient.timeout=1s"]],
)
def test_forms_of_savepoint(arguments: list[str], cluster: Cluster) -> None:
    cluster.outcomes = [SAVEPOINT]
    assert main(["savepoint", *arguments]) == 0
    assert cluster.requests[0][1].target_dir == ""


def test_the_directory_may_be_an_option_of_the_command(cluster: Cluster) -> None:
    cluster.outcomes = [SAVEPOINT]
    assert main(["savepoint", JOB, "-Dexecution.checkpointing.savepoint-dir=file:///sp"]) == 0
    assert cluster.requests[0][1].target_dir == "file:///sp"


def test_a_checkpoint(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.outcomes = [checkpoint(9)]
    assert main(["checkpoint", JOB]) == 0
    assert capsys.readouterr().out == "hdfs://n/checkpoints/chk-9\n"
    assert cluster.requests[0][1].kind is CheckpointKind.CHECKPOINT


@pytest.mark.parametrize("verb", [["savepoint"], ["stop"]])
def test_detached_does_not_wait(
    verb: list[str], cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verb, JOB, "--detached"]) == 0
    assert len(cluster.requests) == 1
    out, err = capsys.readouterr()
    assert not out and f"yarnflow checkpoints {JOB}" in err


@pytest.mark.parametrize(
    ("flags", "after"), [([], AfterSavepoint.STOP), (["--drain"], AfterSavepoint.DRAIN)]
)
def test_stop_prints_the_path_when_the_job_has_ended(
    flags: list[str], after: AfterSavepoint, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.states = [S.RUNNING, S.FINISHED]
    cluster.job_details = lambda job_id: replace(_running(), version=1)  # type: ignore[method-assign]
    cluster.outcomes = [SAVEPOINT]
    assert main(["stop", JOB, "-p", "file:///sp", "--request-id", "A" * 32, *flags]) == 0
    out, err = capsys.readouterr()
    assert out == f"{SAVEPOINT.external_path}\n"
    assert err.splitlines()[-1].endswith("switched from state RUNNING to FINISHED.")
    request = cluster.requests[0][1]
    assert (request.after, request.target_dir, request.request_id) == (after, "file:///sp", "a" * 32)


def test_a_request_id_of_another_form_is_refused(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stop", JOB, "--request-id", "once"]) == 2
    assert "'once' is not 32 hexadecimal digits" in capsys.readouterr().err
    assert not cluster.requests


def test_stop_and_cancel_tell_nothing_that_is_old(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    from yarnflow.testing.gateways.dispatcher import details

    old = FailureInfo(1, ErrorInfo("EXECUTOR_LOST", "executor 1 ended"), "tm-1")
    times = {"CREATED": 1, "RUNNING": 2, "RESTARTING": 3}
    running = replace(details(JOB, 1, S.RUNNING), timestamps_ms=times, failures=(old,))
    ended = {"stop": S.FINISHED, "cancel": S.CANCELED}
    for verb, status in ended.items():
        end = replace(details(JOB, 2, status), timestamps_ms={**times, status.value: 9}, failures=(old,))
        cluster.job_details = lambda job_id: running  # type: ignore[method-assign]
        cluster.await_job_change = lambda *_, end=end: end  # type: ignore[method-assign]
        cluster.outcomes = [SAVEPOINT]
        assert main([verb, JOB]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert lines[0] == f"Job flights ({JOB}) is RUNNING."
        assert lines[-1] == f"Job flights ({JOB}) switched from state RUNNING to {status.value}."
        assert not any("executor 1" in line or "RESTARTING" in line for line in lines)


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        ("interrupt", 130, "see whether the job has ended"),
        ("silence", 61, "see whether the job has ended"),
        ("failure", 43, "a job can start from it"),
    ],
)
def test_stop_prints_the_path_whatever_comes_after_the_savepoint(
    end: str, status: int, said: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def poll(version: int) -> None:
        if end == "interrupt" and version == 2:
            os.kill(os.getpid(), signal.SIGINT)
        elif end == "silence":
            raise LeadershipLost("gone")

    cluster.states = [S.RUNNING, S.RUNNING, *([S.FAILED] if end == "failure" else [])]
    cluster.on_poll = poll
    cluster.job_details = lambda job_id: _running()  # type: ignore[method-assign]
    cluster.outcomes = [SAVEPOINT]
    assert main(["stop", JOB, "-D", "client.timeout=0 ms"]) == status
    cluster.cancel_job(JOB)  # lets a poll end
    out, err = capsys.readouterr()
    assert out == f"{SAVEPOINT.external_path}\n" and said.replace("the job", f"job {JOB}") in err
    assert "cancel it" not in err


def _running() -> JobDetails:
    from yarnflow.testing.gateways.dispatcher import details

    return details(JOB, 0, S.RUNNING)


def test_a_cluster_that_ends_with_its_job_has_left_the_savepoint(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from yarnflow.testing.gateways.dispatcher import details

    root = saved.savepoint(tmp_path, created_ms=2**52)
    answers = iter([_running()])

    def job_details(job_id: JobId) -> JobDetails:
        for answer in answers:
            return answer
        raise RpcUnavailable("gone")

    cluster.job_details = job_details  # type: ignore[method-assign]
    cluster.outcomes = [RpcUnavailable("gone")]
    cluster.left = details(JOB, 9, S.FINISHED)
    cluster.unreachable = True
    assert main(["stop", JOB, "-p", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"file://{root}\n"


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["savepoint", "12"], 41, "is not a job id"),
        (["savepoint", JOB, ""], 12, "is empty"),
        (["savepoint", JOB, "s3://b/x"], 12, "only hdfs://"),
        (["savepoint"], 2, ""),
        (["savepoint", "inspect"], 2, "PATH"),
        (["savepoint", "inspect", "/none"], 95, "file:///none does not exist"),
        (["savepoint", "dispose", "/none", "--yes"], 95, "file:///none does not exist"),
        (["checkpoint", "x"], 41, "is not a job id"),
        (["checkpoints", "x"], 41, "is not a job id"),
        (["stop", "x"], 41, "is not a job id"),
        (["stop", JOB, "--drian"], 2, "--drain"),
        (["stop", JOB], 40, "it is FINISHED already"),
        (["savepoint", JOB], 93, "no directory"),
        (["submit", "-s", "/a", "--restore", "none", "x.py"], 12, "use one of them"),
        (["submit", "-s", "", "x.py"], 12, "is empty"),
        (["submit", "--restore", "none", "--claim-mode", "CLAIM", "x.py"], 12, "asks for none"),
        (["submit", "--claim-mode", "LEGACY", "x.py"], 2, "LEGACY"),
        (["submit", "-s", "/none", "{program}"], 95, "file:///none does not exist"),
        (["submit", "--restore", "/none", "{program}"], 95, "file:///none does not exist"),
        (["submit", "-s", "{empty}", "{program}"], 95, "has no _metadata"),
        (["submit", "-s", "{broken}", "{program}"], 96, "no manifest of a savepoint"),
        (["submit", "-m", "h:1", "-s", "{broken}", "{program}"], 96, "no manifest of a savepoint"),
        (["submit", "-m", "h:1,g", "{program}"], 12, "expected host:port"),
    ],
)
def test_bad_input(
    arguments: list[str],
    status: int,
    text: str,
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / METADATA_FILE).write_text("{}")
    (tmp_path / "prog.py").write_text(PROGRAM)
    paths = {"program": tmp_path / "prog.py", "empty": tmp_path / "empty", "broken": tmp_path / "broken"}
    cluster.states = [S.FINISHED]
    cluster.refusals = [CheckpointError("no directory")]
    before = len(cluster.submissions)
    assert main([argument.format(**paths) for argument in arguments]) == status
    assert text in capsys.readouterr().err
    assert len(cluster.submissions) == before
    if arguments[0] == "submit":
        assert not cluster.connects, "something was started"
