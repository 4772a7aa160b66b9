"""CoMapFunction over two streams of different types; a None as result is left out, unlike with map."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import CoMapFunction, StreamExecutionEnvironment


class Merge(CoMapFunction):
    def open(self, runtime_context):
        self._prefix = "opened"

    def map1(self, value):
        return f"{self._prefix} number {value}" if value != 2 else None

    def map2(self, value):
        return f"{self._prefix} text {value}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], type_info=Types.INT())
    texts = env.from_collection(["a", "b"], type_info=Types.STRING())
    numbers.connect(texts).map(Merge(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
