"""Functions that wait for something outside.  PyFlink: ``pyflink.datastream.async_data_stream``."""

from __future__ import annotations

from typing import Any

from yarnflow.api.building import elements
from yarnflow.api.datastream.data_stream import DataStream
from yarnflow.api.lengths import DurationLike, to_ms
from yarnflow.api.origin import call_origin
from yarnflow.api.streams.stream_base import check_kind
from yarnflow.errors import GraphError
from yarnflow.graph.operators import ElementKind
from yarnflow.operators.functions.asynchronous import NO_RETRY_STRATEGY, AsyncFunction, AsyncRetryStrategy
from yarnflow.operators.process.asynchronous import AsyncDefinition


class AsyncDataStream:
    """Calls an AsyncFunction for the elements of a stream, many at a time.

    ``timeout`` is how long an element may take with all its attempts, ``capacity`` how many elements
    may be under way.  Results of ``ordered_wait`` come in the order of their elements.
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: DurationLike,
        capacity: int = 100,
        output_type: object | None = None,
    ) -> DataStream:
        """Results as they come."""
        return _wait(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, "unordered_wait"
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: DurationLike,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: object | None = None,
    ) -> DataStream:
        """Results as they come; what fails is tried again."""
        return _wait(
            data_stream, async_function, timeout, async_retry_strategy, capacity, output_type,
            "unordered_wait_with_retry",
        )  # fmt: skip

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: DurationLike,
        capacity: int = 100,
        output_type: object | None = None,
    ) -> DataStream:
        """Results in the order of their elements."""
        return _wait(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type, "ordered_wait"
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: DurationLike,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: object | None = None,
    ) -> DataStream:
        """Results in the order of their elements; what fails is tried again."""
        return _wait(
            data_stream, async_function, timeout, async_retry_strategy, capacity, output_type,
            "ordered_wait_with_retry",
        )  # fmt: skip


def _wait(
    stream: DataStream,
    function: AsyncFunction[Any, Any],
    timeout: DurationLike,
    retry_strategy: AsyncRetryStrategy[Any],
    capacity: int,
    output_type: object | None,
    call: str,
) -> DataStream:
    check_kind(function, call, AsyncFunction)
    check_kind(retry_strategy, call, AsyncRetryStrategy)
    timeout_ms = to_ms(timeout, "timeout")
    if not elements.is_coroutine(function):
        name = type(function).__name__
        raise GraphError(
            f"{call_origin()}: {call}(): async_invoke of {name} must be declared 'async def'"
        )
    if retry_strategy is not NO_RETRY_STRATEGY and timeout_ms <= 0:
        raise GraphError(f"{call_origin()}: {call}(): trying again needs a timeout")
    if capacity < 1:
        raise GraphError(f"{call_origin()}: {call}(): a capacity of {capacity} elements lets none through")
    ordered = call.startswith("ordered")
    definition = AsyncDefinition(function, ordered, timeout_ms, capacity, retry_strategy)
    define = elements.element_operator(
        ElementKind.ASYNC,
        definition,
        function,
        call_origin(),
        elements.declared_output(function, "async_invoke", output_type, iterable=True),
    )
    return stream._next("async wait operator", call, define)
