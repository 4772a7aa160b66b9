"""Two streams for one function: connected, and one of them broadcast.

``S`` is the stream that comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from yarnflow.api.building import elements
from yarnflow.api.building.elements import InputOf, SideTags
from yarnflow.api.building.kept_state import kept_by_function
from yarnflow.api.building.processing_timers import function_may_register
from yarnflow.api.origin import call_origin
from yarnflow.api.streams.stream_base import StreamBase, check_kind
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import ElementKind
from yarnflow.operators.functions.broadcast import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from yarnflow.operators.functions.elements import CoFlatMapFunction, CoMapFunction, KeySelector
from yarnflow.operators.functions.process import CoProcessFunction, KeyedCoProcessFunction
from yarnflow.operators.process.broadcast import BroadcastProcessDefinition, KeyedBroadcastProcessDefinition
from yarnflow.operators.process.two_inputs import (
    CoFlatMapDefinition,
    CoMapDefinition,
    CoProcessDefinition,
    KeyedCoProcessDefinition,
)
from yarnflow.operators.state.descriptors import MapStateDescriptor

S = TypeVar("S")


class ConnectedStreams(Generic[S]):
    """Two streams for one function."""

    def __init__(self, stream1: StreamBase[S], stream2: StreamBase[S]) -> None:
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector,
        key_selector2: Callable[[Any], Any] | KeySelector,
        key_type: object | None = None,
    ) -> ConnectedStreams[S]:
        """Group both streams, each by a function of its own, to keys of one type."""
        first: Any = getattr(self.stream1, "_origin_stream", self.stream1)
        second: Any = getattr(self.stream2, "_origin_stream", self.stream2)
        return ConnectedStreams(
            first.key_by(key_selector1, key_type=key_type), second.key_by(key_selector2, key_type=key_type)
        )

    def _is_keyed_stream(self) -> bool:
        return self.stream1._key_by is not None and self.stream2._key_by is not None

    def map(self, func: CoMapFunction, output_type: object | None = None) -> S:
        """Replace every element of either stream by what its method makes of it; None is dropped."""
        check_kind(func, "map", CoMapFunction)
        return self._both(
            ElementKind.CO_MAP, "Co-Map", "map", func, "map1", output_type, CoMapDefinition(func)
        )

    def flat_map(self, func: CoFlatMapFunction, output_type: object | None = None) -> S:
        """Replace every element of either stream by any number of elements."""
        check_kind(func, "flat_map", CoFlatMapFunction)
        return self._both(
            ElementKind.CO_FLAT_MAP, "Co-Flat Map", "flat_map", func, "flat_map1", output_type,
            CoFlatMapDefinition(func),
        )  # fmt: skip

    def process(
        self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: object | None = None
    ) -> S:
        """Call a function with a context for every element of either stream."""
        check_kind(func, "process", CoProcessFunction, KeyedCoProcessFunction)
        if self._is_keyed_stream():
            return self._both(
                ElementKind.KEYED_CO_PROCESS, "Keyed Co-Process", "process", func, "process_element1",
                output_type, KeyedCoProcessDefinition(func),
            )  # fmt: skip
        return self._both(
            ElementKind.CO_PROCESS, "Co-Process", "process", func, "process_element1", output_type,
            CoProcessDefinition(func),
        )  # fmt: skip

    def _both(
        self,
        kind: ElementKind,
        name: str,
        call: str,
        func: Any,
        method: str,
        output_type: object | None,
        definition: object,
    ) -> S:
        keyed = self._is_keyed_stream()
        streams = (self.stream1, self.stream2)
        tags = SideTags()
        define = elements.element_operator(
            kind,
            definition,
            func,
            call_origin(),
            # the annotation of one method says nothing of the other's results
            elements.declared_output(None, method, output_type, iterable=True),
            inputs=tuple(InputOf(stream._key_by if keyed else None) for stream in streams),
            stateful=keyed,
            tags=tags,
            name=type(func).__qualname__,
            processing_timers=kind is ElementKind.KEYED_CO_PROCESS and function_may_register(func),
            keeps=kept_by_function(func) if keyed else "",
        )
        inputs = [
            stream._input(ShipStrategy.HASH) if keyed else stream._input_of_function() for stream in streams
        ]
        return self.stream1._next(name, call, define, inputs, tags)


class BroadcastStream(Generic[S]):
    """A stream that every subtask of another one sees whole; made by ``broadcast(descriptor)``."""

    def __init__(
        self, input_stream: StreamBase[S], broadcast_state_descriptors: list[MapStateDescriptor]
    ) -> None:
        self.input_stream = input_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors


class BroadcastConnectedStream(Generic[S]):
    """A stream, and one that every subtask of it sees whole."""

    def __init__(
        self,
        non_broadcast_stream: StreamBase[S],
        broadcast_stream: BroadcastStream[S],
        broadcast_state_descriptors: list[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = broadcast_state_descriptors

    def _is_keyed_stream(self) -> bool:
        return self.non_broadcast_stream._key_by is not None

    def process(
        self,
        func: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        output_type: object | None = None,
    ) -> S:
        """Call a function for every element of either stream; the broadcast one fills the broadcast state."""
        keyed = self._is_keyed_stream()
        check_kind(func, "process", KeyedBroadcastProcessFunction if keyed else BroadcastProcessFunction)
        definition = KeyedBroadcastProcessDefinition if keyed else BroadcastProcessDefinition
        stream, tags = self.non_broadcast_stream, SideTags()
        define = elements.element_operator(
            ElementKind.KEYED_BROADCAST_PROCESS if keyed else ElementKind.BROADCAST_PROCESS,
            definition(func),
            func,
            call_origin(),
            elements.declared_output(None, "process_element", output_type, iterable=True),
            inputs=(InputOf(stream._key_by if keyed else None), InputOf(broadcast=True)),
            stateful=True,
            tags=tags,
            name=type(func).__qualname__,
            processing_timers=keyed and function_may_register(func),
        )
        name = "Keyed-Co-Process-Broadcast" if keyed else "Co-Process-Broadcast"
        inputs = (
            stream._input(ShipStrategy.HASH) if keyed else stream._input_of_function(),
            self.broadcast_stream.input_stream._input(),
        )
        return stream._next(name, "process", define, inputs, tags)
