"""Sliding event-time windows: each element is in several; slides that do not divide the size; an offset."""

# compare: sorted
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import SlidingEventTimeWindows

EVENTS = [("a", 0), ("b", 40), ("a", 60), ("a", 100), ("b", 101), ("a", 250)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield f"{key} [{window.start}, {window.end}) {[element[1] for element in elements]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    for label, assigner in {
        "half": SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(50)),
        "uneven": SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(70)),
        "offset": SlidingEventTimeWindows.of(
            Time.milliseconds(100), Time.milliseconds(50), Time.milliseconds(10)
        ),
        "gaps": SlidingEventTimeWindows.of(Time.milliseconds(30), Time.milliseconds(50)),
    }.items():
        keyed.window(assigner).process(Show(), Types.STRING()).print(label)
    env.execute()


if __name__ == "__main__":
    main()
