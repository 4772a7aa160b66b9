"""Operators of a stream beside a broadcast one: input 0 has the elements, input 1 is broadcast.

Every group has a copy of the broadcast state, since every group gets all broadcast elements; it
is stored under the key None and a name of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from yarnflow.errors import InvalidStateUse
from yarnflow.operators.elements import Chunk, Output
from yarnflow.operators.functions.broadcast import (
    BroadcastReadOnlyContext,
    KeyedBroadcastContext,
    KeyedBroadcastTimerContext,
)
from yarnflow.operators.process.contexts import KeyedProcessContext, ProcessContext, state_of
from yarnflow.operators.process.elementwise import FunctionOperator
from yarnflow.operators.process.operator import Operator, OperatorContext
from yarnflow.operators.process.process_elements import TimerOperator
from yarnflow.operators.process.results import emit_results
from yarnflow.operators.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from yarnflow.operators.state.handles import (
    BroadcastHandle,
    ReadOnlyBroadcastHandle,
    StateHandles,
    broadcast_table,
)
from yarnflow.operators.state.interfaces import BroadcastState, ReadOnlyBroadcastState
from yarnflow.operators.state.keyed import NO_KEY, KeyedState
from yarnflow.operators.state.kinds import StateKind


class BroadcastStates:
    """Broadcast states of an operator by the names of their descriptors."""

    def __init__(self, keyed: KeyedState) -> None:
        self._keyed = keyed
        self._writable: dict[str, BroadcastHandle] = {}
        self._read_only: dict[str, ReadOnlyBroadcastHandle] = {}

    def writable(self, descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The state to be changed."""
        found = self._writable.get(descriptor.name)
        if found is None:
            found = BroadcastHandle(self._keyed, broadcast_table(self._keyed, descriptor))
            self._writable[descriptor.name] = found
        return found

    def read_only(self, descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """The state to be read."""
        found = self._read_only.get(descriptor.name)
        if found is None:
            found = ReadOnlyBroadcastHandle(self._keyed, broadcast_table(self._keyed, descriptor))
            self._read_only[descriptor.name] = found
        return found


class ElementSideContext(ProcessContext, BroadcastReadOnlyContext):
    """Context of ``process_element`` on a stream that is not keyed."""

    def __init__(self, context: OperatorContext, states: BroadcastStates) -> None:
        super().__init__(context)
        self._states = states

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor
    ) -> ReadOnlyBroadcastState[Any, Any]:
        return self._states.read_only(state_descriptor)


class KeyedElementSideContext(KeyedProcessContext, KeyedBroadcastTimerContext):
    """Context of ``process_element`` and ``on_timer`` on a keyed stream."""

    def __init__(self, context: OperatorContext, states: BroadcastStates) -> None:
        super().__init__(context)
        self._states = states

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor
    ) -> ReadOnlyBroadcastState[Any, Any]:
        return self._states.read_only(state_descriptor)


class BroadcastSideContext(ProcessContext, KeyedBroadcastContext):
    """Context of ``process_broadcast_element``."""

    def __init__(self, context: OperatorContext, keyed: KeyedState, states: BroadcastStates) -> None:
        super().__init__(context)
        self._keyed = keyed
        self._states = states
        self._handles = StateHandles(keyed)
        #: the element at hand was applied to the state of some key
        self.reached_keys = False

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._states.writable(state_descriptor)

    def apply_to_keyed_state(
        self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], None]
    ) -> None:
        handle, kind = self._handle(state_descriptor)
        table = self._keyed.table(
            state_descriptor.name, kind, state_descriptor._ttl_config, state_descriptor.type_info
        )
        self._keyed.prefetch_all()
        try:
            for key, namespace in table.slots():
                if namespace is None:
                    self._keyed.current_key = key
                    self.reached_keys = True
                    function(key, handle)
        finally:
            self._keyed.current_key = NO_KEY

    def _handle(self, descriptor: StateDescriptor) -> tuple[Any, StateKind]:
        match descriptor:
            case ValueStateDescriptor():
                return self._handles.value(descriptor), StateKind.VALUE
            case ListStateDescriptor():
                return self._handles.list(descriptor), StateKind.LIST
            case MapStateDescriptor():
                return self._handles.map(descriptor), StateKind.MAP
            case ReducingStateDescriptor():
                return self._handles.reducing(descriptor), StateKind.REDUCING
            case AggregatingStateDescriptor():
                return self._handles.aggregating(descriptor), StateKind.AGGREGATING
        raise InvalidStateUse(f"a {type(descriptor).__name__} describes no state; use a ValueStateDescriptor")


def _about_keys(
    function: Callable[[Any, BroadcastSideContext], Iterable[Any] | None],
) -> Callable[[Any, BroadcastSideContext], Iterable[Any] | None]:
    """Of each element only those results that come after it was applied to a key of the group."""

    def of_element(value: Any, context: BroadcastSideContext) -> Iterable[Any] | None:
        context.reached_keys = False
        found = function(value, context)
        # a generator runs while its results are taken; what is no results is complained of later
        return (result for result in found if context.reached_keys) if isinstance(found, Iterable) else found

    return of_element


@dataclass(frozen=True, slots=True)
class BroadcastProcessDefinition:
    """``process`` of a stream that is not keyed and a broadcast one: a BroadcastProcessFunction."""

    function: Any
    side_outputs: bool = False

    def build(self) -> Operator:
        return BroadcastProcessOperator(self.function, self.side_outputs)


class BroadcastProcessOperator(FunctionOperator):
    """Calls ``process_element`` (input 0) and ``process_broadcast_element`` (input 1)."""

    def __init__(self, function: Any, side_outputs: bool) -> None:
        super().__init__(function)
        self._side_outputs = side_outputs

    def open(self, context: OperatorContext) -> None:
        keyed, _ = state_of(context)
        states = BroadcastStates(keyed)
        self._element_context = ElementSideContext(context, states)
        self._broadcast_context = BroadcastSideContext(context, keyed, states)
        super().open(context)

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        function = self.function.process_element
        context: ProcessContext = self._element_context
        if input_index:
            function, context = self.function.process_broadcast_element, self._broadcast_context
        results = self.results_with(function, chunk, context)
        emit_results(results, self._side_outputs, output)


@dataclass(frozen=True, slots=True)
class KeyedBroadcastProcessDefinition:
    """``process`` of a keyed stream and a broadcast one: a KeyedBroadcastProcessFunction."""

    function: Any
    side_outputs: bool = False

    def build(self) -> Operator:
        return KeyedBroadcastProcessOperator(self.function, self.side_outputs)


class KeyedBroadcastProcessOperator(TimerOperator):
    """The same with state and timers per key, and ``on_timer``."""

    def make_context(self, context: OperatorContext) -> KeyedElementSideContext:
        keyed, _ = state_of(context)
        states = BroadcastStates(keyed)
        self._operator_context = context
        self._broadcast_context = BroadcastSideContext(context, keyed, states)
        return KeyedElementSideContext(context, states)

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        if input_index:
            function = self.function.process_broadcast_element
            if self._operator_context.muted:
                function = _about_keys(function)
            results = self.results_with(function, chunk, self._broadcast_context)
        else:
            function = self.function.process_element
            results = self.results_with(function, chunk, self.timer_context)
        emit_results(results, self.side_outputs, output)
