"""An element that takes longer than the timeout is handed to timeout(), whose results take the place of its
own.
"""

# compare: exact
# run: drill

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment


class Stuck(AsyncFunction):
    async def async_invoke(self, value):
        if value == 2:
            await asyncio.sleep(30)
        return [f"done {value}"]

    def timeout(self, value):
        return [f"timeout {value}", "given up"]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], type_info=Types.INT())
    AsyncDataStream.ordered_wait(numbers, Stuck(), Time.milliseconds(1500), 10, Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
