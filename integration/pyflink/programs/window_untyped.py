"""Windows over a stream without types, keys without a type, results without a type."""

# compare: sorted
# run: drill

from pyflink.common import Time, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows


class Moment(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value["at"]


class Collect(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield {"key": key, "window": context.window(), "values": [element["value"] for element in elements]}


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(
        [
            {"at": 10, "value": {1, 2}, "key": ("x", 1)},
            {"at": 20, "value": None, "key": ("x", 2)},
            {"at": 30, "value": "text", "key": ("x", 1)},
            {"at": 1500, "value": 2.5, "key": ("x", 1)},
        ]
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Moment())
    keyed = events.assign_timestamps_and_watermarks(strategy).key_by(lambda e: e["key"])
    keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).process(Collect()).print()
    keyed.window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(
        lambda a, b: {**a, "value": "both"}
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
