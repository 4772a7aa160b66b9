"""A JobMaster as the Dispatcher sees it.

Flink counterpart: ``JobManagerRunner``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointRequest, JobCheckpoints
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.job_run.events import StartKind
from yarnflow.core.messages import (
    DriverRegistration,
    DriverReport,
    ExecutorExited,
    JobSubmission,
    SlotOffer,
)


class JobEndpoint(Protocol):
    """A JobMaster as the Dispatcher sees it; every method only posts, except those with answers."""

    def start(self) -> None: ...

    def cancel(self) -> None: ...

    def stop(self) -> None: ...

    def offer_slots(self, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]: ...

    def executor_exited(self, report: ExecutorExited) -> None: ...

    def register_driver(self, registration: DriverRegistration) -> None: ...

    def report(self, report: DriverReport) -> None: ...

    def driver(self) -> DriverRegistration | None:
        """The job's own driver, not its hot spare."""

    def description(self) -> JobDescription:
        """What the job is; any thread, quick, also after its end."""

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None: ...

    def slot_lost(self, allocation_id: AllocationId, reason: str) -> None: ...

    def slots_unfulfillable(self, message: str) -> None: ...

    def task_manager_diagnosed(self, task_manager_id: TaskManagerId, text: str) -> None: ...

    def resources_wait(self, text: str) -> None: ...

    def trigger_checkpoint(self, request: CheckpointRequest) -> None: ...

    def await_checkpoint(self, request_id: str, timeout_ms: int) -> CheckpointInfo:
        """Also after the job's end, until :meth:`stop`."""

    def checkpoints(self) -> JobCheckpoints:
        """Also after the job's end, until :meth:`stop`."""

    def await_collected(self, position: str, timeout_ms: int) -> CollectedPage:
        """Also after the job's end, until :meth:`stop`; blocks."""

    def suspended(self) -> None:
        """Nothing may be decided for good for now."""

    def resumed(self) -> None: ...


class JobEndpointFactory(Protocol):
    """Makes JobMasters, not started."""

    def __call__(
        self, submission: JobSubmission, on_ended: Callable[[JobId], None], start: StartKind
    ) -> JobEndpoint:
        """``on_ended`` is called once, when the job is globally terminal and nothing of it is left."""
