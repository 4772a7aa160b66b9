"""Late elements are dropped or go to a side output; which ones are late is certain here.

An element is late for a window that ends before the watermark. No watermark has come while the elements do,
and the assigner gives some elements a window that ends before any: the earliest time there is.
"""

# compare: sorted
# run: gate

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

LATE = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG(), Types.BOOLEAN()]))
FIRST = -(2**63)
EVENTS = [("a", 10, False), ("a", 20, True), ("b", 30, False), ("b", 130, True), ("a", 150, False)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class SomeEarly(TumblingEventTimeWindows):
    def assign_windows(self, element, timestamp, context):
        if element[2]:
            # its last millisecond is the earliest time there is
            return [TimeWindow(FIRST, FIRST + 1)]
        return super().assign_windows(element, timestamp, context)


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key} {context.window().start} {[element[1] for element in elements]}"


class FirstOfTime(TimestampAssigner):
    """The late elements have the earliest timestamp, too: late for the side output is what is late itself."""

    def extract_timestamp(self, value, record_timestamp):
        return FIRST if value[2] else value[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.BOOLEAN()]))
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FirstOfTime())
    )
    keyed = events.key_by(lambda e: e[0], Types.STRING())
    windows = keyed.window(SomeEarly(100, 0)).side_output_late_data(LATE).process(Show(), Types.STRING())
    windows.print("windows")
    windows.get_side_output(LATE).print("late")
    dropped = keyed.window(SomeEarly(100, 0)).process(Show(), Types.STRING())
    dropped.print("dropped")
    env.execute()


if __name__ == "__main__":
    main()
