"""In batch mode a keyed process function gets its elements key by key, and timers when its key's elements
are over.
"""

# compare: per-key

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Sum(KeyedProcessFunction):
    def open(self, runtime_context):
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value, ctx):
        self._sum.update((self._sum.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(value[1] + 1)
        yield f"{value[0]},element {value[1]}"

    def on_timer(self, timestamp, ctx):
        watermark = ctx.timer_service().current_watermark()
        yield f"{ctx.get_current_key()},timer {timestamp} {self._sum.value()} {watermark}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    events = env.from_collection(
        [("a", 1), ("b", 20), ("a", 30), ("b", 40)], Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    events.key_by(lambda v: v[0], Types.STRING()).process(Sum(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
