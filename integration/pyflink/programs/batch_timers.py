"""In batch mode the elements of a key come by their times, and all its timers when they are over: first those
of the event time, then those of the clock (PyFlink, whose timers pass through two processes, may mix them).
"""

# compare: sorted

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment


class Stamp(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Timers(KeyedProcessFunction):
    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        timers.register_event_time_timer(value[1] + 1)
        # long after the job
        timers.register_processing_time_timer(4_000_000_000_000 + value[1])
        yield f"{value[0]},element {value[1]} {timers.current_watermark()}"

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()},timer {timestamp} {ctx.time_domain().name}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    events = env.from_collection(
        [("a", 30), ("b", 40), ("a", 1), ("b", 20), ("a", 15)], Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    events = events.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamp())
    )
    events.key_by(lambda v: v[0], Types.STRING()).process(Timers(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
