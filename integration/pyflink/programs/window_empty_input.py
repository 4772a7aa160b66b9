"""Filters that let nothing through, and operators that never see an element, still end the job."""

# compare: exact
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection([("a", 10)], Types.TUPLE([Types.STRING(), Types.LONG()])).filter(
        lambda e: False
    )
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(lambda a, b: a).print()
    events.window_all(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(lambda a, b: a).print()
    keyed.sum(1).print()
    env.execute()
    print("done")


if __name__ == "__main__":
    main()
