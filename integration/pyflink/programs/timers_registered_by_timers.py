"""on_timer registers the next timer; at the end of the input all of them still fire, one after the other."""

# compare: per-key
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Countdown(KeyedProcessFunction):
    def open(self, runtime_context):
        self._left = runtime_context.get_state(ValueStateDescriptor("left", Types.INT()))

    def process_element(self, value, ctx):
        self._left.update(value[2])
        ctx.timer_service().register_event_time_timer(value[1])
        return []

    def on_timer(self, timestamp, ctx):
        left = self._left.value()
        if left > 0:
            self._left.update(left - 1)
            ctx.timer_service().register_event_time_timer(timestamp + 100)
        yield f"{ctx.get_current_key()},{timestamp},{left}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = env.from_collection(
        [("a", 100, 3), ("b", 150, 0), ("c", 160, 5)],
        Types.TUPLE([Types.STRING(), Types.LONG(), Types.INT()]),
    )
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    events.key_by(lambda e: e[0], Types.STRING()).process(Countdown(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
