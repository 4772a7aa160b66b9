"""reduce with a window function: it is given the one reduced value, its key and its window."""

# compare: sorted
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from pyflink.datastream.window import TumblingEventTimeWindows

EVENTS = [("a", 10), ("a", 20), ("b", 30), ("a", 140), ("b", 150)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Add(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1]


class Process(ProcessWindowFunction):
    def open(self, runtime_context):
        self._name = "process"

    def process(self, key, context, elements):
        return [f"{self._name} {key} {context.window().max_timestamp()} {list(elements)}"]


class Apply(WindowFunction):
    def open(self, runtime_context):
        self._name = "apply"

    def apply(self, key, window, inputs):
        for value in inputs:
            yield f"{self._name} {key} {window.start} {value}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    assigner = TumblingEventTimeWindows.of(Time.milliseconds(100))
    keyed.window(assigner).reduce(Add(), Process(), Types.STRING()).print()
    keyed.window(assigner).reduce(Add(), Apply(), Types.STRING()).print()
    keyed.window(assigner).reduce(Add()).print()
    env.execute()


if __name__ == "__main__":
    main()
