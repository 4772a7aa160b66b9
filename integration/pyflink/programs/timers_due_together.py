"""What on_timer registers and deletes while other timers are due by the same watermark.

Apache PyFlink hands all timers that a watermark has passed to the Python worker before the first one runs.
So a timer that is due, too, can not be deleted any more (3000 here; Flink in Java would delete it), and
what is registered for a time in the past fires after all of them (5 and 1000 here; in Java 5 would come
before 2000).
"""

# compare: per-key
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Together(KeyedProcessFunction):
    def open(self, runtime_context):
        self._again = runtime_context.get_state(ValueStateDescriptor("again", Types.INT()))

    def process_element(self, value, ctx):
        for time in (1000, 2000, 3000):
            ctx.timer_service().register_event_time_timer(time)
        return []

    def on_timer(self, timestamp, ctx):
        service = ctx.timer_service()
        if timestamp == 1000:
            again = (self._again.value() or 0) + 1
            self._again.update(again)
            if again == 1:
                service.register_event_time_timer(1000)
                service.register_event_time_timer(5)
        elif timestamp == 2000:
            service.delete_event_time_timer(3000)
        yield f"{ctx.get_current_key()},{timestamp},{self._again.value()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection([("a", 100), ("b", 150)], Types.TUPLE([Types.STRING(), Types.LONG()]))
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    events.key_by(lambda e: e[0], Types.STRING()).process(Together(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
