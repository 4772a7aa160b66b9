"""What triggers and assigners of an operator can ask for and do."""

from __future__ import annotations

from typing import Any

from yarnflow.errors import InvalidStateUse
from yarnflow.operators.functions.metrics import MetricGroup
from yarnflow.operators.functions.runtime_context import KeyedStateStore, RuntimeContext
from yarnflow.operators.process.operator import OperatorContext
from yarnflow.operators.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from yarnflow.operators.state.handles import StateHandles, table_of
from yarnflow.operators.state.interfaces import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    State,
    ValueState,
)
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.operator.contents import (
    AggregatedContents,
    Contents,
    ElementContents,
    ReducedContents,
)
from yarnflow.operators.windows.trigger import Trigger


class NoWindowState(KeyedStateStore):
    """State per window where windows merge: there is none, for it could not follow a merge."""

    def get_state(self, state_descriptor: StateDescriptor) -> ValueState[Any]:
        raise _refused(state_descriptor)

    def get_list_state(self, state_descriptor: StateDescriptor) -> ListState[Any]:
        raise _refused(state_descriptor)

    def get_map_state(self, state_descriptor: StateDescriptor) -> MapState[Any, Any]:
        raise _refused(state_descriptor)

    def get_reducing_state(self, state_descriptor: StateDescriptor) -> ReducingState[Any]:
        raise _refused(state_descriptor)

    def get_aggregating_state(self, state_descriptor: StateDescriptor) -> AggregatingState[Any, Any]:
        raise _refused(state_descriptor)


def _refused(state_descriptor: StateDescriptor) -> InvalidStateUse:
    return InvalidStateUse(
        f"state '{state_descriptor.name}': windows that merge have no state per window; "
        "use context.global_state()"
    )


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """The context of an assigner."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def get_current_processing_time(self) -> int:
        return self._context.processing_time_ms

    def get_runtime_context(self) -> RuntimeContext:
        return self._context.runtime_context


class WindowTriggerContext(Trigger.OnMergeContext):
    """The context of a trigger, moved from key to key and from window to window.

    Attributes
    ----------
    key, namespace
        Whose timers and state the trigger works on.
    merged : list
        Namespaces of the windows that became this one, while the trigger is told of it.
    """

    def __init__(self, context: OperatorContext, state: KeyedState) -> None:
        self._context = context
        self._state = state
        self._timers = state.timers
        self._handles = StateHandles(state)
        #: state name → what merges it
        self._merging: dict[str, Contents] = {}
        self.key: Any = None
        self.namespace: Any = None
        self.merged: list[Any] = []

    def get_current_processing_time(self) -> int:
        return self._context.processing_time_ms

    def get_metric_group(self) -> MetricGroup:
        return self._context.runtime_context.get_metrics_group()

    def get_current_watermark(self) -> int:
        return self._context.current_watermark_ms

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.register_processing_time(time, self.key, self.namespace)

    def register_event_time_timer(self, time: int) -> None:
        self._timers.register_event_time(time, self.key, self.namespace)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete_processing_time(time, self.key, self.namespace)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete_event_time(time, self.key, self.namespace)

    def move(self, key: Any, namespace: Any) -> None:
        """Turn to a window of a key."""
        self.key, self.namespace = key, namespace
        self._handles.set_namespace(namespace)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> State:
        handles = self._handles
        if isinstance(state_descriptor, ReducingStateDescriptor):
            return handles.reducing(state_descriptor)
        if isinstance(state_descriptor, ValueStateDescriptor):
            return handles.value(state_descriptor)
        if isinstance(state_descriptor, ListStateDescriptor):
            return handles.list(state_descriptor)
        if isinstance(state_descriptor, AggregatingStateDescriptor):
            return handles.aggregating(state_descriptor)
        if isinstance(state_descriptor, MapStateDescriptor):
            return handles.map(state_descriptor)
        raise InvalidStateUse(
            f"operator '{self._state.operator_name}': a trigger asked for state with "
            f"{type(state_descriptor).__name__}; use a state descriptor such as ValueStateDescriptor"
        )

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        if self.merged:
            contents = self._mergeable(state_descriptor)
            contents.merge(self.key, self.namespace, self.merged)

    def _mergeable(self, descriptor: StateDescriptor) -> Contents:
        found = self._merging.get(descriptor.name)
        if found is None:
            if isinstance(descriptor, ListStateDescriptor):
                found = ElementContents()
            elif isinstance(descriptor, ReducingStateDescriptor):
                found = ReducedContents(descriptor.reducer())
            elif isinstance(descriptor, AggregatingStateDescriptor):
                found = AggregatedContents(descriptor.get_agg_function())
            else:
                raise InvalidStateUse(
                    f"operator '{self._state.operator_name}': state '{descriptor.name}' of a trigger cannot "
                    "be merged; use list, reducing or aggregating state"
                )
            found.table = table_of(self._state, descriptor, found.kind)
            self._merging[descriptor.name] = found
        return found
