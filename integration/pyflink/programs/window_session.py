"""Session windows with a gap: windows that touch are one; sessions of keys are their own."""

# compare: sorted
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows

EVENTS = [("a", 0), ("b", 5), ("a", 9), ("a", 19), ("b", 16), ("a", 30), ("b", 26), ("a", 50)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield f"{key} [{window.start}, {window.end}) {sorted(element[1] for element in elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(10))
    keyed.window(sessions).process(Show(), Types.STRING()).print("process")
    keyed.window(sessions).reduce(lambda a, b: (a[0], a[1] + b[1])).print("reduce")
    env.execute()


if __name__ == "__main__":
    main()
