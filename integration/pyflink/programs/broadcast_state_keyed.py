"""KeyedBroadcastProcessFunction: elements wait in keyed state, timers at the end apply all rules."""

# compare: sorted
# run: gate

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Apply(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self._waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_element(self, value, ctx):
        self._waiting.add(value[1])
        ctx.timer_service().register_event_time_timer(10_000)
        yield f"waits {ctx.get_current_key()} {ctx.timestamp()}"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        yield f"rule {value[0]} {ctx.timestamp()}"

    def on_timer(self, timestamp, ctx):
        rules = ctx.get_broadcast_state(RULES)
        for name, factor in sorted(rules.items()):
            results = [n * factor for n in self._waiting.get()]
            yield f"{ctx.get_current_key()} {name} {results} {ctx.time_domain()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    events = env.from_collection([("a", 1), ("b", 2), ("a", 3)], pair)
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    # without watermarks of its own the rules' stream would hold all timers back until its end, too
    rules = env.from_collection(
        [("double", 2), ("hundred", 100)], Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    rules = rules.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    events.key_by(lambda e: e[0], Types.STRING()).connect(rules.broadcast(RULES)).process(
        Apply(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
