"""Keyed state with two subtasks and few key groups: each key has its own counts, wherever it is."""

# compare: per-key
# run: drill

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield f"{ctx.get_current_key()},{count},{value}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.set_max_parallelism(8)
    numbers = env.from_collection(list(range(40)), type_info=Types.INT())
    numbers.key_by(lambda n: n % 7, Types.INT()).process(Count(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
