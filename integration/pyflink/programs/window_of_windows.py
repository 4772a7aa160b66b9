"""Windows over the results of windows: results have their window's last time, and fall into the right larger
window.
"""

# compare: sorted

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
EVENTS = [("a", 10), ("b", 20), ("a", 99), ("a", 150), ("b", 399), ("a", 400), ("a", 420), ("b", 790)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key} {context.window().start} {sorted(element[1] for element in elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, PAIR).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    small = events.key_by(lambda e: e[0], Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.milliseconds(100))
    )
    counts = small.reduce(lambda a, b: (a[0], a[1] + b[1]))
    large = counts.key_by(lambda e: e[0], Types.STRING()).window(
        TumblingEventTimeWindows.of(Time.milliseconds(400))
    )
    large.process(Show(), Types.STRING()).print("large")
    counts.window_all(TumblingEventTimeWindows.of(Time.milliseconds(400))).reduce(
        lambda a, b: ("all", a[1] + b[1])
    ).print("all")
    env.execute()


if __name__ == "__main__":
    main()
