"""Operators of one element: map, flat map, filter.  On keyed streams their functions have state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress
from typing import Any

from yarnflow.operators.elements import Chunk, Output
from yarnflow.operators.functions.base import close_function, method_of, open_function
from yarnflow.operators.process.contexts import ProcessContext
from yarnflow.operators.process.operator import Operator, OperatorBase, OperatorContext
from yarnflow.operators.process.results import call_for_each, call_with_context, emit_results
from yarnflow.operators.process.snapshots import appender, extender
from yarnflow.operators.process.user_code import noted
from yarnflow.operators.state.keyed import NO_KEY, KeyedState


class FunctionOperator(OperatorBase):
    """An operator around one user function.

    Parameters
    ----------
    function : object
        Instance of a function class, or a plain function.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self.name = ""
        self.keyed = KeyedState("")
        self.fixed_results = False

    def open(self, context: OperatorContext) -> None:
        self.name = context.runtime_context.get_task_name()
        if context.state is not None:
            self.keyed = context.state
        self.fixed_results = context.fixed_results
        open_function(self.function, context.runtime_context)

    def close(self) -> None:
        close_function(self.function)

    def results_with(
        self,
        function: Callable[[Any, Any], Iterable[Any] | None],
        chunk: Chunk,
        context: ProcessContext,
    ) -> Chunk:
        """Results of ``function(value, context)`` for each element."""
        return call_with_context(function, chunk, context, self.keyed, self.name, self.fixed_results)

    def results_of(self, function: Callable[[Any], Iterable[Any] | None], chunk: Chunk) -> Chunk:
        """Results of ``function(value)`` for each element."""
        return call_for_each(function, chunk, self.keyed, self.name, self.fixed_results)

    def call_each(self, function: Callable[[Any], Any], chunk: Chunk, fixed: bool) -> list[Any]:
        """``function(value)`` for each element, under its key; ``fixed``: nothing of it can change."""
        values, keys = chunk.values, chunk.keys
        results: list[Any] = []
        try:
            if keys is None:
                # the results so far are there also when an element fails
                extender(results, fixed)(map(function, values))
            else:
                append, keyed = appender(results, fixed), self.keyed
                for value, keyed.current_key in zip(values, keys, strict=True):
                    append(function(value))
                keyed.current_key = NO_KEY
        except Exception as error:
            raise noted(error, self.name, "element", values[len(results)])
        if len(results) != len(values):
            # map() takes it for the end of its input, and with it goes where it was raised
            value = values[len(results)]
            stopped = noted(RuntimeError("the function raised StopIteration"), self.name, "element", value)
            try:
                function(value)
            except StopIteration as again:
                raise stopped.with_traceback(again.__traceback__) from None
            raise stopped
        return results


@dataclass(frozen=True, slots=True)
class MapDefinition:
    """``map``: a MapFunction or function of one value."""

    function: Any

    def build(self) -> Operator:
        return MapOperator(self.function)


class MapOperator(FunctionOperator):
    """One element in, one out."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._map = method_of(self.function, "map")

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        output.emit(Chunk(self.call_each(self._map, chunk, self.fixed_results), chunk.timestamps))


@dataclass(frozen=True, slots=True)
class FlatMapDefinition:
    """``flat_map``: a FlatMapFunction or function of one value."""

    function: Any

    def build(self) -> Operator:
        return FlatMapOperator(self.function)


class FlatMapOperator(FunctionOperator):
    """One element in, any number out."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._flat_map = method_of(self.function, "flat_map")

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        emit_results(self.results_of(self._flat_map, chunk), False, output)


@dataclass(frozen=True, slots=True)
class FilterDefinition:
    """``filter``: a FilterFunction or function of one value."""

    function: Any

    def build(self) -> Operator:
        return FilterOperator(self.function)


class FilterOperator(FunctionOperator):
    """Keeps some elements."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._filter = method_of(self.function, "filter")

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        kept = self.call_each(self._filter, chunk, fixed=True)
        values: list[Any] = []
        # the function may have kept them
        extender(values, self.fixed_results)(compress(chunk.values, kept))
        if values:
            times = None if chunk.timestamps is None else list(compress(chunk.timestamps, kept))
            output.emit(Chunk(values, times))
