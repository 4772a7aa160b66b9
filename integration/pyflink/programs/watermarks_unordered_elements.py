"""Elements that are out of order reach process functions whatever the watermark is; only windows drop late
ones.
"""

# compare: sorted
# run: drill

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Tell(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value[0]} {ctx.timestamp()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(
        [("a", 5000), ("a", 10), ("b", 4000), ("a", 20), ("b", -100)],
        Types.TUPLE([Types.STRING(), Types.LONG()]),
    )
    for strategy in (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100)),
        WatermarkStrategy.for_monotonous_timestamps(),
    ):
        stream = events.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Stamp()))
        stream.key_by(lambda e: e[0], Types.STRING()).process(Tell(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
