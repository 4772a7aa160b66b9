"""apply with a window function: key, window and all elements, in order of arrival; any number of results."""

# compare: sorted
# run: drill

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment, WindowFunction
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Spread(WindowFunction[tuple, Row, str, TimeWindow]):
    def apply(self, key, window, inputs):
        times = [value[1] for value in inputs]
        if len(times) > 1:
            yield Row(key, window.start, max(times) - min(times))
            yield Row(key, window.end, len(times))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(
        [("a", 10), ("b", 20), ("a", 30), ("a", 120), ("a", 199), ("b", 250)],
        Types.TUPLE([Types.STRING(), Types.LONG()]),
    )
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).apply(
        Spread(), Types.ROW_NAMED(["key", "at", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
