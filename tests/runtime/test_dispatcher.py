"""What becomes a job, and who may read about it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from yarnflow.core.ids import AllocationId, DriverId, JobId, TaskManagerId
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
from yarnflow.errors import JobError, JobNotFound
from yarnflow.process.clock import SystemClock
from yarnflow.runtime.dispatcher import Dispatcher
from yarnflow.runtime.job_board import JobBoard
from yarnflow.testing.runtime import InlineMailbox, ManualClock

JOB, OTHER = JobId("a" * 32), JobId("b" * 32)


def _details(job_id: JobId, status: JobStatus = JobStatus.CREATED) -> JobDetails:
    return JobDetails(JobOverview(job_id, "j", status, 1, -1), 0)


class FakeJob:
    """A JobMaster that publishes itself and ends when told."""

    def __init__(self, job_id: JobId, board: JobBoard, on_ended: Callable[[JobId], None]) -> None:
        self.job_id, self.board, self.on_ended = job_id, board, on_ended
        self.canceled = self.stopped = False

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

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None: ...

    def slot_lost(self, allocation_id: AllocationId, reason: str) -> None: ...

    def slots_unfulfillable(self, message: str) -> None: ...


class Bench:
    """A Dispatcher with fake jobs."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.board = JobBoard(self.clock, 2)
        self.mailbox = InlineMailbox("dispatcher", self.clock)
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
        )

    def slot_counts(self) -> tuple[int, int, int]:
        return 1, 2, 1

    def _create(self, submission: JobSubmission, on_ended: Callable[[JobId], None]) -> FakeJob:
        job = self.jobs[submission.job_id] = FakeJob(submission.job_id, self.board, on_ended)
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


def test_cancel_of_an_ended_job() -> None:
    bench = Bench()
    bench.submit()
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    with pytest.raises(JobError, match="FINISHED already"):
        bench.dispatcher.cancel_job(JOB)


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


def test_a_long_poll_sees_the_next_version() -> None:
    board = JobBoard(SystemClock(), 5)
    board.publish(_details(JOB))
    seen: list[JobDetails] = []
    thread = threading.Thread(target=lambda: seen.append(board.await_change(JOB, 1, 30_000)))
    thread.start()
    board.publish(_details(JOB, JobStatus.RUNNING))
    thread.join(30)
    assert seen[0].overview.status is JobStatus.RUNNING
    assert board.await_change(JOB, 99, 0).version == 2
