"""map, flat_map and filter on a keyed stream may use keyed state."""

# compare: per-key
# key: ^(\w+> \(?'?\w+)
# run: gate

from pyflink.common import Types
from pyflink.datastream import FilterFunction, FlatMapFunction, MapFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Counting:
    def open(self, runtime_context):
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def count(self):
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        return count


class Number(Counting, MapFunction):
    def map(self, value):
        return f"{value},{self.count()}"


class Repeat(Counting, FlatMapFunction):
    def flat_map(self, value):
        for number in range(self.count()):
            yield f"{value},{number}"


class EverySecond(Counting, FilterFunction):
    def filter(self, value):
        return self.count() % 2 == 0


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    values = ["a", "b", "a", "c", "a", "b", "a"]
    keyed = env.from_collection(values, type_info=Types.STRING()).key_by(lambda v: v, Types.STRING())
    keyed.map(Number(), Types.STRING()).print("map")
    keyed.flat_map(Repeat(), Types.STRING()).print("flat_map")
    keyed.filter(EverySecond()).print("filter")
    env.execute()


if __name__ == "__main__":
    main()
