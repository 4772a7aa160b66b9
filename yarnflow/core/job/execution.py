"""The life of one attempt of one subtask.

Decides the :class:`ExecutionState` of an attempt.  A new attempt is a new model
(:mod:`yarnflow.core.job.execution_graph`); a terminal one never comes back.  On Spark an
execution is partition *i* of the stages of one vertex: the driver reports for all of them at
once, so most events arrive for many executions together.

Not in the table: reports about a terminal attempt.  The shell drops them by attempt number.

Flink counterparts: ``ExecutionState``, ``Execution``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.fsm import Machine, Row, Timestamps, on, stamped
from yarnflow.core.ids import TaskManagerId, VertexId
from yarnflow.core.messages import ErrorInfo, ExecutionInfo
from yarnflow.core.states import ExecutionState

S = ExecutionState
NO_TASK_MANAGER: Final = TaskManagerId("")


@dataclass(frozen=True, slots=True)
class Execution:
    """One attempt of one subtask."""

    vertex_id: VertexId
    #: 0 … parallelism - 1
    subtask_index: int
    #: 0 for the first
    attempt: int
    state: ExecutionState
    #: time of entry of each state, in order of entry
    timestamps: Timestamps[ExecutionState]
    #: empty until a slot was assigned
    task_manager_id: TaskManagerId = NO_TASK_MANAGER
    #: FAILED only
    error: ErrorInfo | None = None

    @classmethod
    def create(cls, vertex_id: VertexId, subtask_index: int, at_ms: int, attempt: int = 0) -> Execution:
        """A new attempt in state CREATED."""
        return cls(vertex_id, subtask_index, attempt, S.CREATED, ((S.CREATED, at_ms),))

    @property
    def occupies_slot(self) -> bool:
        """The attempt is alive on a TaskManager."""
        return bool(self.task_manager_id) and not self.state.terminal

    def info(self) -> ExecutionInfo:
        times = {state.name: at_ms for state, at_ms in self.timestamps}
        return ExecutionInfo(self.subtask_index, self.attempt, self.state, self.task_manager_id, times)


# --- events -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The attempt waits for a slot."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class SlotAssigned:
    """The attempt has a slot and its executor is being started."""

    at_ms: int
    task_manager_id: TaskManagerId


@dataclass(frozen=True, slots=True)
class DeployAcked:
    """The executor registered with the driver; state is being restored."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """A new master learned from a driver that the attempt is alive."""

    at_ms: int
    task_manager_id: TaskManagerId


@dataclass(frozen=True, slots=True)
class SwitchedToRunning:
    """The driver reports that the query of this vertex is active."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The driver reports that all input was processed."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """The job is being cancelled, failed or restarted."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class CancelCompleted:
    """The attempt has stopped as asked."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt, its executor or its TaskManager broke."""

    at_ms: int
    error: ErrorInfo


ExecutionEvent = (
    Scheduled
    | SlotAssigned
    | DeployAcked
    | Adopted
    | SwitchedToRunning
    | Finished
    | CancelRequested
    | CancelCompleted
    | Failed
)


# --- effects ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExecutionChanged:
    """Log and publish the new state."""

    vertex_id: VertexId
    subtask_index: int
    attempt: int
    old: ExecutionState
    new: ExecutionState
    at_ms: int
    error: ErrorInfo | None = None


Result = tuple[Execution, tuple[ExecutionChanged, ...]]
ExecutionRow = Row[Execution, ExecutionEvent, ExecutionChanged]

# --- functions --------------------------------------------------------------


def _enter(model: Execution, state: ExecutionState, at_ms: int, error: ErrorInfo | None = None) -> Result:
    after = replace(model, state=state, timestamps=stamped(model.timestamps, state, at_ms), error=error)
    change = ExecutionChanged(
        model.vertex_id, model.subtask_index, model.attempt, model.state, state, at_ms, error
    )
    return after, (change,)


def _scheduled(model: Execution, event: Scheduled) -> Result:
    return _enter(model, S.SCHEDULED, event.at_ms)


def _deploying(model: Execution, event: SlotAssigned) -> Result:
    return _enter(replace(model, task_manager_id=event.task_manager_id), S.DEPLOYING, event.at_ms)


def _reconciling(model: Execution, event: Adopted) -> Result:
    return _enter(replace(model, task_manager_id=event.task_manager_id), S.RECONCILING, event.at_ms)


def _initializing(model: Execution, event: DeployAcked) -> Result:
    return _enter(model, S.INITIALIZING, event.at_ms)


def _running(model: Execution, event: SwitchedToRunning) -> Result:
    return _enter(model, S.RUNNING, event.at_ms)


def _finished(model: Execution, event: Finished) -> Result:
    return _enter(model, S.FINISHED, event.at_ms)


def _canceling(model: Execution, event: CancelRequested) -> Result:
    return _enter(model, S.CANCELING, event.at_ms)


def _canceled(model: Execution, event: CancelRequested | CancelCompleted | Finished | Failed) -> Result:
    return _enter(model, S.CANCELED, event.at_ms)


def _failed(model: Execution, event: Failed) -> Result:
    return _enter(model, S.FAILED, event.at_ms, event.error)


def _unchanged(model: Execution, event: object) -> Result:
    return model, ()


# --- the table --------------------------------------------------------------


def _ends_of(state: ExecutionState) -> tuple[ExecutionRow, ...]:
    """What can end an attempt that lives in an executor."""
    return (
        on(state, Finished, _finished, S.FINISHED, note="a short task may end before it is seen to run"),
        on(state, CancelRequested, _canceling, S.CANCELING, note="the executor must be told"),
        on(state, Failed, _failed, S.FAILED, note="task, executor or TaskManager failed"),
    )


_ROWS: Final[tuple[ExecutionRow, ...]] = (
    on(S.CREATED, Scheduled, _scheduled, S.SCHEDULED, note="slots were requested"),
    on(S.CREATED, Adopted, _reconciling, S.RECONCILING, note="an earlier master deployed it"),
    on(S.CREATED, CancelRequested, _canceled, S.CANCELED, note="no TaskManager has to be told"),
    on(S.CREATED, Failed, _failed, S.FAILED, note="the job failed first"),
    on(S.SCHEDULED, SlotAssigned, _deploying, S.DEPLOYING, note="the slot pool assigned a slot"),
    on(S.SCHEDULED, CancelRequested, _canceled, S.CANCELED, note="no TaskManager has to be told"),
    on(S.SCHEDULED, Failed, _failed, S.FAILED, note="no slot in time"),
    on(S.DEPLOYING, DeployAcked, _initializing, S.INITIALIZING, note="its executor registered"),
    on(
        S.DEPLOYING,
        SwitchedToRunning,
        _running,
        S.RUNNING,
        note="the driver's report arrived before the acknowledgement",
    ),
    *_ends_of(S.DEPLOYING),
    on(S.INITIALIZING, SwitchedToRunning, _running, S.RUNNING, note="state restored, query active"),
    *_ends_of(S.INITIALIZING),
    *_ends_of(S.RUNNING),
    on(S.CANCELING, CancelCompleted, _canceled, S.CANCELED, note="stopped as asked"),
    on(S.CANCELING, Finished, _canceled, S.CANCELED, note="ended by itself while being stopped"),
    on(S.CANCELING, Failed, _canceled, S.CANCELED, note="a failure while canceling completes the cancel"),
    on(S.CANCELING, CancelRequested, _unchanged, S.CANCELING, note="requested twice"),
    on(S.CANCELING, DeployAcked, _unchanged, S.CANCELING, note="late acknowledgement"),
    on(S.CANCELING, SwitchedToRunning, _unchanged, S.CANCELING, note="late report"),
    on(S.RECONCILING, SwitchedToRunning, _running, S.RUNNING, note="the adopted driver reports that it runs"),
    *_ends_of(S.RECONCILING),
)


def _contradiction(model: Execution) -> str:
    deployed = (S.DEPLOYING, S.INITIALIZING, S.RUNNING, S.FINISHED, S.CANCELING, S.RECONCILING)
    if model.state in deployed and not model.task_manager_id:
        return f"{model.state.name} without a TaskManager"
    if (model.error is not None) != (model.state is S.FAILED):
        return f"{model.state.name} and error {model.error} do not fit"
    return ""


MACHINE: Final[Machine[Execution, ExecutionEvent, ExecutionChanged]] = Machine(
    name="Execution",
    states=ExecutionState,
    initial=S.CREATED,
    terminal=tuple(state for state in S if state.terminal),
    id_of=lambda model: f"{model.vertex_id}[{model.subtask_index}]#{model.attempt}",
    rows=_ROWS,
    contradiction=_contradiction,
)
