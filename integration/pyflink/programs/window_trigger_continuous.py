"""The continuous event-time trigger fires when the watermark passes the interval, and at the window's end.

No watermark comes before the end, so each firing shows all elements of the window.
"""

# compare: per-key

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import ContinuousEventTimeTrigger, TumblingEventTimeWindows

EVENTS = [("a", 10), ("a", 120), ("b", 130), ("a", 290), ("b", 310), ("a", 320)]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key},{context.window()},{[element[1] for element in elements]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(200)))
    windows.trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(100))).process(
        Show(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
