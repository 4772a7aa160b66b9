"""State with a time to live of a millisecond is gone when the function has waited longer than that."""

# compare: per-key
# run: drill

import time

from pyflink.common import Time, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor


class Forget(KeyedProcessFunction):
    def open(self, runtime_context):
        last = ValueStateDescriptor("last", Types.INT())
        last.enable_time_to_live(
            StateTtlConfig.new_builder(Time.milliseconds(1)).never_return_expired().build()
        )
        self._last = runtime_context.get_state(last)
        self._kept = runtime_context.get_state(ValueStateDescriptor("kept", Types.INT()))

    def process_element(self, value, ctx):
        key, number = value
        began = time.time()
        while time.time() < began + 0.02:
            pass
        before = self._last.value()
        self._last.update(number)
        kept = self._kept.value()
        self._kept.update(number)
        yield f"{key},{before},{kept}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection([("a", 1), ("a", 2), ("b", 3), ("a", 4)]).key_by(lambda e: e[0]).process(
        Forget()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
