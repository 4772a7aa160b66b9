"""The continuous event-time trigger when one watermark passes several intervals: the window fires twice, not
four times.

Apache PyFlink hands the timers at 100 and at the window's end to the Python worker together; the timer at
200, which the one at 100 registers, comes when the window is gone. (Flink in Java would fire at 100, 200,
300 and 399.)
"""

# compare: per-key
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import ContinuousEventTimeTrigger, TumblingEventTimeWindows


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
    events = env.from_collection(
        [("a", 10), ("a", 120), ("b", 130)], Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(400)))
    windows.trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(100))).process(
        Show(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
