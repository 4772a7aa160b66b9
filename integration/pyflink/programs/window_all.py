"""Windows over all elements, whatever their key: reduce, aggregate, apply and process."""

# compare: sorted

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, StreamExecutionEnvironment

# pyflink.datastream does not bring these two
from pyflink.datastream.functions import AllWindowFunction, ProcessAllWindowFunction
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

EVENTS = [("a", 10), ("b", 20), ("a", 99), ("c", 150), ("a", 260), ("b", 270)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Apply(AllWindowFunction):
    def apply(self, window, inputs):
        yield f"{window.start} {[value[0] for value in inputs]}"


class Process(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield f"{context.window()} {list(elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    tumbling = TumblingEventTimeWindows.of(Time.milliseconds(100))
    events.window_all(tumbling).reduce(lambda a, b: (a[0] + b[0], a[1] + b[1])).print("reduce")
    events.window_all(tumbling).aggregate(
        Count(), accumulator_type=Types.INT(), output_type=Types.INT()
    ).print("aggregate")
    events.window_all(tumbling).aggregate(Count(), Process(), output_type=Types.STRING()).print(
        "aggregate_process"
    )
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(50))
    events.window_all(sliding).apply(Apply(), Types.STRING()).print("apply")
    session = EventTimeSessionWindows.with_gap(Time.milliseconds(60))
    events.window_all(session).process(Process(), Types.STRING()).print("process")
    env.execute()


if __name__ == "__main__":
    main()
