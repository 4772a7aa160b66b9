"""CoFlatMapFunction: nothing, one or several results for an element of either input."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import CoFlatMapFunction, StreamExecutionEnvironment


class Merge(CoFlatMapFunction):
    def flat_map1(self, value):
        for number in range(value):
            yield f"{number} of {value}"

    def flat_map2(self, value):
        return value.split()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([0, 1, 3], type_info=Types.INT())
    texts = env.from_collection(["a b c", "", "d"])
    numbers.connect(texts).flat_map(Merge(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
