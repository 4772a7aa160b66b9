"""Results of timers carry the time of the timer, those of elements the time of the element; the next
operator sees both.
"""

# compare: per-key
# key: ^\('(\w+)

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, ProcessFunction, StreamExecutionEnvironment


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Emit(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] + 50)
        yield value[0], "element"

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), "timer"


class WithTimestamp(ProcessFunction):
    def process_element(self, value, ctx):
        yield (*value, ctx.timestamp())


class WithTimer(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp())
        yield (*value, ctx.timestamp())

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), "second timer", timestamp


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection(
        [("a", 100), ("b", 110), ("a", 120)], Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    results = events.key_by(lambda e: e[0], Types.STRING()).process(Emit())
    results.process(WithTimestamp()).key_by(lambda r: r[0]).process(WithTimer()).print()
    env.execute()


if __name__ == "__main__":
    main()
