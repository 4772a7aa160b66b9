"""A cluster that exists only in the test."""

from __future__ import annotations

from yarnflow.client.cluster import NO_PAGE, Page
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
)
from yarnflow.core.ids import JobId
from yarnflow.core.messages import (
    ClusterOverview,
    Fence,
    JobDetails,
    JobSubmission,
    JobSubmitted,
)
from yarnflow.core.states import JobStatus
from yarnflow.errors import YarnflowError
from yarnflow.testing.gateways.dispatcher import FakeDispatcher


def checkpoint(
    number: int,
    status: CheckpointStatus = CheckpointStatus.COMPLETED,
    kind: CheckpointKind = CheckpointKind.CHECKPOINT,
    path: str = "",
    failure: str = "",
) -> CheckpointInfo:
    name = f"chk-{number}" if kind is CheckpointKind.CHECKPOINT else f"savepoint-ababab-{number:012x}"
    done = status is CheckpointStatus.COMPLETED
    return CheckpointInfo(
        number,
        kind,
        status,
        CheckpointTrigger.INTERVAL if kind is CheckpointKind.CHECKPOINT else CheckpointTrigger.SAVEPOINT,
        trigger_ms=100_000 + number,
        end_ms=-1 if status is CheckpointStatus.IN_PROGRESS else 102_500 + number,
        external_path=path or (f"hdfs://n/checkpoints/{name}" if done else ""),
        failure=failure,
    )


class FakeConnection:
    """A cluster connection to a :class:`FakeDispatcher`."""

    def __init__(self, dispatcher: FakeDispatcher, owned: bool = True) -> None:
        self.dispatcher = dispatcher
        self._owned = owned
        self.lost: YarnflowError | None = None
        self.stops: list[tuple[bool, bool]] = []
        #: slots asked for with each job
        self.slots: list[int] = []
        #: what a cluster that is gone has left
        self.left: JobDetails | None = None
        #: where another master may take over
        self.leader: Fence | None = None

    @property
    def owned(self) -> bool:
        return self._owned

    @property
    def named_by(self) -> str:
        return "" if self._owned else "-m host:1"

    def submit(self, submission: JobSubmission, required_slots: int) -> JobSubmitted:
        self.slots.append(required_slots)
        return self.dispatcher.submit_job(submission)

    @property
    def programs(self) -> None:
        """Programs run in the client."""

    def cluster_of(self, job_id: JobId) -> FakeConnection:
        return self

    def final_details(self, job_id: JobId) -> JobDetails | None:
        return self.left

    def gateway(self) -> FakeDispatcher:
        return self.dispatcher

    def present_gateway(self) -> FakeDispatcher:
        return self.dispatcher

    def followed(self) -> Fence | None:
        return self.leader

    def failure(self) -> YarnflowError | None:
        return self.lost

    def stop(self, *, forced: bool, failed: bool) -> str:
        self.stops.append((forced, failed))
        return "/kept/logs" if failed else ""


class Listener:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.states: list[JobStatus] = []
        self.notes: list[str] = []
        self.names: list[str] = []

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool, page: Page = NO_PAGE) -> None:
        self.names.append(name)

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        self.states.append(details.overview.status)

    def note(self, text: str) -> None:
        self.notes.append(text)
