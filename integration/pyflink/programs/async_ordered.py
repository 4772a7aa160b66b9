"""Ordered waiting: results stand in the order of the elements, however long each one takes."""

# compare: exact
# run: gate

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, RuntimeContext, StreamExecutionEnvironment


class Slow(AsyncFunction):
    def open(self, runtime_context: RuntimeContext):
        self._factor = 10

    async def async_invoke(self, value):
        await asyncio.sleep((5 - value) / 50)
        # none, one or several results
        return [value * self._factor + part for part in range(value % 3)]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3, 4, 5], type_info=Types.INT())
    AsyncDataStream.ordered_wait(numbers, Slow(), Time.seconds(20), 4, Types.INT()).print()
    env.execute()


if __name__ == "__main__":
    main()
