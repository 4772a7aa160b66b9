"""What a function can know about where it runs, and how it gets its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from yarnflow.operators.functions.metrics import MetricGroup
from yarnflow.operators.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from yarnflow.operators.state.interfaces import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)


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
