"""Timers for a time before the element that registers them, and, of a timer that runs alone, for its own and
earlier times.
"""

# compare: per-key
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Past(KeyedProcessFunction):
    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        # before the element itself, even before 1970
        ctx.timer_service().register_event_time_timer(-value[1])
        return []

    def on_timer(self, timestamp, ctx):
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        if count == 1:
            ctx.timer_service().register_event_time_timer(timestamp)
        elif count == 2:
            ctx.timer_service().register_event_time_timer(timestamp - 1000)
            ctx.timer_service().register_event_time_timer(timestamp - 2000)
        yield f"{ctx.get_current_key()},{timestamp},{count}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection([("a", 100), ("b", 150)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    events.key_by(lambda e: e[0], Types.STRING()).process(Past(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
