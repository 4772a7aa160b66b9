"""What becomes a job: keys, refusals, and how many there may be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tests.patience import PATIENCE
from tests.runtime.dispatcher.dispatcher_bench import JOB, OTHER, Bench, details
from yarnflow.core.checkpoint.messages import RestoreSettings
from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmission, JobSubmitted, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    ConfigError,
    DuplicateJob,
    JobError,
    RpcTimeout,
    SavepointNotFound,
    SlotUnavailable,
    StorageUnavailable,
)
from yarnflow.runtime.dispatcher.ended_jobs import ARCHIVE_RETRY_MS


def test_the_same_id_twice_is_one_job() -> None:
    bench = Bench()
    assert bench.submit() == bench.submit() == (JOB, False)
    assert len(bench.jobs) == 1
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.submit()
    assert len(bench.jobs) == 1, "an ended job was run again"


def test_a_live_key_names_the_live_job() -> None:
    bench = Bench()
    bench.submit(JOB, "daily")
    assert bench.submit(OTHER, "daily") == (JOB, True)
    bench.jobs[JOB].end(JobStatus.CANCELED)
    assert bench.submit(OTHER, "daily") == (OTHER, False)


@pytest.mark.parametrize(
    ("first", "second", "told"), [("d1", "d1", False), ("d1", "d2", True), ("", "d2", False)]
)
def test_whether_the_live_job_runs_another_program_is_told(first: str, second: str, told: bool) -> None:
    bench = Bench()
    bench.ask(JOB, "daily", first)
    answer = bench.ask(OTHER, "daily", second)
    assert answer == JobSubmitted(JOB, attached_to_existing=True, other_program=told)


LATEST = RestoreSettings(latest=True)


@pytest.mark.parametrize(
    ("status", "digest", "restore", "refused"),
    [
        ("FAILED", "d2", None, True),
        ("FAILED", "d1", None, False),
        ("FAILED", "", None, False),
        ("FAILED", "d2", LATEST, False),
        ("CANCELED", "d2", None, False),
    ],
)
def test_a_job_does_not_go_on_from_another_program_unasked(
    status: str, digest: str, restore: RestoreSettings | None, refused: bool
) -> None:
    bench = Bench()
    left = LatestState("daily", OTHER, "j", status, "hdfs://nn/b/chk-5", 5, 1, program="d1")
    bench.stores.latest.write(left)
    if not refused:
        assert bench.ask(JOB, "daily", digest, restore=restore) == JobSubmitted(JOB)
        return
    with pytest.raises(DuplicateJob, match=f"{OTHER}.*--restore latest.*another --job-key"):
        bench.ask(JOB, "daily", digest, restore=restore)
    assert not bench.jobs and bench.submit(JOB, "daily") == (JOB, False), "the key is free"


def test_a_program_waits_for_the_key_that_an_earlier_version_gave_it() -> None:
    bench = Bench()
    bench.submit(JOB, "daily")
    bench.stores.latest.begin("daily", JOB)
    answer = bench.ask(OTHER, "daily@1", "d1", earlier="daily")
    assert answer == JobSubmitted(JOB, attached_to_existing=True)
    bench.board.publish(details(JOB, JobStatus.CANCELED))
    with pytest.raises(RpcTimeout, match="job key daily has ended.*try again"):
        bench.ask(OTHER, "daily@1", "d1", earlier="daily")
    other = bench.ask(OTHER, "daily@2", "d1", earlier="daily")
    assert other == JobSubmitted(OTHER), "the first that asked has it"


def test_a_job_is_not_accepted_while_nobody_knows_whose_key_it_has() -> None:
    bench = Bench()
    bench.stores.latest.error = StorageUnavailable("no NameNode")
    with pytest.raises(StorageUnavailable):
        bench.ask(OTHER, "daily@1", "d1", earlier="daily")
    assert not bench.jobs


RESTORES: dict[str, tuple[RestoreSettings | None, dict[str, str]]] = {
    "option": (None, {"execution.state-recovery.path": "file:///savepoint"}),
    "submission": (RestoreSettings("file:///savepoint"), {"execution.state-recovery.path": "none"}),
}


@pytest.mark.parametrize("named", RESTORES)
def test_a_job_whose_state_is_not_there_is_refused(named: str) -> None:
    """The client may be on another machine, and cannot look itself."""
    restore, options = RESTORES[named]

    def submit(bench: Bench, job_id: JobId = JOB) -> JobSubmitted:
        bench.mailbox.run_pending()
        submission = JobSubmission(job_id, "j", ProgramKind.GRAPH, "", options, "daily", restore=restore)
        return bench.dispatcher.submit_job(submission)

    bench = Bench()
    bench.stores.latest.gone.add("file:///savepoint")
    with pytest.raises(SavepointNotFound, match="file:///savepoint, as the JobManager sees it"):
        submit(bench)
    bench.mailbox.run_pending()
    assert not bench.jobs and not bench.stores.graphs.stored and not bench.stores.keys.owners

    assert bench.submit(OTHER, "daily") == (OTHER, False)
    assert submit(bench).attached_to_existing, "the job that lives may have claimed it"

    lost = Bench()
    lost.stores.latest.gone.add("file:///savepoint")
    lost.stores.latest.begun.add(JOB)
    assert submit(lost).job_id == JOB, "as yarnflow recover brings it back"

    unknown = Bench()
    unknown.stores.latest.error = ConfigError("only hdfs:// and file://")
    assert submit(unknown).job_id == JOB, "the driver looks"


def test_a_path_without_a_scheme_is_the_drivers_to_look_at() -> None:
    bench = Bench()
    bench.stores.latest.gone.add("/savepoint")
    options = {"execution.state-recovery.path": "/savepoint"}
    bench.dispatcher.submit_job(JobSubmission(JOB, "j", ProgramKind.GRAPH, "", options))
    assert list(bench.jobs) == [JOB]


def test_what_is_no_id_is_refused() -> None:
    with pytest.raises(JobError, match="32 hexadecimal"):
        Bench().submit(JobId("nonsense"))


def test_a_key_is_free_when_what_its_job_leaves_is_in_order() -> None:
    """The next job under the key may start from that; the end of a job can be seen before."""
    bench = Bench(max_jobs=1)
    bench.submit(JOB, "daily")
    bench.board.publish(details(JOB, JobStatus.CANCELED))
    with pytest.raises(RpcTimeout, match="put in order; try again"):
        bench.submit(OTHER, "daily")
    assert bench.submit(JOB, "daily") == (JOB, False)
    bench.jobs[JOB].on_ended(JOB)
    assert bench.submit(OTHER, "daily") == (OTHER, False)
    assert bench.submit(JobId("c" * 32), "daily") == (OTHER, True), "the key went with its former owner"


def test_a_submission_waits_for_its_key() -> None:
    bench = Bench()
    bench.submit(JOB, "daily")
    bench.board.publish(details(JOB, JobStatus.CANCELED))
    found: list[tuple[JobId, bool]] = []
    waits = threading.Thread(target=lambda: found.append(bench.submit(OTHER, "daily")))
    waits.start()
    time.sleep(0.05)
    bench.jobs[JOB].on_ended(JOB)
    bench.mailbox.run_pending()
    waits.join(PATIENCE.thread_s)
    assert found == [(OTHER, False)]


def test_submissions_do_not_take_all_threads_of_the_server() -> None:
    bench = Bench()
    release = threading.Event()
    put = bench.stores.graphs.put

    begun = threading.Event()

    def slow(submission: JobSubmission) -> None:
        begun.set()
        release.wait(PATIENCE.thread_s)
        put(submission)

    def submit(job_id: JobId) -> None:
        """As a client does, try again."""
        while job_id not in bench.jobs:
            try:
                bench.submit(job_id)
            except RpcTimeout:
                release.wait(0.01)

    bench.stores.graphs.put = slow  # type: ignore[method-assign]
    submissions = [threading.Thread(target=submit, args=(JobId(letter * 32),)) for letter in "abcd"]
    for thread in submissions:
        thread.start()
    # this thread is not the one that waits
    assert begun.wait(PATIENCE.thread_s)
    until, refusal = time.monotonic() + PATIENCE.thread_s, ""
    while "4 other jobs are being submitted; try again" not in refusal:
        assert time.monotonic() < until, refusal
        with pytest.raises(RpcTimeout) as refused:
            bench.submit(JobId("e" * 32))
        refusal = str(refused.value)
    release.set()
    for thread in submissions:
        thread.join(PATIENCE.thread_s)
    assert sorted(bench.jobs) == [letter * 32 for letter in "abcd"]


@pytest.mark.parametrize("late", [True, False])
def test_a_job_that_is_accepted_too_late_for_its_caller(late: bool) -> None:
    """It is not taken for refused; one that was not begun with is."""
    bench = Bench()
    call = bench.mailbox.call

    def times_out(action: Callable[[], object], timeout_ms: int | None) -> object:
        if bench.stores.graphs.stored and timeout_ms is not None:
            bench.mailbox.call = call  # type: ignore[method-assign]
            if late:

                def act() -> None:
                    action()

                bench.mailbox.post(act)
            raise RpcTimeout("dispatcher did not answer")
        return call(action, timeout_ms)

    bench.mailbox.call = times_out  # type: ignore[assignment, method-assign]
    with pytest.raises(RpcTimeout):
        bench.submit(JOB, "daily")
    bench.mailbox.run_pending()
    assert list(bench.jobs) == list(bench.stores.graphs.stored) == ([JOB] if late else [])
    assert bench.submit(JOB, "daily") == (JOB, False)
    assert list(bench.stores.graphs.stored) == [JOB] and bench.stores.keys.owners == {"daily": JOB}


def test_what_was_refused_is_cleared_away_until_it_is_gone() -> None:
    """A master that takes over would run it."""
    bench = Bench()
    remove, failures = bench.stores.graphs.remove, [StorageUnavailable("safe mode")]

    def fails_once(job_id: JobId) -> None:
        if failures:
            raise failures.pop()
        remove(job_id)

    bench.stores.graphs.remove = fails_once  # type: ignore[method-assign]
    bench.refusal = ConfigError("no such option")
    with pytest.raises(ConfigError):
        bench.submit(JOB, "daily")
    with pytest.raises(RpcTimeout, match="was refused and is still being cleared away"):
        bench.submit(JOB, "daily")
    bench.clock.advance(ARCHIVE_RETRY_MS)
    bench.mailbox.run_pending()
    assert not bench.stores.graphs.stored and not bench.stores.keys.owners


def test_no_more_jobs_than_drivers() -> None:
    bench = Bench(max_jobs=2)
    bench.submit(JobId("a" * 32), "daily")
    bench.submit(JobId("b" * 32))
    with pytest.raises(SlotUnavailable, match="2 jobs run .* drivers of 2.*yarn.appmaster.drivers"):
        bench.submit(JobId("c" * 32))
    assert bench.submit(JobId("d" * 32), "daily") == ("a" * 32, True), "a live key needs no driver"
    assert bench.submit(JobId("b" * 32)) == ("b" * 32, False)
    bench.jobs[JobId("b" * 32)].end(JobStatus.FINISHED)
    assert bench.submit(JobId("c" * 32)) == ("c" * 32, False)


def test_what_cannot_be_stored_is_no_job() -> None:
    bench = Bench()

    def put(submission: JobSubmission) -> None:
        raise StorageUnavailable("HDFS is in safe mode")

    bench.stores.graphs.put = put  # type: ignore[method-assign]
    with pytest.raises(StorageUnavailable):
        bench.submit(JOB, "daily")
    bench.mailbox.run_pending()
    assert not bench.jobs and not bench.stores.keys.owners, "the key would be lost to all jobs"


def test_what_cannot_run_is_not_kept() -> None:
    bench = Bench()
    bench.refusal = ConfigError("no such option")
    with pytest.raises(ConfigError):
        bench.submit(JOB, "daily")
    bench.mailbox.run_pending()
    assert not bench.stores.graphs.stored and not bench.stores.keys.owners
    bench.dispatcher.close("enough")
    bench.mailbox.run_pending()
    assert bench.ended.is_set(), "a job that was refused is waited for"


def test_a_result_the_board_has_forgotten_still_counts() -> None:
    bench = Bench()
    bench.stores.ended.put(details(JOB, JobStatus.FINISHED))
    assert bench.submit() == (JOB, False)
    assert not bench.jobs
