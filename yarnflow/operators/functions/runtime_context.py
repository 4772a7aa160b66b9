"""What a function can know about where it runs, and how it gets its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from yarnflow.errors import InvalidStateUse
from yarnflow.operators.functions.metrics import MetricGroup, RecordedMetrics
from yarnflow.operators.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from yarnflow.operators.state.handles import StateHandles
from yarnflow.operators.state.interfaces import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from yarnflow.operators.state.keyed import KeyedState


class KeyedStateStore(ABC):
    """Gives state of the current key."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """The value of the current key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """The list of the current key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """The map of the current key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """The reduced value of the current key."""

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]:
        """The aggregate of the current key."""


class RuntimeContext(KeyedStateStore):
    """Given to ``open`` of a function; state from it always is that of the key at hand."""

    @abstractmethod
    def get_task_name(self) -> str:
        """Name of the operator's task."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Parallelism of the operator."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Number of key groups: the highest parallelism the job can be scaled to."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Number of this subtask, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """How often this subtask was started again; 0 at first."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Such as ``MyTask (3/6)``, counted from 1."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """A parameter of the job as a whole."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Where the function registers its metrics."""


@dataclass(slots=True)
class TaskInfo:
    """What is known of a task.  The runner changes ``subtask_index`` when it turns to another key group."""

    task_name: str
    parallelism: int = 1
    #: number of key groups
    max_parallelism: int = 128
    subtask_index: int = 0
    attempt_number: int = 0
    job_parameters: dict[str, str] = field(default_factory=dict)


class StateStore(KeyedStateStore):
    """State of one operator by descriptors.

    Parameters
    ----------
    handles : StateHandles or None
        None: the stream is not keyed, and asking for state is an error.
    operator_name : str
        For that error.
    """

    def __init__(self, handles: StateHandles | None, operator_name: str) -> None:
        self._handles = handles
        self._operator_name = operator_name

    def set_namespace(self, namespace: Any) -> None:
        """Turn all state got here to a namespace, such as a window."""
        self._found("").set_namespace(namespace)

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._found(state_descriptor.name).value(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._found(state_descriptor.name).list(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._found(state_descriptor.name).map(state_descriptor)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return self._found(state_descriptor.name).reducing(state_descriptor)

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor
    ) -> AggregatingState[Any, Any]:
        return self._found(state_descriptor.name).aggregating(state_descriptor)

    def _found(self, name: str) -> StateHandles:
        if self._handles is None:
            raise InvalidStateUse(
                f"operator '{self._operator_name}': state '{name}' was asked for on a stream that is not "
                "keyed; call key_by before it"
            )
        return self._handles


class TaskRuntimeContext(StateStore, RuntimeContext):
    """The RuntimeContext of one operator.

    Parameters
    ----------
    info : TaskInfo
        Read at each call, so it may change.
    state : KeyedState or None
        None: the stream is not keyed.
    metrics : RecordedMetrics, optional
        Where the function's metrics are kept.
    """

    def __init__(
        self, info: TaskInfo, state: KeyedState | None = None, metrics: RecordedMetrics | None = None
    ) -> None:
        super().__init__(None if state is None else StateHandles(state), info.task_name)
        self.info = info
        self.metrics = RecordedMetrics() if metrics is None else metrics

    def get_task_name(self) -> str:
        return self.info.task_name

    def get_number_of_parallel_subtasks(self) -> int:
        return self.info.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self.info.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self.info.subtask_index

    def get_attempt_number(self) -> int:
        return self.info.attempt_number

    def get_task_name_with_subtasks(self) -> str:
        return f"{self.info.task_name} ({self.info.subtask_index + 1}/{self.info.parallelism})"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self.info.job_parameters.get(key, default_value)

    def get_metrics_group(self) -> MetricGroup:
        return self.metrics
