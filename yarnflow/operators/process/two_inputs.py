"""Operators of two connected streams.  Where both are keyed, the two share state and timers of a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from yarnflow.operators.elements import Chunk, Output
from yarnflow.operators.process.contexts import ProcessContext
from yarnflow.operators.process.elementwise import FunctionOperator
from yarnflow.operators.process.operator import Operator, OperatorContext
from yarnflow.operators.process.process_elements import TimerOperator
from yarnflow.operators.process.results import emit_results


@dataclass(frozen=True, slots=True)
class CoMapDefinition:
    """``map`` of connected streams: a CoMapFunction."""

    function: Any

    def build(self) -> Operator:
        return CoMapOperator(self.function)


class CoMapOperator(FunctionOperator):
    """One element in from either stream, one out; None is left out, as in PyFlink."""

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        function = self.function.map2 if input_index else self.function.map1
        results = self.call_each(function, chunk, self.fixed_results)
        times = chunk.timestamps
        # by identity: elements may compare in ways of their own
        kept = [position for position, result in enumerate(results) if result is not None]
        if len(kept) < len(results):
            results = [results[position] for position in kept]
            times = None if times is None else [times[position] for position in kept]
        output.emit(Chunk(results, times))


@dataclass(frozen=True, slots=True)
class CoFlatMapDefinition:
    """``flat_map`` of connected streams: a CoFlatMapFunction."""

    function: Any

    def build(self) -> Operator:
        return CoFlatMapOperator(self.function)


class CoFlatMapOperator(FunctionOperator):
    """One element in from either stream, any number out."""

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        function = self.function.flat_map2 if input_index else self.function.flat_map1
        emit_results(self.results_of(function, chunk), False, output)


@dataclass(frozen=True, slots=True)
class CoProcessDefinition:
    """``process`` of connected streams that are not keyed: a CoProcessFunction."""

    function: Any
    side_outputs: bool = False

    def build(self) -> Operator:
        return CoProcessOperator(self.function, self.side_outputs)


class CoProcessOperator(FunctionOperator):
    """Calls ``process_element1`` and ``process_element2``."""

    def __init__(self, function: Any, side_outputs: bool) -> None:
        super().__init__(function)
        self._side_outputs = side_outputs

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._context = ProcessContext(context)

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        function = self.function.process_element2 if input_index else self.function.process_element1
        results = self.results_with(function, chunk, self._context)
        emit_results(results, self._side_outputs, output)


@dataclass(frozen=True, slots=True)
class KeyedCoProcessDefinition:
    """``process`` of connected keyed streams: a KeyedCoProcessFunction."""

    function: Any
    side_outputs: bool = False

    def build(self) -> Operator:
        return KeyedCoProcessOperator(self.function, self.side_outputs)


class KeyedCoProcessOperator(TimerOperator):
    """The same with state and timers, and ``on_timer``."""

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        function = self.function.process_element2 if input_index else self.function.process_element1
        results = self.results_with(function, chunk, self.timer_context)
        emit_results(results, self.side_outputs, output)
