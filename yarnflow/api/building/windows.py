"""Windows of a program: which run as native aggregates, which as the window operator.

Decides by what the program asks for: built-in aggregates and plain functions over windows of event time
keyed by columns stay native; PyFlink's function classes, triggers, lateness, late output and every other
assigner are the window operator's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from yarnflow.api.building import definitions, elements
from yarnflow.api.building.definitions import Aggregates, FieldAggregate, Inputs, KeyDefinition
from yarnflow.api.building.elements import InputOf, KeyBy, Output, SideTags, declared_output
from yarnflow.api.building.kept_state import kept_by_windows
from yarnflow.api.building.processing_timers import windows_may_register
from yarnflow.errors import SchemaError, UnsupportedGraph
from yarnflow.graph.closures import function_name
from yarnflow.graph.operators import ElementKind, Window, WindowKind
from yarnflow.graph.stream_graph import Definition
from yarnflow.graph.type_info import TypeInformation
from yarnflow.operators.functions.base import Function
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.windows import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.operator.definition import WindowDefinition
from yarnflow.operators.windows.session_windows import EventTimeSessionWindows
from yarnflow.operators.windows.time_windows import SlidingEventTimeWindows, TumblingEventTimeWindows
from yarnflow.operators.windows.trigger import Trigger


def native_window(assigner: WindowAssigner[Any, Any]) -> Window | None:
    """The window Spark has for an assigner; None = it has none."""
    if type(assigner) is TumblingEventTimeWindows:
        offset_ms = assigner.offset_ms % assigner.size_ms
        return Window(WindowKind.TUMBLING, size_ms=assigner.size_ms, offset_ms=offset_ms)
    # Spark has no windows with gaps between them
    if type(assigner) is SlidingEventTimeWindows and assigner.slide_ms <= assigner.size_ms:
        return Window(
            WindowKind.SLIDING,
            size_ms=assigner.size_ms,
            slide_ms=assigner.slide_ms,
            offset_ms=assigner.offset_ms % assigner.slide_ms,
        )
    if type(assigner) is EventTimeSessionWindows:
        return Window(WindowKind.SESSION, gap_ms=assigner.session_gap_ms)
    return None


@dataclass(slots=True)
class Windowing:
    """Windows of a stream as far as the program has said."""

    assigner: WindowAssigner[Any, Any]
    #: how the stream is keyed, for expressions
    key: KeyDefinition
    #: how the stream is keyed, for functions
    key_by: KeyBy
    #: over all keys at once
    of_all: bool = False
    trigger: Trigger[Any, Any] | None = None
    allowed_lateness_ms: int = 0
    late_tag: OutputTag | None = None

    @property
    def name(self) -> str:
        """Name of the operator, as Flink shows it."""
        return type(self.assigner).__name__

    # --- native -----------------------------------------------------------------------

    def aggregates(self, aggregates: Aggregates) -> Definition:
        """Built-in aggregates.  Raises UnsupportedGraph where Spark has no such window."""
        window = native_window(self.assigner)
        if window is None or not self._plain():
            what = aggregates.function if isinstance(aggregates, FieldAggregate) else ", ".join(aggregates)
            raise UnsupportedGraph(
                f"{what}: expressions are possible over TumblingEventTimeWindows, SlidingEventTimeWindows "
                "and EventTimeSessionWindows without trigger, lateness and late output; use a Python function"
            )
        return definitions.window_aggregate(self.key, window, aggregates)

    def _plain(self) -> bool:
        return self.trigger is None and not self.allowed_lateness_ms and self.late_tag is None

    def _stays_on_columns(self, function: Any, output_type: object | None) -> Window | None:
        """The native window a function of columns may run over, or None."""
        typed = not isinstance(output_type, (TypeInformation, list))
        if not self.key.columns or not self._plain() or not typed or isinstance(function, Function):
            return None
        return native_window(self.assigner)

    # --- the window operator ----------------------------------------------------------------

    def reduce(
        self,
        reduce_function: Any,
        window_function: Any,
        output_type: object | None,
        origin: str,
        tags: SideTags,
    ) -> Definition:
        """``reduce``, alone or with a function that sees the reduced value."""
        self._check(window_function, optional=True)
        output = elements.same_output if window_function is None and output_type is None else declared_output(
            window_function or reduce_function, "apply", output_type, iterable=True
        )  # fmt: skip
        on_elements = self._operator(window_function, reduce_function, output, origin, tags)
        window = None if window_function is not None else self._stays_on_columns(reduce_function, output_type)

        def define(schemas: Inputs) -> Any:
            if window is not None and schemas[0].element_type is None and output_type is None:
                return definitions.window_reduce(self.key, window, reduce_function, origin)(schemas)
            return on_elements(schemas)

        return define

    def aggregate(
        self,
        aggregate_function: Any,
        window_function: Any,
        accumulator_type: object | None,
        output_type: object | None,
        origin: str,
        tags: SideTags,
    ) -> Definition:
        """``aggregate`` of an AggregateFunction, alone or with a function that sees its result."""
        self._check(window_function, optional=True)
        elements.declared_type(accumulator_type)
        output = declared_output(window_function or aggregate_function, "apply", output_type, iterable=True)
        return self._operator(window_function, aggregate_function, output, origin, tags)

    def process(
        self, function: Any, output_type: object | None, origin: str, tags: SideTags, apply: bool
    ) -> Definition:
        """``process`` and ``apply``: functions of all elements of a window."""
        method = "apply" if apply else "process"
        window = self._stays_on_columns(function, output_type)
        if not isinstance(function, Function):
            if window is None:
                raise UnsupportedGraph(
                    f"{function_name(function)} is a plain function, which sees windows of event time keyed "
                    f"by columns only; make it a {self._wanted()[int(not apply)].__name__}"
                )
            return definitions.window_process(self.key, window, function, origin, output_type, apply)
        self._check(function, optional=False)
        output = declared_output(function, method, output_type, iterable=True)
        return self._operator(function, None, output, origin, tags)

    def _operator(
        self, function: Any, combine: Any, output: Output, origin: str, tags: SideTags
    ) -> Definition:
        definition = WindowDefinition(
            self.assigner, function, combine, self.trigger, self.allowed_lateness_ms, self.late_tag
        )
        late = () if self.late_tag is None else (self.late_tag.tag_id,)
        if self.late_tag is not None:
            tags.add(self.late_tag)
        return elements.element_operator(
            ElementKind.WINDOW,
            definition,
            function if function is not None else combine,
            origin,
            output,
            inputs=(InputOf(self.key_by),),
            stateful=True,
            tags=tags,
            # the late output is the operator's own, not one of the function's results
            settled=lambda: {"side_outputs": bool(tags.tags.keys() - set(late))},
            name=definition.description("AllWindow" if self.of_all else "Window"),
            processing_timers=windows_may_register(definition),
            keeps=kept_by_windows(definition),
        )

    def _wanted(self) -> tuple[type[Function], type[Function]]:
        return (AllWindowFunction, ProcessAllWindowFunction) if self.of_all else (
            WindowFunction, ProcessWindowFunction
        )  # fmt: skip

    def _check(self, function: Any, optional: bool) -> None:
        if function is None and optional:
            return
        if not isinstance(function, self._wanted()):
            names = " or ".join(kind.__name__ for kind in self._wanted())
            raise SchemaError(f"{function_name(function)} is no {names}")
