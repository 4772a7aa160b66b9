"""Tumbling event-time windows with reduce, and with an offset; negative times too; results carry the
window's last time.
"""

# compare: sorted

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

EVENTS = [("a", -1500), ("a", -1), ("a", 0), ("b", 10), ("a", 999), ("a", 1000), ("b", 2500), ("a", 2999)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class WithTimestamp(ProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value[0]} {value[1]} at {ctx.timestamp()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    for label, assigner in {
        "second": TumblingEventTimeWindows.of(Time.seconds(1)),
        "offset": TumblingEventTimeWindows.of(Time.seconds(1), Time.milliseconds(250)),
        "negative": TumblingEventTimeWindows.of(Time.milliseconds(700), Time.milliseconds(-100)),
    }.items():
        sums = keyed.window(assigner).reduce(lambda a, b: (a[0], a[1] + b[1]))
        sums.process(WithTimestamp(), Types.STRING()).print(label)
    env.execute()


if __name__ == "__main__":
    main()
