"""Processing-time timers that are not due when the input ends never fire; the job ends without them."""

# compare: per-key
# run: drill

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment


class Later(KeyedProcessFunction):
    def process_element(self, value, ctx):
        service = ctx.timer_service()
        now = service.current_processing_time()
        in_a_day = now + 86_400_000
        service.register_processing_time_timer(in_a_day)
        service.register_processing_time_timer(in_a_day + 1)
        service.delete_processing_time_timer(in_a_day)
        yield f"{value},{isinstance(now, int)},{now > 1_600_000_000_000}"

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()},must not fire"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(["a", "b", "a"], Types.STRING()).key_by(lambda v: v, Types.STRING()).process(
        Later(), Types.STRING()
    ).print()
    env.execute()


if __name__ == "__main__":
    main()
