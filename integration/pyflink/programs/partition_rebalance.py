"""rebalance, rescale, shuffle, forward and global partitioning lose and double nothing; broadcast doubles
for two subtasks.
"""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import MapFunction, StreamExecutionEnvironment


class Tag(MapFunction):
    def __init__(self, tag):
        self._tag = tag

    def map(self, value):
        return f"{self._tag} {value}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection([1, 2, 3, 4], type_info=Types.INT()).map(lambda n: n, Types.INT())
    numbers.rebalance().map(Tag("rebalance"), Types.STRING()).print()
    numbers.rescale().map(Tag("rescale"), Types.STRING()).print()
    numbers.shuffle().map(Tag("shuffle"), Types.STRING()).print()
    numbers.forward().map(Tag("forward"), Types.STRING()).print()
    numbers.broadcast().map(Tag("broadcast"), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
