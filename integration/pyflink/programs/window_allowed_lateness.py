"""Allowed lateness changes nothing for elements that are not late; the window function fires once per
window.
"""

# compare: sorted

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

EVENTS = [("a", 10), ("b", 30), ("a", 90), ("a", 150), ("b", 250), ("a", 260)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    for label, assigner in {
        "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(100)),
        "session": EventTimeSessionWindows.with_gap(Time.milliseconds(85)),
    }.items():
        # a tag of its own for each: Apache PyFlink cannot pickle one that get_side_output has used
        late = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG()]))
        windows = keyed.window(assigner).allowed_lateness(1000).side_output_late_data(late)
        sums = windows.reduce(lambda a, b: (a[0], a[1] + b[1]))
        sums.print(label)
        sums.get_side_output(late).print("late")
    env.execute()


if __name__ == "__main__":
    main()
