"""on_timer works on the state of its key: emits what was collected, and clears it."""

# compare: per-key

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Batches(KeyedProcessFunction):
    def open(self, runtime_context):
        self._items = runtime_context.get_list_state(ListStateDescriptor("items", Types.LONG()))
        self._batches = runtime_context.get_state(ValueStateDescriptor("batches", Types.INT()))

    def process_element(self, value, ctx):
        self._items.add(value[1])
        # the end of the hundred that the element is in
        ctx.timer_service().register_event_time_timer(value[1] - value[1] % 100 + 99)
        return []

    def on_timer(self, timestamp, ctx):
        batches = (self._batches.value() or 0) + 1
        self._batches.update(batches)
        # which elements came before the timer depends on the watermarks: those of this hundred surely did
        done = [item for item in self._items.get() if item <= timestamp]
        self._items.update([item for item in self._items.get() if item > timestamp])
        yield f"{ctx.get_current_key()},batch {batches} until {timestamp}: {done}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = [("a", 10), ("b", 20), ("a", 30), ("a", 120), ("b", 340), ("a", 350), ("a", 399), ("a", 400)]
    stream = env.from_collection(events, Types.TUPLE([Types.STRING(), Types.LONG()]))
    stream = stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    stream.key_by(lambda e: e[0], Types.STRING()).process(Batches(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
