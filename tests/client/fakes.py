"""A cluster that exists only in the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointRequest,
    CheckpointStatus,
    CheckpointTrigger,
    JobCheckpoints,
)
from yarnflow.core.ids import JobId
from yarnflow.core.messages import (
    ClusterOverview,
    ErrorInfo,
    Fence,
    JobDetails,
    JobOverview,
    JobSubmission,
    JobSubmitted,
    LeaderInfo,
)
from yarnflow.core.states import JobStatus
from yarnflow.errors import JobNotFound, RpcUnavailable, YarnflowError

S = JobStatus


def details(
    job_id: JobId, version: int, status: JobStatus, name: str = "flights", error: ErrorInfo | None = None
) -> JobDetails:
    order = list(JobStatus).index(status)
    overview = JobOverview(job_id, name, status, 1000, 3000 if status.terminal else -1, "", 1, 1)
    return JobDetails(overview, version, {status.value: 1000 + order}, error=error)


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


class FakeDispatcher:
    """Plays a script of states for every job."""

    def __init__(self, states: Sequence[JobStatus] = (S.CREATED, S.RUNNING, S.FINISHED)) -> None:
        self.states = list(states)
        self.error: ErrorInfo | None = None
        self.submissions: list[JobSubmission] = []
        self.cancelled: list[JobId] = []
        self.raise_on_submit: YarnflowError | None = None
        self.unreachable = False
        self.stay_running = False
        self.changed = threading.Condition()
        #: given out one after another to whoever waits for a checkpoint; errors are raised
        self.outcomes: list[CheckpointInfo | YarnflowError] = []
        self.requests: list[tuple[JobId, CheckpointRequest]] = []
        self.refusals: list[YarnflowError] = []
        self.checkpoints = JobCheckpoints(JobId("0" * 32))
        self.on_poll: Callable[[int], None] = lambda version: None

    def leader(self) -> LeaderInfo:
        return LeaderInfo(Fence("l", 1), "localhost:1", "0", "default")

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        if self.raise_on_submit is not None:
            raise self.raise_on_submit
        self.submissions.append(submission)
        return JobSubmitted(submission.job_id)

    def list_jobs(self) -> Sequence[JobOverview]:
        return [details(s.job_id, 0, S.RUNNING, s.name).overview for s in self.submissions]

    def job_details(self, job_id: JobId) -> JobDetails:
        if not any(s.job_id == job_id for s in self.submissions):
            raise JobNotFound(f"no job {job_id}")
        return details(job_id, 0, S.CANCELED if job_id in self.cancelled else self.states[-1])

    def await_job_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        if self.unreachable:
            raise RpcUnavailable("nobody there")
        version = seen_version + 1
        self.on_poll(version)
        with self.changed:
            if job_id in self.cancelled:
                return details(job_id, version, S.CANCELED)
            if version >= len(self.states):
                # as a real one: nothing new until somebody cancels
                self.changed.wait_for(lambda: job_id in self.cancelled, timeout=10)
                return details(job_id, version, S.CANCELED)
        status = self.states[version]
        return details(job_id, version, status, error=self.error if status is S.FAILED else None)

    def cancel_job(self, job_id: JobId) -> None:
        with self.changed:
            self.cancelled.append(job_id)
            self.changed.notify_all()

    def trigger_checkpoint(self, job_id: JobId, request: CheckpointRequest) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.requests.append((job_id, request))

    def await_checkpoint(self, job_id: JobId, request_id: str, timeout_ms: int) -> CheckpointInfo:
        assert self.requests[-1][1].request_id == request_id
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, YarnflowError):
            raise outcome
        return outcome

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        return replace(self.checkpoints, job_id=job_id)

    def cluster_overview(self) -> ClusterOverview:
        return ClusterOverview(1, 2, 1, 1, 0, 0, 0, "0")

    def shut_down_cluster(self) -> None:
        raise AssertionError("nobody asks for this")


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

    @property
    def owned(self) -> bool:
        return self._owned

    @property
    def named_by(self) -> str:
        return "" if self._owned else "-m host:1"

    def submit(self, submission: JobSubmission, required_slots: int) -> JobSubmitted:
        self.slots.append(required_slots)
        return self.dispatcher.submit_job(submission)

    def cluster_of(self, job_id: JobId) -> FakeConnection:
        return self

    def final_details(self, job_id: JobId) -> JobDetails | None:
        return self.left

    def gateway(self) -> FakeDispatcher:
        return self.dispatcher

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

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool) -> None:
        self.names.append(name)

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        self.states.append(details.overview.status)

    def note(self, text: str) -> None:
        self.notes.append(text)
