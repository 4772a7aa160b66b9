"""What the contexts of a keyed process function tell in process_element and on_timer.

There is no watermark before the end (the interval is long), so the timers see the last one.
"""

# compare: per-key

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Tell(KeyedProcessFunction):
    def process_element(self, value, ctx):
        service = ctx.timer_service()
        service.register_event_time_timer(value[1] + 1)
        yield f"{ctx.get_current_key()},element,{ctx.timestamp()},{service.current_watermark()}"

    def on_timer(self, timestamp, ctx):
        service = ctx.timer_service()
        yield (
            f"{ctx.get_current_key()},timer,{timestamp},{ctx.timestamp()},"
            f"{ctx.time_domain()},{service.current_watermark()}"
        )


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.get_config().set_auto_watermark_interval(3_600_000)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    events = env.from_collection(
        [("a", 100), ("b", 50), ("a", 200)], Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    events.assign_timestamps_and_watermarks(strategy).key_by(lambda e: e[0], Types.STRING()).process(
        Tell(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
