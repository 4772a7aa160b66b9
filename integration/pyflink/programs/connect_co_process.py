"""CoProcessFunction without keys: timestamps of both inputs, results of either."""

# compare: sorted
# run: gate

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import CoProcessFunction, StreamExecutionEnvironment


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Merge(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield f"first {value[0]} {ctx.timestamp()}"

    def process_element2(self, value, ctx):
        yield f"second {value} {ctx.timestamp()}"
        yield "and again"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    stamped = env.from_collection([("a", 10), ("b", 20)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    stamped = stamped.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    plain = env.from_collection([1, 2, 3])
    stamped.connect(plain).process(Merge(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
