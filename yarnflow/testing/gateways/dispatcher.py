"""A Dispatcher for clients to talk to: each of its jobs goes through the states that the test gives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointRequest, JobCheckpoints
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import JobId
from yarnflow.core.messages import (
    ClusterOverview,
    ErrorInfo,
    FaultInjected,
    FaultRequest,
    Fence,
    JobDetails,
    JobOverview,
    JobSubmission,
    JobSubmitted,
    LeaderInfo,
    LogLevel,
    LogLevelAnswer,
    LogLevelResult,
    RestAccess,
)
from yarnflow.core.states import JobStatus
from yarnflow.errors import JobNotFound, RpcUnavailable, YarnflowError


def details(
    job_id: JobId, version: int, status: JobStatus, name: str = "flights", error: ErrorInfo | None = None
) -> JobDetails:
    """A job that began at 1000 ms and, if it is over, ended at 3000 ms."""
    order = list(JobStatus).index(status)
    overview = JobOverview(job_id, name, status, 1000, 3000 if status.terminal else -1, "", 1, 1)
    return JobDetails(overview, version, {status.value: 1000 + order}, error=error)


class FakeDispatcher:
    """:class:`~yarnflow.core.ports.RemoteDispatcher` whose jobs change when they are waited for.

    Each wait for a change leads to the next of ``states``; after the last one a job stays as it is
    until somebody cancels it.

    Attributes
    ----------
    known_fence : Fence, optional
        Whom calls are meant for; None as long as no test says otherwise.
    submissions, cancelled, requests, faults, levels, shut_downs
        What was asked for, in order.
    level_answers : tuple of LogLevelAnswer
        What processes answer to a change of a log level.
    error : ErrorInfo, optional
        Of jobs that are FAILED.
    before : callable
        Called with the name of each method that is called, before it does anything; may raise.
    down : YarnflowError, optional
        Raised by every method while set.
    unreachable : bool
        Waits for changes raise RpcUnavailable.
    leads : LeaderInfo
        The answer of :meth:`leader`.
    raise_on_submit, refuse_faults : YarnflowError, optional
        Raised by :meth:`submit_job` and :meth:`inject_fault` while set.
    refusals : list of YarnflowError
        Raised one after another by :meth:`trigger_checkpoint`, before it accepts any.
    outcomes : list
        Given out one after another to whoever waits for a checkpoint; errors are raised.
    pages : list of CollectedPage
        Given out one after another to whoever collects elements.
    positions : list of str
        What was said to have arrived, in order.
    may_shut_down : bool
        Whether the test expects that somebody ends the cluster.
    on_poll : callable
        Called with the version that a wait for a change leads to.
    """

    def __init__(
        self, states: Sequence[JobStatus] = (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.FINISHED)
    ) -> None:
        self.states = list(states)
        self.known_fence: Fence | None = None
        self.error: ErrorInfo | None = None
        self.before: Callable[[str], None] = lambda method: None
        self.down: YarnflowError | None = None
        self.leads = LeaderInfo(Fence("l", 1), "localhost:1", "0", "default")
        self.submissions: list[JobSubmission] = []
        self.cancelled: list[JobId] = []
        self.raise_on_submit: YarnflowError | None = None
        self.unreachable = False
        self.changed = threading.Condition()
        self.outcomes: list[CheckpointInfo | YarnflowError] = []
        self.requests: list[tuple[JobId, CheckpointRequest]] = []
        self.refusals: list[YarnflowError] = []
        self.checkpoints = JobCheckpoints(JobId("0" * 32))
        self.on_poll: Callable[[int], None] = lambda version: None
        self.faults: list[FaultRequest] = []
        self.refuse_faults: YarnflowError | None = None
        self.pages: list[CollectedPage] = []
        self.positions: list[str] = []
        self.levels: list[LogLevel] = []
        self.level_answers: tuple[LogLevelAnswer, ...] = (LogLevelAnswer("JobManager"),)
        self.may_shut_down = False
        self.shut_downs = 0

    def leader(self) -> LeaderInfo:
        """Answer :attr:`leads`."""
        self._begin("leader")
        return self.leads

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        """Take the job, or raise :attr:`raise_on_submit`."""
        self._begin("submit_job")
        if self.raise_on_submit is not None:
            raise self.raise_on_submit
        self.submissions.append(submission)
        return JobSubmitted(submission.job_id)

    def list_jobs(self) -> Sequence[JobOverview]:
        """All that were submitted, as RUNNING."""
        self._begin("list_jobs")
        return [details(s.job_id, 0, JobStatus.RUNNING, s.name).overview for s in self.submissions]

    def job_details(self, job_id: JobId) -> JobDetails:
        """In the last of :attr:`states`, or CANCELED."""
        self._begin("job_details")
        if not any(s.job_id == job_id for s in self.submissions):
            raise JobNotFound(f"no job {job_id}")
        return details(job_id, 0, JobStatus.CANCELED if job_id in self.cancelled else self.states[-1])

    def await_job_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        """In the next of :attr:`states`; after the last one, wait for a cancel."""
        self._begin("await_job_change")
        if self.unreachable:
            raise RpcUnavailable("nobody there")
        version = seen_version + 1
        self.on_poll(version)
        with self.changed:
            if job_id in self.cancelled:
                return details(job_id, version, JobStatus.CANCELED)
            if version >= len(self.states):
                # as a real one: nothing new until somebody cancels
                self.changed.wait_for(lambda: job_id in self.cancelled, timeout=10)
                return details(job_id, version, JobStatus.CANCELED)
        status = self.states[version]
        return details(job_id, version, status, error=self.error if status is JobStatus.FAILED else None)

    def cancel_job(self, job_id: JobId) -> None:
        """Let the job be CANCELED from now on."""
        self._begin("cancel_job")
        with self.changed:
            self.cancelled.append(job_id)
            self.changed.notify_all()

    def trigger_checkpoint(self, job_id: JobId, request: CheckpointRequest) -> None:
        """Accept the request, or raise the next of :attr:`refusals`."""
        self._begin("trigger_checkpoint")
        if self.refusals:
            raise self.refusals.pop(0)
        self.requests.append((job_id, request))

    def await_checkpoint(self, job_id: JobId, request_id: str, timeout_ms: int) -> CheckpointInfo:
        """Give the next of :attr:`outcomes` to whoever waits for the last request."""
        self._begin("await_checkpoint")
        assert self.requests[-1][1].request_id == request_id
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, YarnflowError):
            raise outcome
        return outcome

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """Answer :attr:`checkpoints`, as those of any job."""
        self._begin("job_checkpoints")
        return replace(self.checkpoints, job_id=job_id)

    def await_collected(self, job_id: JobId, position: str, timeout_ms: int) -> CollectedPage:
        """The next of :attr:`pages`, one after another; after the last one, wait for a cancel."""
        self._begin("await_collected")
        with self.changed:
            self.positions.append(position)
            if self.pages and timeout_ms:
                return self.pages.pop(0)
            if timeout_ms:
                self.changed.wait_for(lambda: job_id in self.cancelled, timeout=10)
            return CollectedPage((), position, ended=job_id in self.cancelled)

    def cluster_overview(self) -> ClusterOverview:
        """One TaskManager with two slots, one of them free."""
        self._begin("cluster_overview")
        return ClusterOverview(1, 2, 1, 1, 0, 0, 0, "0")

    def shut_down_cluster(self) -> None:
        """Count the calls; a test that does not expect any fails."""
        self._begin("shut_down_cluster")
        assert self.may_shut_down, "nobody was to shut the cluster down"
        self.shut_downs += 1

    def rest_access(self) -> RestAccess:
        """An address and two tokens."""
        self._begin("rest_access")
        return RestAccess("http://jm:8081", "read-token", "write-token")

    def inject_fault(self, request: FaultRequest) -> FaultInjected:
        """Break nothing, or raise :attr:`refuse_faults`."""
        self._begin("inject_fault")
        if self.refuse_faults is not None:
            raise self.refuse_faults
        self.faults.append(request)
        return FaultInjected("pid 7", 0)

    def change_log_level(self, level: LogLevel) -> LogLevelResult:
        """Remember it, and answer :attr:`level_answers`."""
        self._begin("change_log_level")
        self.levels.append(level)
        return LogLevelResult(self.level_answers)

    def _begin(self, method: str) -> None:
        self.before(method)
        if self.down is not None:
            raise self.down
