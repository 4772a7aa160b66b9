"""Timers of many keys with two subtasks; each key's timers fire in order."""

# compare: per-key
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ReducingStateDescriptor


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Sum(KeyedProcessFunction):
    def open(self, runtime_context):
        self._sum = runtime_context.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG())
        )

    def process_element(self, value, ctx):
        self._sum.add(value[1])
        ctx.timer_service().register_event_time_timer(10_000)
        ctx.timer_service().register_event_time_timer(20_000 + value[1])
        return []

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()},{timestamp},{self._sum.get()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    events = env.from_collection([(n % 5, n) for n in range(30)], Types.TUPLE([Types.INT(), Types.LONG()]))
    # of both subtasks the watermark stays behind until the end
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    events.assign_timestamps_and_watermarks(strategy).key_by(lambda e: e[0], Types.INT()).process(
        Sum(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
