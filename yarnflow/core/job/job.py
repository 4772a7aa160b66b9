"""The life of a job as one master sees it.

Decides which :class:`JobStatus` a job is in.  It never decides *whether* a job may restart
(:mod:`yarnflow.core.job.restart`) nor when executions are all running
(:mod:`yarnflow.core.job.execution_graph`): the shell asks those and posts what happened.

A job is RUNNING only while all its executions really run.  Flink enters RUNNING before it
has a slot, and stays there when its last TaskManager is gone; here CREATED and RESTARTING
last until the executions report, so both can fail on their own.

Not in the table: anything after a terminal state.  A late report about a job that is over is
for the shell to drop, because no master may change a result that was published.

Flink counterparts: ``JobStatus``, ``DefaultExecutionGraph.transitionState``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.fsm import Machine, Row, Timestamps, on, stamped
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ErrorInfo
from yarnflow.core.states import GLOBALLY_TERMINAL, JobStatus

S = JobStatus


@dataclass(frozen=True, slots=True)
class JobModel:
    """A job's status and how it got there."""

    job_id: JobId
    state: JobStatus
    #: time of the last entry of each state, in order of entry
    timestamps: Timestamps[JobStatus]
    #: why the job is FAILING, FAILED, RESTARTING or RECOVERY_FAILED; else None
    error: ErrorInfo | None = None

    @classmethod
    def create(cls, job_id: JobId, at_ms: int) -> JobModel:
        """A job that was just accepted."""
        return cls(job_id, S.INITIALIZING, ((S.INITIALIZING, at_ms),))

    def timestamps_ms(self) -> dict[str, int]:
        """Status name → time of the last entry, as REST and Thrift carry it."""
        return {status.name: at_ms for status, at_ms in self.timestamps}


# --- events -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobInitialized:
    """The JobMaster has the graph and will ask for slots and a driver."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class AdoptionBegan:
    """A new master found the job's driver alive and waits for its report."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class GraphUnreadable:
    """A new master found the job, and not what it is to run."""

    at_ms: int
    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class GraphSupplied:
    """Somebody had it: the job's driver, or a user."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class ExecutionsRunning:
    """Every execution is RUNNING (or FINISHED)."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class RestartBegan:
    """A failure the restart strategy allows to recover from."""

    at_ms: int
    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class FailureUnrecoverable:
    """A failure the restart strategy gives up on."""

    at_ms: int
    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """A user wants the job to end."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class AllExecutionsTerminal:
    """No execution is alive any more."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class AllExecutionsFinished:
    """Every execution FINISHED."""

    at_ms: int


JobEvent = (
    JobInitialized
    | AdoptionBegan
    | GraphUnreadable
    | GraphSupplied
    | ExecutionsRunning
    | RestartBegan
    | FailureUnrecoverable
    | CancelRequested
    | AllExecutionsTerminal
    | AllExecutionsFinished
)


# --- effects ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """Persist, log and publish the new status."""

    job_id: JobId
    old: JobStatus
    new: JobStatus
    at_ms: int
    error: ErrorInfo | None = None


Result = tuple[JobModel, tuple[StatusChanged, ...]]
JobRow = Row[JobModel, JobEvent, StatusChanged]

# --- functions --------------------------------------------------------------


def _enter(model: JobModel, status: JobStatus, at_ms: int, error: ErrorInfo | None) -> Result:
    after = replace(model, state=status, timestamps=stamped(model.timestamps, status, at_ms), error=error)
    return after, (StatusChanged(model.job_id, model.state, status, at_ms, error),)


def _created(model: JobModel, event: JobInitialized) -> Result:
    return _enter(model, S.CREATED, event.at_ms, None)


def _reconciling(model: JobModel, event: AdoptionBegan) -> Result:
    return _enter(model, S.RECONCILING, event.at_ms, None)


def _recovery_failed(model: JobModel, event: GraphUnreadable) -> Result:
    return _enter(model, S.RECOVERY_FAILED, event.at_ms, event.error)


def _initializing(model: JobModel, event: GraphSupplied) -> Result:
    return _enter(model, S.INITIALIZING, event.at_ms, None)


def _running(model: JobModel, event: ExecutionsRunning) -> Result:
    return _enter(model, S.RUNNING, event.at_ms, None)


def _restarting(model: JobModel, event: RestartBegan) -> Result:
    return _enter(model, S.RESTARTING, event.at_ms, event.error)


def _still_restarting(model: JobModel, event: RestartBegan) -> Result:
    return replace(model, error=event.error), ()


def _failing(model: JobModel, event: FailureUnrecoverable) -> Result:
    return _enter(model, S.FAILING, event.at_ms, event.error)


def _failed_at_last(model: JobModel, event: AllExecutionsTerminal) -> Result:
    return _enter(model, S.FAILED, event.at_ms, model.error)


def _cancelling(model: JobModel, event: CancelRequested) -> Result:
    return _enter(model, S.CANCELLING, event.at_ms, None)


def _canceled(model: JobModel, event: AllExecutionsTerminal | AllExecutionsFinished) -> Result:
    return _enter(model, S.CANCELED, event.at_ms, None)


def _finished(model: JobModel, event: AllExecutionsFinished) -> Result:
    return _enter(model, S.FINISHED, event.at_ms, None)


def _unchanged(model: JobModel, event: object) -> Result:
    return model, ()


# --- the table --------------------------------------------------------------

_ROWS: Final[tuple[JobRow, ...]] = (
    on(S.INITIALIZING, JobInitialized, _created, S.CREATED, note="graph and options are valid"),
    on(S.INITIALIZING, AdoptionBegan, _reconciling, S.RECONCILING, note="another master's driver runs"),
    on(S.INITIALIZING, CancelRequested, _cancelling, S.CANCELLING, note="canceled before it started"),
    on(S.INITIALIZING, GraphUnreadable, _recovery_failed, S.RECOVERY_FAILED, note="its graph is damaged"),
    on(S.RECOVERY_FAILED, GraphSupplied, _initializing, S.INITIALIZING, note="by its driver, or a user"),
    on(S.RECOVERY_FAILED, CancelRequested, _cancelling, S.CANCELLING, note="requested by the user"),
    on(S.CREATED, ExecutionsRunning, _running, S.RUNNING, note="slots, driver and executors are ready"),
    # The next two are not in Flink's table: there a job is RUNNING while it still waits for slots, and a
    # slot request that times out is a failure of a RUNNING job.  Here it is one of a CREATED job.
    on(S.CREATED, RestartBegan, _restarting, S.RESTARTING, note="no slots in time, or the driver was lost"),
    on(S.CREATED, FailureUnrecoverable, _failing, S.FAILING, note="same; the restart strategy gives up"),
    on(S.CREATED, CancelRequested, _cancelling, S.CANCELLING, note="requested by the user"),
    on(S.RUNNING, RestartBegan, _restarting, S.RESTARTING, note="failure; the restart strategy allows it"),
    on(S.RUNNING, FailureUnrecoverable, _failing, S.FAILING, note="failure; the restart strategy gives up"),
    on(S.RUNNING, CancelRequested, _cancelling, S.CANCELLING, note="requested by the user"),
    on(S.RUNNING, AllExecutionsFinished, _finished, S.FINISHED, note="all input read, all results written"),
    on(S.RESTARTING, ExecutionsRunning, _running, S.RUNNING, note="all executions run again"),
    on(
        S.RESTARTING,
        RestartBegan,
        _still_restarting,
        S.RESTARTING,
        note="the attempt failed before it ran; the newest cause is shown",
    ),
    on(S.RESTARTING, FailureUnrecoverable, _failing, S.FAILING, note="the restart strategy gives up"),
    on(S.RESTARTING, CancelRequested, _cancelling, S.CANCELLING, note="requested by the user"),
    on(S.FAILING, AllExecutionsTerminal, _failed_at_last, S.FAILED, note="no execution runs any more"),
    on(S.FAILING, CancelRequested, _cancelling, S.CANCELLING, note="a cancel overrides the failure"),
    # The first cause is the root cause; what breaks while the job is torn down is noise.
    on(S.FAILING, FailureUnrecoverable, _unchanged, S.FAILING, note="the first cause is kept"),
    on(S.FAILING, RestartBegan, _unchanged, S.FAILING, note="too late to restart"),
    on(S.FAILING, ExecutionsRunning, _unchanged, S.FAILING, note="late report"),
    on(S.CANCELLING, AllExecutionsTerminal, _canceled, S.CANCELED, note="no execution runs any more"),
    on(S.CANCELLING, AllExecutionsFinished, _canceled, S.CANCELED, note="finished while being canceled"),
    on(S.CANCELLING, CancelRequested, _unchanged, S.CANCELLING, note="requested twice"),
    on(S.CANCELLING, FailureUnrecoverable, _unchanged, S.CANCELLING, note="the job ends in any case"),
    on(S.CANCELLING, RestartBegan, _unchanged, S.CANCELLING, note="the job ends in any case"),
    on(S.CANCELLING, ExecutionsRunning, _unchanged, S.CANCELLING, note="late report"),
    on(S.RECONCILING, ExecutionsRunning, _running, S.RUNNING, note="adopted without a restart"),
    on(S.RECONCILING, RestartBegan, _restarting, S.RESTARTING, note="no report of the driver, or a failure"),
    on(S.RECONCILING, FailureUnrecoverable, _failing, S.FAILING, note="same; the restart strategy gives up"),
    on(S.RECONCILING, CancelRequested, _cancelling, S.CANCELLING, note="requested by the user"),
)


def _contradiction(model: JobModel) -> str:
    if model.state in (S.FAILING, S.FAILED, S.RESTARTING, S.RECOVERY_FAILED) and model.error is None:
        return f"{model.state.name} without a cause"
    if model.state in (S.RUNNING, S.FINISHED, S.CANCELED) and model.error is not None:
        return f"{model.state.name} with a cause of failure"
    return ""


MACHINE: Final[Machine[JobModel, JobEvent, StatusChanged]] = Machine(
    name="Job",
    # Flink suspends the jobs of a master that does not lead any more; here that master ends
    states=[status for status in S if status is not S.SUSPENDED],
    initial=S.INITIALIZING,
    terminal=GLOBALLY_TERMINAL,
    id_of=lambda model: model.job_id,
    rows=_ROWS,
    contradiction=_contradiction,
)
