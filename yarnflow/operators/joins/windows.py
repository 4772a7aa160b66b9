"""Windows over two streams: what elements of both of one key and window come to.

Elements of both are one stream of ``side, element`` for the window operator.  Flink counterpart:
``CoGroupedStreams``, on which its joins stand as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from yarnflow.operators.elements import Chunk, Output
from yarnflow.operators.functions.base import close_function, method_of, open_function
from yarnflow.operators.functions.joins import FlatJoinFunction
from yarnflow.operators.functions.runtime_context import RuntimeContext
from yarnflow.operators.functions.windows import WindowFunction
from yarnflow.operators.process.operator import Operator, OperatorContext
from yarnflow.operators.windows.operator.definition import WindowDefinition


@dataclass(frozen=True)
class CoGroupDefinition:
    """Windows of two keyed streams.

    Parameters
    ----------
    windows : WindowDefinition
        With a :class:`CoGroupWindow` or a :class:`JoinWindow`.
    side_outputs : bool
        As in :class:`WindowDefinition`.
    """

    windows: WindowDefinition
    side_outputs: bool = False

    def build(self) -> Operator:
        return CoGroupOperator(replace(self.windows, side_outputs=self.side_outputs).build())


class CoGroupOperator:
    """A window operator whose elements say which input they came from."""

    def __init__(self, windows: Operator) -> None:
        self._windows = windows

    def open(self, context: OperatorContext) -> None:
        self._windows.open(context)

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        values = [(input_index, value) for value in chunk.values]
        self._windows.process(0, Chunk(values, chunk.timestamps, chunk.keys), output)

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        self._windows.on_event_timer(timestamp_ms, key, namespace, output)

    def on_processing_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        self._windows.on_processing_timer(timestamp_ms, key, namespace, output)

    def on_watermark(self, watermark_ms: int, output: Output) -> None:
        self._windows.on_watermark(watermark_ms, output)

    def close(self) -> None:
        self._windows.close()


class CoGroupWindow(WindowFunction[Any, Any, Any, Any]):
    """Hands both groups of a window to a CoGroupFunction or function of two lists."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        open_function(self.function, runtime_context)
        self._call = method_of(self.function, "co_group")

    def close(self) -> None:
        close_function(self.function)

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        sides: tuple[list[Any], list[Any]] = ([], [])
        for side, value in inputs:
            sides[side].append(value)
        return self._call(*sides)


class JoinWindow(CoGroupWindow):
    """Hands each pair of a window to a JoinFunction, FlatJoinFunction or function of two elements."""

    def open(self, runtime_context: RuntimeContext) -> None:
        open_function(self.function, runtime_context)
        self._call = method_of(self.function, "join")
        self._flat = isinstance(self.function, FlatJoinFunction)

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        sides: tuple[list[Any], list[Any]] = ([], [])
        for side, value in inputs:
            sides[side].append(value)
        for first in sides[0]:
            for second in sides[1]:
                found = self._call(first, second)
                if not self._flat:
                    yield found
                elif found is not None:
                    yield from found
