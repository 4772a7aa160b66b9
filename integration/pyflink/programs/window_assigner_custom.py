"""A window assigner of the program's own: windows of a length that the element brings, some elements in
none.
"""

# compare: sorted
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import EventTimeTrigger, TimeWindow, TimeWindowSerializer, WindowAssigner

EVENTS = [("a", 10, 100), ("a", 20, 50), ("b", 30, 0), ("a", 60, 100), ("b", 160, 100), ("b", 170, 50)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class ByLength(WindowAssigner):
    def assign_windows(self, element, timestamp, context):
        length = element[2]
        if length == 0:
            return []
        start = TimeWindow.get_window_start_with_offset(timestamp, 0, length)
        return [TimeWindow(start, start + length)]

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def get_window_serializer(self):
        return TimeWindowSerializer()

    def is_event_time(self):
        return True


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key} {context.window()} {[element[1] for element in elements]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    keyed.window(ByLength()).process(Show(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
