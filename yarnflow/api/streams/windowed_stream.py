"""Windows of keyed streams and of all elements.

``S`` is the stream that comes out of windows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from yarnflow.api.building.definitions import Aggregates, FieldAggregate, KeyDefinition
from yarnflow.api.building.elements import KeyBy, SideTags
from yarnflow.api.building.windows import Windowing
from yarnflow.api.origin import call_origin
from yarnflow.api.streams.stream_base import check_callable, check_kind
from yarnflow.errors import GraphError
from yarnflow.graph.compatibility import differs, same_and
from yarnflow.graph.stream_graph import Definition, located
from yarnflow.graph.type_info import TypeInfo
from yarnflow.operators.functions.base import Function
from yarnflow.operators.functions.elements import AggregateFunction, NullByteKeySelector, ReduceFunction
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.windows import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.trigger import Trigger

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
_Windowed = TypeVar("_Windowed", bound="WindowSettings[Any]")

_AnyWindowFunction = WindowFunction[Any, Any, Any, Any] | ProcessWindowFunction[Any, Any, Any, Any]
_AnyAllWindowFunction = AllWindowFunction[Any, Any, Any] | ProcessAllWindowFunction[Any, Any, Any]
_COUNT: Final = "count(*) AS count"


class Keyed(Protocol[S_co]):
    """What windows need of a keyed stream."""

    _key: KeyDefinition

    @property
    def _key_by(self) -> KeyBy: ...

    def get_execution_environment(self) -> Any: ...

    def get_type(self) -> TypeInfo: ...

    def _by_key(self, name: str, call: str, define: Definition) -> S_co: ...

    def _elements(
        self, name: str, call: str, define: Definition, tags: SideTags | None = None, parallel: bool = True
    ) -> S_co: ...


class WindowSettings(Generic[S]):
    """Setters that windows of a key and of all elements share."""

    _stream: Keyed[S]
    _windows: Windowing

    def get_execution_environment(self) -> Any:
        """The environment the stream belongs to."""
        return self._stream.get_execution_environment()

    def get_input_type(self) -> TypeInfo:
        """What functions of windows get elements of."""
        return self._stream.get_type()

    def trigger(self: _Windowed, trigger: Trigger[Any, Any]) -> _Windowed:
        """Say when windows are evaluated."""
        check_kind(trigger, "trigger", Trigger)
        self._windows.trigger = trigger
        return self

    def allowed_lateness(self: _Windowed, time_ms: int) -> _Windowed:
        """Keep windows of event time for so many ms, 0 or more, after the watermark passed their end."""
        if type(time_ms) is not int:
            said = f"a lateness of {time_ms!r} must be a whole number of ms"
            raise GraphError(f"{call_origin()}: allowed_lateness(): {said}")
        self._windows.allowed_lateness_ms = time_ms
        return self

    def side_output_late_data(self: _Windowed, output_tag: OutputTag) -> _Windowed:
        """Hand elements that come too late to a side output."""
        check_kind(output_tag, "side_output_late_data", OutputTag)
        self._windows.late_tag = output_tag
        return self

    def _windowed(self, call: str, define: Callable[[SideTags], Definition]) -> S:
        tags = SideTags()
        with located(call_origin(), call):
            made = define(tags)
        parallel = not self._windows.of_all
        return self._stream._elements(self._windows.name, call, made, tags, parallel)

    def _reduce(self, func: Any, window_function: Any, output_type: object | None) -> S:
        check_callable(func, "reduce")
        origin = call_origin()
        return self._windowed(
            "reduce", lambda tags: self._windows.reduce(func, window_function, output_type, origin, tags)
        )

    def _aggregate_function(
        self, func: Any, window_function: Any, accumulator_type: object | None, output_type: object | None
    ) -> S:
        check_kind(func, "aggregate", AggregateFunction)
        origin = call_origin()
        return self._windowed(
            "aggregate",
            lambda tags: self._windows.aggregate(
                func, window_function, accumulator_type, output_type, origin, tags
            ),
        )

    def _process(self, call: str, func: Any, output_type: object | None) -> S:
        check_callable(func, call, Function)
        origin = call_origin()
        return self._windowed(
            call, lambda tags: self._windows.process(func, output_type, origin, tags, apply=call == "apply")
        )


class WindowedStream(WindowSettings[S]):
    """A keyed stream in windows."""

    def __init__(self, keyed_stream: Keyed[S], window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise GraphError(f"{call_origin()}: window(): {window_assigner!r} is no WindowAssigner")
        self._stream = keyed_stream
        self._windows = Windowing(window_assigner, keyed_stream._key, keyed_stream._key_by)

    # --- functions -----------------------------------------------------------------------

    @differs("a plain function over windows of columns stays native")
    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: _AnyWindowFunction | None = None,
        output_type: object | None = None,
    ) -> S:
        """Combine a window's elements into one, which ``window_function`` may turn into others."""
        return self._reduce(reduce_function, window_function, output_type)

    @same_and(
        "takes built-in aggregates as text, too; results: key, window_start, window_end, aggregates; "
        "accumulators are not compared with their type"
    )
    def aggregate(
        self,
        aggregate_function: str | AggregateFunction,
        *more: Any,
        window_function: _AnyWindowFunction | None = None,
        accumulator_type: object | None = None,
        output_type: object | None = None,
    ) -> S:
        """Combine a window's elements by an AggregateFunction, or by built-in aggregates (native)."""
        if isinstance(aggregate_function, str):
            return self._aggregate("aggregate", (aggregate_function, *more))
        named = (window_function, accumulator_type, output_type)
        positional = (*more, *(None,) * 3)[:3]
        function, *types = (given or other for given, other in zip(named, positional, strict=True))
        return self._aggregate_function(aggregate_function, function, *types)

    def apply(
        self,
        window_function: WindowFunction[Any, Any, Any, Any] | Callable[..., Any],
        output_type: object | None = None,
    ) -> S:
        """Call ``window_function(key, window, elements)`` once per key and window."""
        return self._process("apply", window_function, output_type)

    def process(
        self,
        process_window_function: ProcessWindowFunction[Any, Any, Any, Any] | Callable[..., Any],
        output_type: object | None = None,
    ) -> S:
        """Call ``process_window_function(key, context, elements)`` once per key and window."""
        return self._process("process", process_window_function, output_type)

    # --- expressions -----------------------------------------------------------------------

    def _aggregate(self, call: str, aggregates: Aggregates) -> S:
        with located(call_origin(), call):
            define = self._windows.aggregates(aggregates)
        return self._stream._by_key("Window", call, define)

    def sum(self, field: str) -> S:
        """Sum of a field, under its name."""
        return self._aggregate("sum", FieldAggregate("sum", field))

    def min(self, field: str) -> S:
        """Minimum of a field, under its name."""
        return self._aggregate("min", FieldAggregate("min", field))

    def max(self, field: str) -> S:
        """Maximum of a field, under its name."""
        return self._aggregate("max", FieldAggregate("max", field))

    def count(self) -> S:
        """Number of records, as ``count``."""
        return self._aggregate("count", (_COUNT,))


class AllWindowedStream(WindowSettings[S]):
    """A stream in windows over all its elements; one subtask does it."""

    def __init__(self, data_stream: Any, window_assigner: WindowAssigner[Any, Any]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise GraphError(f"{call_origin()}: window_all(): {window_assigner!r} is no WindowAssigner")
        self._stream = data_stream.key_by(NullByteKeySelector())
        self._windows = Windowing(window_assigner, self._stream._key, self._stream._key_by, of_all=True)

    def reduce(
        self,
        reduce_function: Callable[[Any, Any], Any] | ReduceFunction,
        window_function: _AnyAllWindowFunction | None = None,
        output_type: object | None = None,
    ) -> S:
        """Combine a window's elements into one, which ``window_function`` may turn into others."""
        return self._reduce(reduce_function, window_function, output_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: _AnyAllWindowFunction | None = None,
        accumulator_type: object | None = None,
        output_type: object | None = None,
    ) -> S:
        """Combine a window's elements by an AggregateFunction."""
        return self._aggregate_function(aggregate_function, window_function, accumulator_type, output_type)

    def apply(
        self, window_function: AllWindowFunction[Any, Any, Any], output_type: object | None = None
    ) -> S:
        """Call ``window_function.apply(window, elements)`` once per window."""
        return self._process("apply", window_function, output_type)

    def process(
        self,
        process_window_function: ProcessAllWindowFunction[Any, Any, Any],
        output_type: object | None = None,
    ) -> S:
        """Call ``process_window_function.process(context, elements)`` once per window."""
        return self._process("process", process_window_function, output_type)
