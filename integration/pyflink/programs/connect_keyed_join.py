"""A join with KeyedCoProcessFunction: state of both inputs, matched in a timer when both are complete."""

# compare: sorted
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Join(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self._order = runtime_context.get_state(ValueStateDescriptor("order", Types.STRING()))
        self._payments = runtime_context.get_list_state(ListStateDescriptor("payments", Types.INT()))

    def process_element1(self, value, ctx):
        self._order.update(value[2])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)
        return []

    def process_element2(self, value, ctx):
        self._payments.add(value[2])
        ctx.timer_service().register_event_time_timer(5000)
        return []

    def on_timer(self, timestamp, ctx):
        yield (
            f"{ctx.get_current_key()} at {timestamp}: {self._order.value()} "
            f"{sorted(self._payments.get())} {ctx.time_domain()}"
        )
        if timestamp == 5000:
            self._payments.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    orders = env.from_collection(
        [(1, 100, "tea"), (2, 200, "milk"), (4, 4500, "rice")],
        Types.TUPLE([Types.INT(), Types.LONG(), Types.STRING()]),
    ).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    payments = env.from_collection(
        [(1, 150, 5), (3, 160, 7), (1, 170, 6)], Types.TUPLE([Types.INT(), Types.LONG(), Types.INT()])
    ).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    orders.connect(payments).key_by(lambda o: o[0], lambda p: p[0], Types.INT()).process(
        Join(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
