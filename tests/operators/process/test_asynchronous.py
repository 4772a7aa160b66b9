"""Asynchronous operators on a real event loop; nothing waits for the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from yarnflow.errors import InvariantViolated
from yarnflow.operators.functions.asynchronous import (
    AsyncFunction,
    AsyncRetryStrategy,
    ExponentialBackoffDelayRetryStrategy,
    empty_result_predicate,
    has_exception_predicate,
)
from yarnflow.operators.process.asynchronous import AsyncDefinition
from yarnflow.spark.elements.async_calls import AsyncioCalls
from yarnflow.testing.functions import OperatorHarness


class LaterFirst(AsyncFunction[int, int]):
    """Answers the second of two elements before the first."""

    def __init__(self) -> None:
        self.running = self.most = 0

    async def async_invoke(self, value: int) -> list[int]:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(10 - value):
            await asyncio.sleep(0)
        self.running -= 1
        return [value] * 2


@contextmanager
def running(definition: AsyncDefinition) -> Iterator[OperatorHarness]:
    calls = AsyncioCalls()
    try:
        yield OperatorHarness(definition, async_calls=calls)
    finally:
        calls.close()


@pytest.mark.parametrize("ordered", [True, False])
def test_order_of_results(ordered: bool) -> None:
    with running(AsyncDefinition(LaterFirst(), ordered)) as harness:
        harness.process_elements([(1, 10), (5, 50)])
        expected = [(1, 10), (1, 10), (5, 50), (5, 50)]
        assert harness.take_output() == (expected if ordered else expected[2:] + expected[:2])


@pytest.mark.parametrize("capacity, most", [(1, 1), (3, 3), (100, 8)])
def test_no_more_than_capacity_are_waited_for(capacity: int, most: int) -> None:
    function = LaterFirst()
    with running(AsyncDefinition(function, capacity=capacity)) as harness:
        harness.process_elements([(value, None) for value in range(8)])
        assert harness.take_values() == [value for value in range(8) for _ in range(2)]
    assert function.most == most


class Never(AsyncFunction[Any, Any]):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.Event().wait()
        return []


class Instead(Never):
    def timeout(self, value: Any) -> list[Any]:
        return [f"instead of {value}"]


def test_what_takes_too_long_ends_the_job_or_is_replaced() -> None:
    with running(AsyncDefinition(Instead(), timeout_ms=1)) as harness:
        harness.process_element("a")
        assert harness.take_values() == ["instead of a"]
    with running(AsyncDefinition(Never(), timeout_ms=1)) as harness:
        with pytest.raises(TimeoutError, match="no result in time for element 'a'"):
            harness.process_element("a")


class Fails(AsyncFunction[Any, Any]):
    def __init__(self, failures: int, error: Exception | None) -> None:
        self.left, self.error = failures, error

    async def async_invoke(self, value: Any) -> list[Any]:
        self.left -= 1
        if self.left < 0:
            return [value]
        if self.error is not None:
            raise self.error
        return []


def retry(attempts: int) -> AsyncRetryStrategy[Any]:
    return AsyncRetryStrategy.fixed_delay(attempts, 1, empty_result_predicate, has_exception_predicate)


@pytest.mark.parametrize("error", [ValueError("no"), None])
def test_failures_are_tried_again_as_often_as_allowed(error: Exception | None) -> None:
    with running(AsyncDefinition(Fails(2, error), retry_strategy=retry(2))) as harness:
        harness.process_element("a")
        assert harness.take_values() == ["a"]


def test_the_last_failure_ends_the_job_with_its_element() -> None:
    with running(AsyncDefinition(Fails(100, ValueError("no")), retry_strategy=retry(2))) as harness:
        with pytest.raises(ValueError, match="no") as caught:
            harness.process_elements([("a", None), ("b", None)])
        assert caught.value.__notes__[0].startswith("operator 'harness': element ")


def test_nothing_is_tried_again_without_a_strategy() -> None:
    with running(AsyncDefinition(Fails(1, TimeoutError("its own")))) as harness:
        with pytest.raises(TimeoutError, match="its own"):
            harness.process_element("a")


def test_a_result_that_is_no_list_is_named() -> None:
    class Wrong(AsyncFunction[Any, Any]):
        async def async_invoke(self, value: Any) -> list[Any]:
            return None  # type: ignore[return-value]

    with running(AsyncDefinition(Wrong())) as harness:
        with pytest.raises(TypeError, match="Wrong gave a NoneType; async_invoke and timeout must return"):
            harness.process_element("a")


def test_an_operator_without_an_event_loop_says_so() -> None:
    with pytest.raises(InvariantViolated, match="opened without an event loop"):
        OperatorHarness(AsyncDefinition(Never()))


def test_pauses_between_attempts() -> None:
    strategy = ExponentialBackoffDelayRetryStrategy[Any](10, 100, 1000, 2, None, None)
    assert [strategy.get_backoff_time_millis(attempt) for attempt in range(1, 7)] == [
        100, 200, 400, 800, 1000, 1000
    ]  # fmt: skip
    with pytest.raises(ValueError, match="multiplier of a retry strategy must be greater than zero, not 0"):
        ExponentialBackoffDelayRetryStrategy(10, 100, 1000, 0, None, None)
