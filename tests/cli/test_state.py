"""The verbs about state: what goes to standard output, what is refused, and with which status."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.client import saved
from tests.client.fakes import FakeConnection, checkpoint
from yarnflow.cli import savepoint_state
from yarnflow.cli.main import main
from yarnflow.client import targets
from yarnflow.core.checkpoint.manifest import METADATA_FILE, from_bytes
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointKind,
    CheckpointStatus,
    JobCheckpoints,
    RestoredState,
)
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import ErrorInfo, FailureInfo, JobDetails, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import CheckpointError, LeadershipLost, RpcUnavailable, SavepointNotFound
from yarnflow.fs.saved_state import SavedState
from yarnflow.process.signals import ENDING
from yarnflow.spark.state.reader import StateStore, StateTable
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

S = JobStatus
JOB = saved.JOB
SAVEPOINT = checkpoint(7, kind=CheckpointKind.SAVEPOINT, path="hdfs://n/sp/savepoint-ababab-1")

PROGRAM = """
import yarnflow
from yarnflow.api.executor import current_executor
from yarnflow.graph.job_graph import JobGraph
from yarnflow.core.messages import ProgramKind
client = current_executor().submit(JobGraph("ab" * 16, "flights", ProgramKind.GRAPH))
client.get_job_execution_result()
"""


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("YARNFLOW_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    main_module, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    handlers = {number: signal.getsignal(number) for number in ENDING}
    yield
    sys.modules["__main__"], sys.argv, sys.path[:] = main_module, argv, path
    for number, handler in handlers.items():
        signal.signal(number, handler)


class Cluster(FakeDispatcher):
    """One job that runs; ``left`` is what it leaves when nobody answers any more."""

    def __init__(self) -> None:
        super().__init__([S.RUNNING])
        self.connects: list[str] = []
        self.left: JobDetails | None = None
        self.submissions.append(JobSubmission(JOB, "flights", ProgramKind.GRAPH, "{}", {}))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    fake = Cluster()

    def connect(target: targets.Target, configuration: object, *_: object) -> FakeConnection:
        fake.connects.append(target.name)
        connection = FakeConnection(fake, target.owned)
        connection.left = fake.left
        return connection

    monkeypatch.setattr(targets.Target, "connect", connect)
    return fake


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
    assert main(["stop", JOB, "-p", "file:///sp", *flags]) == 0
    out, err = capsys.readouterr()
    assert out == f"{SAVEPOINT.external_path}\n"
    assert err.splitlines()[-1].endswith("switched from state RUNNING to FINISHED.")
    assert (cluster.requests[0][1].after, cluster.requests[0][1].target_dir) == (after, "file:///sp")


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


# --- submit from state -----------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "path", "mode"),
    [
        (["-s", "{sp}"], "file://{sp}", None),
        (["-s", "{sp}/_metadata"], "file://{sp}/_metadata", None),
        (["--restore", "{sp}", "--claim-mode", "claim"], "file://{sp}", "CLAIM"),
        (["--fromSavepoint", "{sp}", "-rm", "NO_CLAIM"], "file://{sp}", "NO_CLAIM"),
        (["-Dexecution.state-recovery.path={sp}"], "file://{sp}", None),
        (["--restore", "latest"], "latest", None),
        (["--restore", "none"], "none", None),
        ([], None, None),
    ],
)
def test_submit_from_state(
    flags: list[str], path: str | None, mode: str | None, cluster: Cluster, tmp_path: Path
) -> None:
    root = saved.savepoint(tmp_path)
    script = tmp_path / "script.py"
    script.write_text("print(1)")
    assert main(["submit", "-d", "-t", "remote", *(f.format(sp=root) for f in flags), str(script)]) == 0
    shipped = cluster.submissions[-1].configuration
    assert shipped.get("execution.state-recovery.path") == (path and path.format(sp=root))
    assert shipped.get("execution.state-recovery.claim-mode") == mode


def test_trust_is_asked_for_by_the_job(cluster: Cluster, tmp_path: Path) -> None:
    root = saved.savepoint(tmp_path)
    script = tmp_path / "script.py"
    script.write_text("print(1)")
    for flags, trusted in (["--trust-state"], "true"), ([], None):
        assert main(["submit", "-d", "-t", "remote", "-s", str(root), *flags, str(script)]) == 0
        assert cluster.submissions[-1].configuration.get("execution.state-recovery.trusted") == trusted


@pytest.mark.parametrize("flag", ["-n", "--allowNonRestoredState", "--allow-non-restored-state"])
def test_state_of_operators_that_are_gone_may_be_left_behind(
    flag: str, cluster: Cluster, tmp_path: Path
) -> None:
    root = saved.savepoint(tmp_path)
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    # the client compares the two as well
    assert main(["submit", "-d", "-t", "remote", "-s", str(root), str(program)]) == 97
    assert main(["submit", "-d", "-t", "remote", "-s", str(root), flag, str(program)]) == 0
    shipped = cluster.submissions[-1].configuration
    assert shipped["execution.state-recovery.ignore-unclaimed-state"] == "true"


def test_a_directory_of_the_clusters_machines_need_not_be_here(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print(1)")
    assert main(["submit", "-d", "-m", "h:1", "-s", "/elsewhere/sp", str(script)]) == 0
    assert cluster.submissions[-1].configuration["execution.state-recovery.path"] == "file:///elsewhere/sp"


def test_a_program_that_does_not_fit_is_not_submitted(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = saved.savepoint(tmp_path)
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    before = len(cluster.submissions)
    assert main(["submit", "-t", "remote", "-s", str(root), str(program)]) == 97
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert f"does not fit the state in file://{root}" in error and "uid 'counts'" in error
    assert len(cluster.submissions) == before


# --- what there is ------------------------------------------------------------------


def test_the_history(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.checkpoints = JobCheckpoints(
        JOB,
        completed=12,
        failed=1,
        history=(
            checkpoint(9, CheckpointStatus.IN_PROGRESS),
            checkpoint(8, CheckpointStatus.FAILED, failure="disk\nfull"),
            replace(checkpoint(7), positions=(saved.position(),)),
            replace(checkpoint(6), discarded=True),
        ),
        restored=RestoredState("hdfs://n/sp/s", CheckpointKind.SAVEPOINT, 3, 1),
        interval_ms=10_000,
    )
    assert main(["checkpoints", JOB]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        f"Checkpoints of job {JOB}: 12 completed, 1 in progress, 1 failed; interval 10.0 s, 1 retained, "
        "RETAIN_ON_CANCELLATION"
    )
    assert lines[1] == "Started from savepoint 3 (NO_CLAIM), hdfs://n/sp/s"
    cells = [re.split(r"\s{2,}", line) for line in lines[2:]]
    assert cells[0] == ["ID", "Kind", "Status", "Why", "Began", "Took", "Rows", "Size", "Path"]
    assert [row[0] for row in cells[1:]] == ["9", "8", "7", "6"]
    assert cells[2][-1] == "disk full" and cells[4][-1] == "(discarded)"
    assert cells[3][5:] == ["2.5 s", "1,234", "2.0 KiB", "hdfs://n/checkpoints/chk-7"]
    assert main(["checkpoints", JOB, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["history"][2]["status"] == "COMPLETED" and told["completed"] == 12


def test_inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = saved.savepoint(tmp_path)
    assert main(["savepoint", "inspect", str(root)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Savepoint 7: file://{root}",
        f"  job      flights ({JOB}, key flights)",
        "  taken    1970-01-01 00:00:05 UTC by yarnflow 0.1",
        "  program  DataStream program, state in 4 partitions",
        "  files    2, 7 B",
        "Query counts, 'count' (uid counts)",
        "  position batch 12, committed 2023-11-14 22:13:20 UTC, watermark 2020-09-13 12:26:40 UTC",
        "  source   'flights' (uid flights), file /in: offset {\"logOffset\":5}",
        "  operator 'count' (uid counts), window aggregate; window tumbling, size 10000 ms; "
        "key carrier AS carrier; state n BIGINT",
        "  state 0  stateStoreSave: 1,234 rows, 2.0 KiB, 4 partitions",
    ]
    assert main(["savepoint", "inspect", "--json", str(root)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["path"], told["kind"], told["total_bytes"]) == (f"file://{root}", "SAVEPOINT", 7)
    assert told["program"]["queries"][0]["operators"][0]["uid"] == "counts"


STORES = (
    StateStore("counts", 0, "stateStoreSave", "default", 4),
    StateStore("joined", 0, "symmetricHashJoin", "left-keyToNumValues", 4),
    StateStore("joined", 0, "symmetricHashJoin", "right-keyToNumValues", 4),
    StateStore("both", 0, "dedupe", "default", 4),
    StateStore("both", 1, "stateStoreSave", "default", 4),
)


def _state(tmp_path: Path) -> SavedState:
    root = saved.savepoint(tmp_path)
    return SavedState(f"file://{root}", from_bytes((root / METADATA_FILE).read_bytes(), "x"))


@pytest.mark.parametrize(
    ("part", "found"), [("counts", 0), ("count", 0), ("both/1", 4), ("joined/0/right-keyToNumValues", 2)]
)
def test_whose_state_is_meant(part: str, found: int, tmp_path: Path) -> None:
    assert savepoint_state.find_store(_state(tmp_path), STORES, part) == STORES[found]


@pytest.mark.parametrize(
    ("part", "said"),
    [("both", "means 2 states of"), ("nothing", "names no state in"), ("", "names no state")],
)
def test_state_that_is_not_there_is_listed(part: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SavepointNotFound, match=rf"{said}.*both/1 \(stateStoreSave\)"):
        savepoint_state.find_store(_state(tmp_path), STORES, part)


def test_rows_of_a_state() -> None:
    table = StateTable(("key.carrier", "value.n"), (("AA", "12"), ("united", "3")), more=True)
    assert savepoint_state.format_table(table).splitlines() == [
        "key.carrier  value.n",
        "AA           12",
        "united       3",
        "… and more; see --limit",
    ]


# --- dispose --------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [["dispose"], ["-d"], ["--dispose"]])
def test_dispose(verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = saved.savepoint(tmp_path)
    assert main(["savepoint", *verb, str(root), "--yes"]) == 0
    assert not root.exists()
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"Deleted file://{root}\n")


def test_dispose_is_not_done_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = saved.savepoint(tmp_path)
    assert main(["savepoint", "dispose", str(root)]) == 12
    assert "--yes is needed" in capsys.readouterr().err
    assert (root / METADATA_FILE).exists()


def test_a_checkpoint_of_a_live_job_is_not_disposed_of(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = saved.retained(tmp_path, 4)
    assert main(["savepoint", "dispose", f"{job}/chk-4", "--yes", "-t", "remote"]) == 93
    assert "is in use: job flights" in capsys.readouterr().err
    assert (job / "chk-4" / METADATA_FILE).exists()
    cluster.states = [S.CANCELED]
    assert main(["savepoint", "dispose", f"{job}/chk-4", "--yes", "-t", "remote"]) == 0
    assert not job.exists()


def test_a_vanished_clusters_checkpoint_needs_force(tmp_path: Path) -> None:
    from tests.client.test_saved_state import local
    from yarnflow.core.ha.ports import LatestState
    from yarnflow.ha.stores.latest_states import FileLatestStates

    job = saved.retained(tmp_path, 4)
    record = LatestState("flights", JOB, "flights", "RUNNING", f"file://{job}/chk-4", 4, 1)
    FileLatestStates(local, f"file://{tmp_path}").write(record)
    assert main(["savepoint", "dispose", f"{job}/chk-4", "--yes"]) == 93
    assert main(["savepoint", "dispose", f"{job}/chk-4", "--yes", "--force"]) == 0
    assert not job.exists()


def test_recover_submits_what_the_cluster_does_not_know(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graphs = tmp_path / "ha" / "default" / "jobgraphs"
    graphs.mkdir(parents=True)
    lost, damaged, known = JobId("cd" * 16), JobId("ef" * 16), JOB
    for job_id in (lost, known):
        submission = JobSubmission(job_id, "lost", ProgramKind.GRAPH, "{}", {})
        (graphs / f"{job_id}-1.json").write_text(to_json(submission))
    (graphs / f"{damaged}-1.json").write_text("")
    options = ["recover", "-t", "remote", f"-Dhigh-availability.storageDir=file://{tmp_path}/ha"]
    before = list(cluster.submissions)
    assert main([*options, "--dry-run", lost]) == 0
    assert cluster.submissions == before and "would be recovered" in capsys.readouterr().out
    assert main(options) == 89
    assert [submission.job_id for submission in cluster.submissions[len(before):]] == [lost]
    out, err = capsys.readouterr()
    assert f"Job {lost} (lost) is recovered." in out
    assert f"Job {known} is known to the cluster: RUNNING" in out
    assert damaged in err
    assert main([*options, "0" * 32]) == 41
    assert main(["recover", "-t", "remote"]) == 10


def store(tmp_path: Path, job_id: JobId, **options: str) -> Path:
    """What a job is to run, as a cluster has stored it."""
    graphs = tmp_path / "ha" / "default" / "jobgraphs"
    graphs.mkdir(parents=True, exist_ok=True)
    file = graphs / f"{job_id}-1.json"
    file.write_text(to_json(JobSubmission(job_id, "lost", ProgramKind.GRAPH, "{}", options)))
    return file


def recover(tmp_path: Path, *options: str) -> int:
    return main(["recover", "-t", "remote", f"-Dhigh-availability.storageDir=file://{tmp_path}/ha", *options])


def test_recover_says_when_no_cluster_has_stored_jobs_where_it_looks(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"file://{tmp_path}/nowhere"
    assert recover(tmp_path, "--from", where, "--dry-run") == 41
    assert f"no cluster has stored jobs in {where}" in capsys.readouterr().err
    (tmp_path / "ha" / "default" / "jobgraphs").mkdir(parents=True)
    assert recover(tmp_path) == 0
    assert "There are no jobs in" in capsys.readouterr().out


def test_recover_runs_nothing_that_others_could_have_written(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost, before = JobId("cd" * 16), list(cluster.submissions)
    file = store(tmp_path, lost)
    file.chmod(0o666)
    assert recover(tmp_path) == 89
    assert cluster.submissions == before
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line]
    assert f"file://{file} is writable by others" in line and "--trust" in line
    assert recover(tmp_path, "--trust") == 0
    assert [submission.job_id for submission in cluster.submissions[len(before):]] == [lost]


@pytest.mark.parametrize("own_root", [True, False])
@pytest.mark.parametrize("marker", ["owner.free", f"owner.claimed-{'5' * 32}", "owner.held"])
def test_recover_leaves_out_jobs_that_have_ended(
    marker: str, own_root: bool, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result of a job is forgotten in the end; a file of it may be left all the same."""
    job, before = JobId("cd" * 16), list(cluster.submissions)
    root = tmp_path / "own" if own_root else tmp_path / "ha" / "checkpoints"
    options = {"execution.checkpointing.dir": f"file://{root}/"} if own_root else {}
    file = store(tmp_path, job, **options)
    (root / job).mkdir(parents=True)
    (root / job / marker).touch()
    for dry_run in (["--dry-run"], []):
        assert recover(tmp_path, *dry_run) == 0
        has_ended = f"Job {job} has ended; it is not run again" in capsys.readouterr().out
        assert has_ended is (marker != "owner.held")
        assert file.exists() is (bool(dry_run) or not has_ended)
    assert (cluster.submissions == before) is has_ended


def test_recover_deletes_files_of_jobs_whose_end_is_stored(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over = JobId("cd" * 16)
    files = [store(tmp_path, over), store(tmp_path, JOB)]
    for job_id in (over, JOB):
        (tmp_path / "ha" / "default" / "results").mkdir(exist_ok=True)
        (tmp_path / "ha" / "default" / "results" / f"{job_id}-1.json").write_text("{}")
    assert recover(tmp_path) == 0
    assert "its file is deleted" in capsys.readouterr().out
    assert [file.exists() for file in files] == [False, True], "the cluster knows the other one"
