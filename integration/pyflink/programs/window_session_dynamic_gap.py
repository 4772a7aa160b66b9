"""Session windows whose gap each element brings itself."""

# compare: sorted
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows, SessionWindowTimeGapExtractor

EVENTS = [("a", 0, 10), ("a", 8, 2), ("a", 11, 5), ("b", 11, 100), ("b", 50, 10), ("a", 30, 1), ("b", 200, 3)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[2]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield f"{key} [{window.start}, {window.end}) {sorted(element[1] for element in elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    keyed.window(EventTimeSessionWindows.with_dynamic_gap(Gap())).process(Show(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
