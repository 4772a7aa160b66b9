"""Event-time timers: several per key in order of time, the same one registered twice fires once."""

# compare: per-key
# run: gate

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Remind(KeyedProcessFunction):
    def process_element(self, value, ctx):
        for delay in (30, 10, 20, 10):
            ctx.timer_service().register_event_time_timer(value[1] + delay)
        return []

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()},{timestamp}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(
        [("a", 100), ("b", 100), ("a", 110), ("c", 500)], Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    events.key_by(lambda e: e[0], Types.STRING()).process(Remind(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
