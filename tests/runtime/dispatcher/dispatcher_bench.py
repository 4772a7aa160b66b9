"""A Dispatcher with fake jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointRequest,
    CheckpointStatus,
    CheckpointTrigger,
    JobCheckpoints,
    RestoreSettings,
)
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.job_run.events import StartKind
from yarnflow.core.messages import (
    DriverRegistration,
    DriverReport,
    ExecutorExited,
    Fence,
    JobDetails,
    JobOverview,
    JobSubmission,
    JobSubmitted,
    LeaderInfo,
    ProgramKind,
    SlotOffer,
)
from yarnflow.core.states import JobStatus
from yarnflow.errors import YarnflowError
from yarnflow.runtime.dispatcher.dispatcher import Dispatcher
from yarnflow.runtime.dispatcher.job_archive import JobArchive
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.testing.runtime import InlineEffects, InlineMailbox, ManualClock
from yarnflow.testing.stores import FakeJobStores

JOB, OTHER = JobId("a" * 32), JobId("b" * 32)


def details(job_id: JobId, status: JobStatus = JobStatus.CREATED) -> JobDetails:
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
        self.board.publish(details(self.job_id))

    def cancel(self) -> None:
        self.canceled = True

    def stop(self) -> None:
        self.stopped = True

    def end(self, status: JobStatus) -> None:
        self.board.publish(details(self.job_id, status))
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


def _goes_on_unasked(submission: JobSubmission) -> bool:
    return submission.restore is None


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
        #: jobs whose state was put in order, and how they ended
        self.settled: list[tuple[JobId, JobStatus]] = []
        self.settle_error: YarnflowError | None = None
        self.ended = threading.Event()
        #: jobs that have ended for good, with what is known of them then
        self.over: list[tuple[JobId, JobStatus, JobCheckpoints, JobDescription | None]] = []
        self.dispatcher = Dispatcher(
            self.mailbox,
            self.board,
            self._create,
            lambda: LeaderInfo(Fence("leader", 1), "jm:1", "0", "default"),
            self,
            self.ended.set,
            1_000,
            JobArchive(self.stores, _checkpoint_root, self._settle, _goes_on_unasked),
            InlineEffects(),
            max_jobs,
            on_ended=self._over,
        )

    def _over(self, job_id: JobId) -> None:
        """What whoever archives the job would find."""
        known = self.dispatcher.job_checkpoints(job_id), self.dispatcher.job_description(job_id)
        self.over.append((job_id, self.board.get(job_id).overview.status, *known))

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

    def _settle(self, submission: JobSubmission, details: JobDetails) -> None:
        assert self.stores.graphs.get(submission.job_id) is not None, "the next leader could not do it again"
        if self.settle_error is not None:
            raise self.settle_error
        self.settled.append((submission.job_id, details.overview.status))

    def submit(self, job_id: JobId = JOB, key: str = "") -> tuple[JobId, bool]:
        answer = self.ask(job_id, key)
        return answer.job_id, answer.attached_to_existing

    def ask(
        self,
        job_id: JobId,
        key: str = "",
        digest: str = "",
        *,
        earlier: str = "",
        restore: RestoreSettings | None = None,
    ) -> JobSubmitted:
        """Submit a job; ``digest`` is its program's, ``earlier`` the key an earlier version gave it."""
        self.mailbox.run_pending()
        submission = JobSubmission(
            job_id,
            "j",
            ProgramKind.GRAPH,
            "",
            {},
            key,
            restore=restore,
            program_digest=digest,
            earlier_job_key=earlier,
        )
        return self.dispatcher.submit_job(submission)
