"""Co-map and co-flat-map on keyed streams, with state that both inputs share."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import CoFlatMapFunction, CoMapFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ReducingStateDescriptor


class Totals(CoMapFunction):
    """Emits where the key's total is complete, which is the same in each order of the inputs."""

    def open(self, runtime_context):
        self._total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.INT())
        )

    def map1(self, value):
        return self._add(value[0], value[1])

    def map2(self, value):
        return self._add(value[0], value[1] * 100)

    def _add(self, key, amount):
        self._total.add(amount)
        total = self._total.get()
        return f"{key} {total}" if total in (303, 5, 800) else None


class Twice(CoFlatMapFunction):
    def flat_map1(self, value):
        return [f"{value[0]} {value[1]}"] * 2

    def flat_map2(self, value):
        return []


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    ones = env.from_collection([("a", 1), ("b", 5), ("a", 2)], type_info=pair)
    hundreds = env.from_collection([("a", 3), ("c", 7), ("c", 1)], type_info=pair)
    keyed = ones.connect(hundreds).key_by(lambda v: v[0], lambda v: v[0], Types.STRING())
    keyed.map(Totals(), Types.STRING()).print("totals")
    keyed.flat_map(Twice(), Types.STRING()).print("twice")
    env.execute()


if __name__ == "__main__":
    main()
