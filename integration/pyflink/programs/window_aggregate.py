"""aggregate, alone and with window functions; accumulators with and without types."""

# compare: sorted
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from pyflink.datastream.window import TumblingEventTimeWindows

EVENTS = [("a", 10), ("a", 20), ("b", 30), ("a", 141), ("b", 150)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Average(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Process(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, next(iter(elements))


class Apply(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.end, list(inputs)[0])]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    assigner = TumblingEventTimeWindows.of(Time.milliseconds(100))
    accumulator = Types.TUPLE([Types.LONG(), Types.LONG()])
    result = Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()])
    keyed.window(assigner).aggregate(
        Average(), accumulator_type=accumulator, output_type=Types.DOUBLE()
    ).print("alone")
    keyed.window(assigner).aggregate(Average()).print("untyped")
    keyed.window(assigner).aggregate(Average(), Process(), accumulator, result).print("process")
    keyed.window(assigner).aggregate(Average(), Apply(), output_type=result).print("apply")
    env.execute()


if __name__ == "__main__":
    main()
