"""Unordered waiting: all results, in any order; without a type they are pickled."""

# compare: sorted
# run: drill

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment


class Slow(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep((5 - value) / 50)
        return [(value, "even" if value % 2 == 0 else "odd")]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3, 4, 5], type_info=Types.INT())
    AsyncDataStream.unordered_wait(numbers, Slow(), Time.seconds(20), 2).print()
    env.execute()


if __name__ == "__main__":
    main()
