"""Retries: by the result, by the exception, with fixed and growing delays, until the attempts are used up."""

# compare: sorted
# run: drill

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment
from pyflink.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate
from pyflink.datastream.functions import AsyncRetryStrategy


class Flaky(AsyncFunction):
    """Fails in one way or the other until the given attempt."""

    def __init__(self, raises):
        self._raises = raises
        self._attempts = {}

    async def async_invoke(self, value):
        await asyncio.sleep(0)
        attempt = self._attempts[value] = self._attempts.get(value, 0) + 1
        if attempt >= value:
            return [f"{value} at attempt {attempt}"]
        if self._raises:
            raise ValueError(f"attempt {attempt} of {value}")
        return []


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3, 4], type_info=Types.INT())
    fixed = AsyncRetryStrategy.fixed_delay(3, 10, empty_result_predicate, None)
    AsyncDataStream.ordered_wait_with_retry(
        numbers, Flaky(False), Time.seconds(60), fixed, 10, Types.STRING()
    ).print("fixed")
    growing = AsyncRetryStrategy.exponential_backoff(5, 10, 100, 2, None, has_exception_predicate)
    AsyncDataStream.unordered_wait_with_retry(
        numbers, Flaky(True), Time.seconds(60), growing, 10, Types.STRING()
    ).print("growing")
    # one retry only: what is empty then stays empty
    once = AsyncRetryStrategy.fixed_delay(1, 10, empty_result_predicate, None)
    AsyncDataStream.ordered_wait_with_retry(
        numbers, Flaky(False), Time.seconds(60), once, 10, Types.STRING()
    ).print("once")
    env.execute()


if __name__ == "__main__":
    main()
