"""An element that joins two sessions merges them, their elements, accumulators and reduced values."""

# compare: sorted
# differs: Apache PyFlink loses what the first of two merged sessions held; nothing is lost here.
# run: gate

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows

# out of order, and no watermark before the end: the sessions of a grow together when 10 comes
EVENTS = [("a", 0), ("a", 20), ("b", 100), ("a", 10), ("a", 60), ("b", 70), ("b", 85), ("a", 45)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Collect(AggregateFunction):
    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return accumulator + [value[1]]

    def get_result(self, accumulator):
        return sorted(accumulator)

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield f"{key} [{window.start}, {window.end}) {sorted(map(str, elements))}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(15))
    keyed.window(sessions).process(Show(), Types.STRING()).print("list")
    keyed.window(sessions).aggregate(Collect(), Show(), output_type=Types.STRING()).print("aggregate")
    keyed.window(sessions).reduce(lambda a, b: (a[0], a[1] + b[1]), Show(), Types.STRING()).print("reduce")
    env.execute()


if __name__ == "__main__":
    main()
