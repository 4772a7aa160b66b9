"""What the context of a process window function tells at the end: the window, the last watermark, the time
of day.
"""

# compare: sorted
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Tell(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield (
            f"{key} {window!r} {window.max_timestamp()} {context.current_watermark()} "
            f"{context.current_processing_time() > 1_600_000_000_000} {window == TimeWindow(0, 100)} "
            f"{window.intersects(TimeWindow(100, 200))} {window.cover(TimeWindow(50, 500))} "
            f"{type(elements).__name__}"
        )


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection([("a", 10), ("b", 110)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).process(Tell(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
