"""Broadcast state with two subtasks: each has all rules; a key is handled by one subtask."""

# compare: sorted
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Apply(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(10_000)
        return []

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        yield "rule"

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()} {sorted(ctx.get_broadcast_state(RULES).items())}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection(
        [(f"k{n % 4}", n) for n in range(8)], Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    rules = env.from_collection([("x", 1), ("y", 2), ("x", 3)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    rules = rules.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    ).set_parallelism(1)
    events.key_by(lambda e: e[0], Types.STRING()).connect(rules.broadcast(RULES)).process(
        Apply(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
