"""Side outputs of a keyed process function, from elements and timers, keyed again and joined by union."""

# compare: sorted
# run: gate

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, OutputTag, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

FIRSTS = OutputTag("firsts", Types.TUPLE([Types.STRING(), Types.LONG()]))
ENDS = OutputTag("ends", Types.TUPLE([Types.STRING(), Types.LONG()]))


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Mark(KeyedProcessFunction):
    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        if count == 1:
            yield FIRSTS, value
            ctx.timer_service().register_event_time_timer(10_000)
        yield value[0], count

    def on_timer(self, timestamp, ctx):
        yield ENDS, (ctx.get_current_key(), self._count.value())


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    events = env.from_collection([("a", 1), ("b", 2), ("a", 3), ("a", 4)], pair)
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    marked = events.key_by(lambda e: e[0], Types.STRING()).process(Mark(), pair)
    marked.print("main")
    firsts, ends = marked.get_side_output(FIRSTS), marked.get_side_output(ENDS)
    firsts.print("firsts")
    firsts.union(ends).key_by(lambda e: e[0], Types.STRING()).sum(1).filter(lambda e: e[1] > 2).print("sum")
    env.execute()


if __name__ == "__main__":
    main()
