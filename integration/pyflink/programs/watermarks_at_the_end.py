"""Each strategy ends with the last watermark, also no_watermarks() and a stream without any; timers see it.

with_idleness() makes a new strategy without the timestamp assigner that was given before: it has to come
first.
"""

# compare: sorted
# differs: with_idleness keeps the timestamp assigner.

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class End(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(1_000_000)
        yield f"element {value[1]} {ctx.timestamp()} {ctx.timer_service().current_watermark()}"

    def on_timer(self, timestamp, ctx):
        yield f"timer {timestamp} {ctx.timer_service().current_watermark()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection([("a", 10), ("a", 5)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    stamp, minutes = Stamp(), Duration.of_minutes(5)
    strategies = {
        "monotonous": WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(stamp),
        "bounded": WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_millis(50)
        ).with_timestamp_assigner(stamp),
        "idle": WatermarkStrategy.for_monotonous_timestamps()
        .with_idleness(minutes)
        .with_timestamp_assigner(stamp),
        "lost": WatermarkStrategy.for_monotonous_timestamps()
        .with_timestamp_assigner(stamp)
        .with_idleness(minutes),
        "no": WatermarkStrategy.no_watermarks().with_timestamp_assigner(stamp),
    }
    for label, strategy in strategies.items():
        stream = events.assign_timestamps_and_watermarks(strategy)
        stream.key_by(lambda e: e[0]).process(End(), Types.STRING()).print(label)
    events.key_by(lambda e: e[0]).process(End(), Types.STRING()).print("none")
    env.execute()


if __name__ == "__main__":
    main()
