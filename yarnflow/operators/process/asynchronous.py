"""Operators that wait for something outside, for many elements of a chunk at a time.

A chunk is begun and ended within one batch, so nothing waits over a commit.  Flink counterpart:
``AsyncWaitOperator``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from yarnflow.errors import InvariantViolated
from yarnflow.operators.elements import Chunk, Output
from yarnflow.operators.functions.asynchronous import NO_RETRY_STRATEGY, AsyncRetryStrategy
from yarnflow.operators.process.elementwise import FunctionOperator
from yarnflow.operators.process.operator import AsyncCalls, Operator, OperatorContext
from yarnflow.operators.process.snapshots import snapshot
from yarnflow.operators.process.user_code import noted


@dataclass(frozen=True, slots=True)
class AsyncDefinition:
    """``AsyncDataStream.ordered_wait`` and its kin.

    Parameters
    ----------
    function : AsyncFunction
        The user's.
    ordered : bool
        Results come in the order of the elements, else in that in which they are ready.
    timeout_ms : int
        For all attempts of one element together; 0 = no limit.
    capacity : int
        Elements waited for at a time.
    retry_strategy : AsyncRetryStrategy
        What is tried again, and when.
    """

    function: Any
    ordered: bool = True
    timeout_ms: int = 0
    capacity: int = 100
    retry_strategy: AsyncRetryStrategy[Any] = NO_RETRY_STRATEGY

    def build(self) -> Operator:
        return AsyncOperator(self)


class AsyncOperator(FunctionOperator):
    """Calls ``async_invoke``, and ``timeout`` where that took too long."""

    def __init__(self, definition: AsyncDefinition) -> None:
        super().__init__(definition.function)
        self._definition = definition

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        if context.async_calls is None:
            raise InvariantViolated(f"operator '{self.name}' was opened without an event loop")
        self._calls: AsyncCalls = context.async_calls
        strategy = self._definition.retry_strategy
        predicate = strategy.get_retry_predicate()
        self._retry_result = predicate.result_predicate() or (lambda result: False)
        self._retry_error = predicate.exception_predicate() or (lambda error: False)

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        calls = [self._one(value) for value in chunk.values]
        ended = self._calls.run(calls, self._definition.capacity)
        if self._definition.ordered:
            ended.sort(key=lambda pair: pair[0])
        results = [result for _, found in ended for result in found]
        times = chunk.timestamps
        if times is not None:
            times = [times[position] for position, found in ended for _ in found]
        output.emit(Chunk(results, times))

    async def _one(self, value: Any) -> list[Any]:
        """The results for one element."""
        try:
            try:
                found = await self._calls.within(self._attempts(value), self._definition.timeout_ms)
            except _TimeoutOfFunction as error:
                raise error.cause from error.cause.__cause__
            except TimeoutError:
                found = self.function.timeout(value)
            if not isinstance(found, (list, tuple)):
                raise TypeError(
                    f"{type(self.function).__name__} gave a {type(found).__name__}; async_invoke and "
                    "timeout must return a list of results"
                )
        except Exception as error:
            raise noted(error, self.name, "element", value)
        return list(found) if self.fixed_results else list(map(snapshot, found))

    async def _attempts(self, value: Any) -> Any:
        strategy, attempt = self._definition.retry_strategy, 1
        while True:
            try:
                found = await self.function.async_invoke(value)
                again, failure = self._retry_result(found), None
            except Exception as error:
                again, failure = self._retry_error(error), error
            if not again or not strategy.can_retry(attempt):
                if isinstance(failure, TimeoutError):
                    raise _TimeoutOfFunction(failure)
                if failure is not None:
                    raise failure
                return found
            await self._calls.pause(strategy.get_backoff_time_millis(attempt))
            attempt += 1


class _TimeoutOfFunction(Exception):
    """A TimeoutError the user's function raised itself, told from that of our own limit."""

    def __init__(self, cause: TimeoutError) -> None:
        super().__init__(str(cause))
        self.cause = cause
