"""A map behind key_by that counts in an attribute: all elements of a key meet in one subtask."""

# compare: per-key
# key: \((\w+),

from pyflink.common import Types
from pyflink.datastream import MapFunction, StreamExecutionEnvironment

COUNT = Types.TUPLE([Types.STRING(), Types.INT()])


class Count(MapFunction):
    def __init__(self):
        self.seen = {}

    def map(self, value):
        self.seen[value[0]] = self.seen.get(value[0], 0) + 1
        return value[0], self.seen[value[0]]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection([(("red", "green", "blue")[n % 3], n) for n in range(30)], COUNT)
    spread = numbers.rebalance().map(lambda v: v, COUNT)
    spread.key_by(lambda v: v[0], Types.STRING()).map(Count(), COUNT).print()
    env.execute()


if __name__ == "__main__":
    main()
