"""A trigger of the program's own, with state, timers and a purge: fires early for big values and at the
window's end.
"""

# compare: per-key
# run: drill

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.datastream.window import Trigger, TriggerResult, TumblingEventTimeWindows

EVENTS = [
    ("a", 10, 1),
    ("a", 20, 100),
    ("b", 30, 5),
    ("a", 40, 2),
    ("a", 50, 200),
    ("b", 60, -1),
    ("a", 120, 3),
    ("b", 130, 7),
]


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Big(Trigger):
    """Fires for values of 100 and more; a negative one empties the window; at the end fires and purges."""

    def __init__(self):
        self._fired = ValueStateDescriptor("fired", Types.INT())

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        if element[2] < 0:
            return TriggerResult.PURGE
        if element[2] < 100:
            return TriggerResult.CONTINUE
        fired = ctx.get_partitioned_state(self._fired)
        fired.update((fired.value() or 0) + 1)
        # the second time the elements go
        return TriggerResult.FIRE_AND_PURGE if fired.value() == 2 else TriggerResult.FIRE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        raise NotImplementedError

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self._fired).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key},{context.window()},{[element[2] for element in elements]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(EVENTS, Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]))
    keyed = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).key_by(lambda e: e[0], Types.STRING())
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).trigger(Big())
    windows.process(Show(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
