"""Deleted timers do not fire; deleting one that was never registered does nothing; one may be registered
again.
"""

# compare: per-key
# run: drill

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Remind(KeyedProcessFunction):
    def process_element(self, value, ctx):
        service = ctx.timer_service()
        key, time, command = value
        if command == "register":
            service.register_event_time_timer(time + 1000)
            service.register_event_time_timer(time + 2000)
        elif command == "delete":
            service.delete_event_time_timer(1100)
            service.delete_event_time_timer(7777)
        elif command == "again":
            service.delete_event_time_timer(1100)
            service.register_event_time_timer(1100)
        return []

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()},{timestamp}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # no watermark before the end, so that all elements come before the first timer
    env.get_config().set_auto_watermark_interval(3_600_000)
    events = env.from_collection(
        [
            ("plain", 100, "register"), ("deleted", 100, "register"), ("deleted", 101, "delete"),
            ("again", 100, "register"), ("again", 101, "delete"), ("again", 102, "again"),
            ("empty", 103, "delete"),
        ],
        Types.TUPLE([Types.STRING(), Types.LONG(), Types.STRING()]),
    )  # fmt: skip
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    events.key_by(lambda e: e[0], Types.STRING()).process(Remind(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
