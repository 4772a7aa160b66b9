"""State of a window and state of a key in a process window function; clear() is called when a window is
over.
"""

# compare: per-key

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import CountTrigger, TumblingEventTimeWindows

EVENTS = [
    ("a", 10),
    ("a", 20),
    ("b", 30),
    ("a", 40),
    ("a", 50),
    ("b", 60),
    ("a", 110),
    ("a", 120),
    ("b", 130),
    ("b", 140),
]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Firings(ProcessWindowFunction):
    def __init__(self):
        self._of_window = ValueStateDescriptor("of window", Types.INT())
        self._of_key = ValueStateDescriptor("of key", Types.INT())

    def process(self, key, context, elements):
        window_state = context.window_state().get_state(self._of_window)
        key_state = context.global_state().get_state(self._of_key)
        window_state.update((window_state.value() or 0) + 1)
        key_state.update((key_state.value() or 0) + 1)
        counts = f"{window_state.value()},{key_state.value()},{len(list(elements))}"
        yield f"{key},{context.window().start},{counts}"

    def clear(self, context):
        context.window_state().get_state(self._of_window).clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).trigger(CountTrigger.of(2))
    windows.process(Firings(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
