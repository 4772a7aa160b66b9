"""What becomes a job, and who may read about it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

import pytest

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointRequest,
    CheckpointStatus,
    CheckpointTrigger,
    JobCheckpoints,
)
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import AllocationId, DriverId, JobId, TaskManagerId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.job_run.events import Adopted, StartKind
from yarnflow.core.messages import (
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ExecutorExited,
    Fence,
    JobDetails,
    JobOverview,
    JobSubmission,
    LeaderInfo,
    ProgramKind,
    SlotOffer,
)
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    CheckpointError,
    ConfigError,
    JobError,
    JobNotFound,
    LeadershipLost,
    RpcTimeout,
    SlotUnavailable,
    StorageUnavailable,
    YarnflowError,
    ZooKeeperUnavailable,
)
from yarnflow.runtime.dispatcher.dispatcher import Dispatcher
from yarnflow.runtime.dispatcher.ended_jobs import ARCHIVE_RETRY_MS
from yarnflow.runtime.dispatcher.job_archive import JobArchive
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.testing.runtime import InlineEffects, InlineMailbox, ManualClock
from yarnflow.testing.stores import FakeJobStores

JOB, OTHER = JobId("a" * 32), JobId("b" * 32)


def _details(job_id: JobId, status: JobStatus = JobStatus.CREATED) -> JobDetails:
    return JobDetails(JobOverview(job_id, "j", status, 1, -1), 0)


class FakeJob:
    """A JobMaster that publishes itself and ends when told."""

    def __init__(
        self, job_id: JobId, board: JobBoard, on_ended: Callable[[JobId], None], start: StartKind
    ) -> None:
        self.job_id, self.board, self.on_ended, self.start_kind = job_id, board, on_ended, start
        self.canceled = self.stopped = False
        self.heard: list[str] = []
        self.history: list[CheckpointInfo] = []
        self.collected = False

    def start(self) -> None:
        self.board.publish(_details(self.job_id))

    def cancel(self) -> None:
        self.canceled = True

    def stop(self) -> None:
        self.stopped = True

    def end(self, status: JobStatus) -> None:
        self.board.publish(_details(self.job_id, status))
        self.on_ended(self.job_id)

    def offer_slots(self, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]:
        return [offer.allocation_id for offer in offers]

    def executor_exited(self, report: ExecutorExited) -> None: ...

    def register_driver(self, registration: DriverRegistration) -> None: ...

    def report(self, report: DriverReport) -> None: ...

    def driver(self) -> DriverRegistration | None:
        return None

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None: ...

    def slot_lost(self, allocation_id: AllocationId, reason: str) -> None: ...

    def slots_unfulfillable(self, message: str) -> None: ...

    def task_manager_diagnosed(self, task_manager_id: TaskManagerId, text: str) -> None:
        self.heard.append(f"{task_manager_id}: {text}")

    def resources_wait(self, text: str) -> None:
        self.heard.append(text)

    def trigger_checkpoint(self, request: CheckpointRequest) -> None:
        self.history.append(
            CheckpointInfo(
                len(self.history) + 1,
                request.kind,
                CheckpointStatus.COMPLETED,
                CheckpointTrigger.REQUESTED,
                1,
                request_id=request.request_id,
            )
        )

    def await_checkpoint(self, request_id: str, timeout_ms: int) -> CheckpointInfo:
        return next(info for info in self.history if info.request_id == request_id)

    def description(self) -> JobDescription:
        return JobDescription(self.job_id, "flights")

    def checkpoints(self) -> JobCheckpoints:
        assert not self.stopped
        return JobCheckpoints(self.job_id, history=tuple(self.history))

    def await_collected(self, position: str, timeout_ms: int) -> CollectedPage:
        assert not self.stopped
        return CollectedPage((b"x",), "1") if self.collected and not position else CollectedPage((), position)

    def suspended(self) -> None:
        self.heard.append("suspended")

    def resumed(self) -> None:
        self.heard.append("resumed")


def _checkpoint_root(options: Mapping[str, str]) -> str:
    return options.get("execution.checkpointing.dir", "hdfs://nn/cp")


class Bench:
    """A Dispatcher with fake jobs."""

    def __init__(
        self, max_jobs: int = 0, stores: FakeJobStores | None = None, *, hold_ends: bool = False
    ) -> None:
        self.clock = ManualClock()
        self.stores = stores or FakeJobStores()
        self.board = JobBoard(
            self.clock,
            2,
            keep_end=(lambda *end: self.dispatcher.keep_end(*end)) if hold_ends else None,
        )
        self.leads = True
        self.mailbox = InlineMailbox("dispatcher", self.clock, may_run=lambda: self.leads)
        self.refusal: YarnflowError | None = None
        self.jobs: dict[JobId, FakeJob] = {}
        self.ended = threading.Event()
        self.dispatcher = Dispatcher(
            self.mailbox,
            self.board,
            self._create,
            lambda: LeaderInfo(Fence("leader", 1), "jm:1", "0", "default"),
            self,
            self.ended.set,
            1_000,
            JobArchive(self.stores, _checkpoint_root),
            InlineEffects(),
            max_jobs,
        )

    def slot_counts(self) -> tuple[int, int, int]:
        return 1, 2, 1

    def _create(
        self, submission: JobSubmission, on_ended: Callable[[JobId], None], start: StartKind
    ) -> FakeJob:
        if self.refusal is not None:
            raise self.refusal
        job = FakeJob(submission.job_id, self.board, on_ended, start)
        self.jobs[submission.job_id] = job
        return job

    def submit(self, job_id: JobId = JOB, key: str = "") -> tuple[JobId, bool]:
        self.mailbox.run_pending()
        answer = self.dispatcher.submit_job(JobSubmission(job_id, "j", ProgramKind.GRAPH, "", {}, key))
        return answer.job_id, answer.attached_to_existing


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


def test_what_is_no_id_is_refused() -> None:
    with pytest.raises(JobError, match="32 hexadecimal"):
        Bench().submit(JobId("nonsense"))


def test_unknown_jobs() -> None:
    bench = Bench()
    with pytest.raises(JobNotFound):
        bench.dispatcher.job_details(JOB)
    with pytest.raises(JobNotFound):
        bench.dispatcher.cancel_job(JOB)
    with pytest.raises(JobNotFound):
        bench.dispatcher.report(DriverReport(JOB, DriverId("d"), 1, DriverPhase.RUNNING))
    assert bench.dispatcher.offer_slots(JOB, []) == ()


def test_collected_elements_and_the_end_of_their_job() -> None:
    bench = Bench()
    with pytest.raises(JobNotFound):
        bench.dispatcher.await_collected(JOB, "", 0)
    bench.submit()
    job = bench.jobs[JOB]
    assert bench.dispatcher.await_collected(JOB, "", 0) == CollectedPage((), "")
    job.collected = True
    assert bench.dispatcher.await_collected(JOB, "", 0) == CollectedPage((b"x",), "1")
    assert bench.dispatcher.await_collected(JOB, "1", 0) == CollectedPage((), "1")
    job.end(JobStatus.FINISHED)
    assert bench.dispatcher.await_collected(JOB, "1", 0) == CollectedPage((), "1", ended=True)
    bench.mailbox.run_pending()
    assert job.stopped
    assert bench.dispatcher.await_collected(JOB, "1", 0) == CollectedPage((), "1", ended=True)


def test_cancel_of_an_ended_job() -> None:
    bench = Bench()
    bench.submit()
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    with pytest.raises(JobError, match="FINISHED already"):
        bench.dispatcher.cancel_job(JOB)


def test_a_cancel_is_known_to_the_next_leader_before_it_is_answered() -> None:
    before = Bench()
    before.submit(JOB)
    before.submit(OTHER)
    before.dispatcher.cancel_job(JOB)
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert (bench.jobs[JOB].canceled, bench.jobs[OTHER].canceled) == (True, False)


def test_a_cancel_that_cannot_be_written_down_is_not_begun() -> None:
    bench = Bench()
    bench.submit()
    bench.stores.graphs.error = LeadershipLost("deposed")
    with pytest.raises(LeadershipLost):
        bench.dispatcher.cancel_job(JOB)
    assert not bench.jobs[JOB].canceled


def test_a_cancel_that_may_have_been_written_down_is_begun() -> None:
    bench = Bench()
    bench.submit()
    bench.stores.graphs.error = ZooKeeperUnavailable("no answer")
    with pytest.raises(ZooKeeperUnavailable):
        bench.dispatcher.cancel_job(JOB)
    assert bench.jobs[JOB].canceled


def test_the_next_leader_cancels_the_jobs_of_a_cluster_that_was_to_shut_down() -> None:
    before = Bench()
    before.submit()
    before.dispatcher.shut_down_cluster()
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert bench.jobs[JOB].canceled


def test_ended_jobs_are_kept_up_to_a_number() -> None:
    bench = Bench()
    for letter in "abcd":
        job_id = JobId(letter * 32)
        bench.submit(job_id)
        bench.jobs[job_id].end(JobStatus.FINISHED)
    assert [overview.job_id[0] for overview in bench.dispatcher.list_jobs()] == ["c", "d"]


def test_shut_down_waits_for_the_jobs() -> None:
    bench = Bench()
    bench.submit()
    bench.dispatcher.shut_down_cluster()
    bench.mailbox.run_pending()
    assert bench.jobs[JOB].canceled
    assert not bench.ended.is_set()
    with pytest.raises(JobError, match="shutting down"):
        bench.submit(OTHER)
    bench.jobs[JOB].end(JobStatus.CANCELED)
    bench.mailbox.run_pending()
    assert bench.ended.is_set()


def test_a_key_is_free_when_what_its_job_leaves_is_in_order() -> None:
    """The next job under the key may start from that; the end of a job can be seen before."""
    bench = Bench(max_jobs=1)
    bench.submit(JOB, "daily")
    bench.board.publish(_details(JOB, JobStatus.CANCELED))
    with pytest.raises(RpcTimeout, match="put in order; try again"):
        bench.submit(OTHER, "daily")
    assert bench.submit(JOB, "daily") == (JOB, False)
    bench.jobs[JOB].on_ended(JOB)
    assert bench.submit(OTHER, "daily") == (OTHER, False)
    assert bench.submit(JobId("c" * 32), "daily") == (OTHER, True), "the key went with its former owner"


def test_a_submission_waits_for_its_key() -> None:
    bench = Bench()
    bench.submit(JOB, "daily")
    bench.board.publish(_details(JOB, JobStatus.CANCELED))
    found: list[tuple[JobId, bool]] = []
    waits = threading.Thread(target=lambda: found.append(bench.submit(OTHER, "daily")))
    waits.start()
    time.sleep(0.05)
    bench.jobs[JOB].on_ended(JOB)
    bench.mailbox.run_pending()
    waits.join(10)
    assert found == [(OTHER, False)]


def test_submissions_do_not_take_all_threads_of_the_server() -> None:
    bench = Bench()
    release = threading.Event()
    put = bench.stores.graphs.put

    def slow(submission: JobSubmission) -> None:
        release.wait(10)
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
    until, refusal = time.monotonic() + 8, ""
    while "4 other jobs are being submitted; try again" not in refusal:
        assert time.monotonic() < until, refusal
        with pytest.raises(RpcTimeout) as refused:
            bench.submit(JobId("e" * 32))
        refusal = str(refused.value)
    release.set()
    for thread in submissions:
        thread.join(10)
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


def test_a_job_without_its_key_is_not_taken_over() -> None:
    """It was refused, and its master died before it was cleared away."""
    before = Bench()
    before.submit(JOB, "daily")
    before.stores.graphs.put(JobSubmission(OTHER, "j", ProgramKind.GRAPH, "", {}, "daily"))
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert list(bench.jobs) == [JOB] and list(bench.stores.graphs.stored) == [JOB]


def test_a_key_left_by_nobody_is_taken_over_with_the_job() -> None:
    before = Bench()
    before.submit(JOB, "daily")
    before.stores.keys.owners["daily"] = OTHER
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert list(bench.jobs) == [JOB] and bench.stores.keys.owners == {"daily": JOB}


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


def test_closed_ends_with_the_last_job() -> None:
    bench = Bench()
    bench.submit(JOB, "daily")
    bench.dispatcher.close("this cluster is for job j only")
    bench.mailbox.run_pending()
    assert not bench.ended.is_set() and not bench.jobs[JOB].canceled
    with pytest.raises(JobError, match="for job j only"):
        bench.submit(OTHER)
    assert bench.submit(OTHER, "daily") == (JOB, True)
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert bench.ended.is_set()


def test_closed_without_a_job_ends_at_once() -> None:
    bench = Bench()
    bench.dispatcher.close("nothing to do")
    bench.mailbox.run_pending()
    assert bench.ended.is_set()


def test_jobs_hear_what_the_resource_manager_says() -> None:
    bench = Bench()
    bench.submit(JOB)
    bench.dispatcher.resources_wait("queue default is full")
    bench.submit(OTHER)
    bench.dispatcher.task_manager_diagnosed(TaskManagerId("tm"), "out of memory")
    assert bench.jobs[JOB].heard == bench.jobs[OTHER].heard == ["queue default is full", "tm: out of memory"]


# --- what outlives the process ---


def test_a_job_is_durable_before_it_is_accepted() -> None:
    bench = Bench()
    bench.submit(JOB, "daily")
    assert list(bench.stores.graphs.stored) == [JOB] and bench.stores.keys.owners == {"daily": JOB}
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert bench.stores.ended.stored[JOB].overview.status is JobStatus.FINISHED
    assert not bench.stores.graphs.stored and not bench.stores.keys.owners
    assert bench.jobs[JOB].stopped


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


def test_a_new_leader_takes_over_jobs_and_runs_no_ended_one_again() -> None:
    before = Bench()
    for job_id, key in ((JOB, "daily"), (OTHER, "hourly")):
        before.submit(job_id, key)
    before.jobs[OTHER].end(JobStatus.FINISHED)
    before.mailbox.run_pending()
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert list(bench.jobs) == [JOB] and isinstance(bench.jobs[JOB].start_kind, Adopted)
    assert bench.dispatcher.job_details(OTHER).overview.status is JobStatus.FINISHED
    assert bench.submit(OTHER, "hourly") == (OTHER, False)
    assert bench.submit(JobId("c" * 32), "daily") == (JOB, True), "the key was forgotten"
    assert list(bench.jobs) == [JOB]


def test_a_job_that_was_half_cleared_away_is_not_run_again() -> None:
    """The master died between the job's result and the removal of its graph."""
    before = Bench()
    before.submit(JOB, "daily")
    before.stores.ended.put(_details(JOB, JobStatus.FINISHED))
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert not bench.jobs and not bench.stores.graphs.stored and not bench.stores.keys.owners


def test_a_result_the_board_has_forgotten_still_counts() -> None:
    bench = Bench()
    bench.stores.ended.put(_details(JOB, JobStatus.FINISHED))
    assert bench.submit() == (JOB, False)
    assert not bench.jobs


def test_a_job_that_cannot_be_taken_over_stays_stored() -> None:
    before = Bench()
    before.submit()
    bench = Bench(stores=before.stores)
    bench.refusal = ConfigError("unknown option")
    bench.dispatcher.recover()
    assert not bench.jobs and list(bench.stores.graphs.stored) == [JOB]
    details = bench.dispatcher.job_details(JOB)
    assert details.overview.status is JobStatus.RECOVERY_FAILED and "unknown option" in details.waiting_for


def test_an_end_is_seen_once_it_is_written_down() -> None:
    """Another master would run a job again whose end it does not know."""
    bench = Bench(hold_ends=True)
    bench.submit(JOB, "daily")
    bench.stores.ended.error = ZooKeeperUnavailable("no server answers")
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert bench.dispatcher.job_details(JOB).overview.status is JobStatus.CREATED
    assert list(bench.stores.graphs.stored) == [JOB], "cleared away without a result"
    bench.dispatcher.close("that was all")
    bench.mailbox.run_pending()
    assert not bench.ended.is_set()
    bench.stores.ended.error = None
    bench.clock.advance(ARCHIVE_RETRY_MS)
    bench.mailbox.run_pending()
    assert bench.dispatcher.job_details(JOB).overview.status is JobStatus.FINISHED
    assert not bench.stores.graphs.stored and bench.ended.is_set()


def test_nothing_is_decided_while_the_leadership_is_in_doubt() -> None:
    bench = Bench()
    bench.submit()
    bench.leads = False
    bench.dispatcher.suspended()
    for call in (
        lambda: bench.submit(OTHER),
        lambda: bench.dispatcher.cancel_job(JOB),
        lambda: bench.dispatcher.trigger_checkpoint(JOB, CheckpointRequest("r", CheckpointKind.CHECKPOINT)),
        lambda: bench.dispatcher.shut_down_cluster(),
    ):
        with pytest.raises(LeadershipLost, match="in doubt whether this master leads; try again"):
            call()
    assert bench.dispatcher.job_details(JOB).overview.job_id == JOB, "reading is allowed"
    assert not bench.jobs[JOB].canceled and OTHER not in bench.jobs
    bench.dispatcher.resumed()
    bench.leads = True
    bench.submit(OTHER)
    assert bench.jobs[JOB].heard == ["suspended", "resumed"]


def test_checkpoints_are_asked_of_the_job_and_known_after_its_end() -> None:
    bench = Bench()
    bench.submit()
    request = CheckpointRequest("r1", CheckpointKind.CHECKPOINT)
    bench.dispatcher.trigger_checkpoint(JOB, request)
    assert bench.dispatcher.await_checkpoint(JOB, "r1", 10).checkpoint_id == 1
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert bench.dispatcher.await_checkpoint(JOB, "r1", 10).checkpoint_id == 1
    bench.dispatcher.trigger_checkpoint(JOB, request)
    assert len(bench.dispatcher.job_checkpoints(JOB).history) == 1
    assert bench.dispatcher.job_description(JOB) == JobDescription(JOB, "flights")
    with pytest.raises(CheckpointError, match="is FINISHED"):
        bench.dispatcher.trigger_checkpoint(JOB, CheckpointRequest("r2", CheckpointKind.CHECKPOINT))
    with pytest.raises(JobNotFound):
        bench.dispatcher.job_checkpoints(OTHER)
    with pytest.raises(JobNotFound):
        bench.dispatcher.job_description(OTHER)
