"""Operators around process functions of one stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from yarnflow.operators.elements import Chunk, Output
from yarnflow.operators.functions.time import TimeDomain
from yarnflow.operators.process.contexts import KeyedProcessContext, ProcessContext
from yarnflow.operators.process.elementwise import FunctionOperator
from yarnflow.operators.process.operator import Operator, OperatorContext
from yarnflow.operators.process.results import emit_results
from yarnflow.operators.process.snapshots import extender
from yarnflow.operators.process.user_code import noted, or_wrong_shape
from yarnflow.operators.state.keyed import NO_KEY


@dataclass(frozen=True, slots=True)
class ProcessDefinition:
    """``process`` on a stream that is not keyed.

    Parameters
    ----------
    function : ProcessFunction
        The user's.
    side_outputs : bool
        Somebody reads a side output, so results are looked at; else ``tag, value`` is an
        element like any other, as in PyFlink.
    """

    function: Any
    side_outputs: bool = False

    def build(self) -> Operator:
        return ProcessOperator(self.function, self.side_outputs)


class ProcessOperator(FunctionOperator):
    """Calls ``process_element``."""

    def __init__(self, function: Any, side_outputs: bool) -> None:
        super().__init__(function)
        self.side_outputs = side_outputs

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._context = ProcessContext(context)

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        function = self.function.process_element
        results = self.results_with(function, chunk, self._context)
        emit_results(results, self.side_outputs, output)


@dataclass(frozen=True, slots=True)
class KeyedProcessDefinition:
    """``process`` on a keyed stream; see :class:`ProcessDefinition`.  ``function``: KeyedProcessFunction."""

    function: Any
    side_outputs: bool = False

    def build(self) -> Operator:
        return KeyedProcessOperator(self.function, self.side_outputs)


class TimerOperator(FunctionOperator):
    """An operator whose function has keys and ``on_timer``."""

    def __init__(self, function: Any, side_outputs: bool) -> None:
        super().__init__(function)
        self.side_outputs = side_outputs
        self.timer_context: KeyedProcessContext

    def open(self, context: OperatorContext) -> None:
        self.timer_context = self.make_context(context)
        super().open(context)

    def make_context(self, context: OperatorContext) -> KeyedProcessContext:
        """What the function's methods are given."""
        return KeyedProcessContext(context)

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        self._fire(timestamp_ms, key, TimeDomain.EVENT_TIME, output)

    def on_processing_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        self._fire(timestamp_ms, key, TimeDomain.PROCESSING_TIME, output)

    def _fire(self, timestamp_ms: int, key: Any, domain: TimeDomain, output: Output) -> None:
        context, keyed = self.timer_context, self.keyed
        context.timestamp_ms, context.domain, keyed.current_key = timestamp_ms, domain, key
        found, results = None, list[Any]()
        try:
            found = self.function.on_timer(timestamp_ms, context)
            if found is not None:
                extender(results, self.fixed_results)(found)
        except Exception as error:
            raise noted(or_wrong_shape(error, found), self.name, f"timer {timestamp_ms} of key", key)
        keyed.current_key = NO_KEY
        if results:
            emit_results(Chunk(results, [timestamp_ms] * len(results)), self.side_outputs, output)


class KeyedProcessOperator(TimerOperator):
    """Calls ``process_element`` and ``on_timer``."""

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        function = self.function.process_element
        results = self.results_with(function, chunk, self.timer_context)
        emit_results(results, self.side_outputs, output)
