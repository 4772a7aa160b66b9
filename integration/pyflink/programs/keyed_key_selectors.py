"""Key selectors: classes with open(), lambdas over rows; elements keep their own type."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import KeySelector, StreamExecutionEnvironment


class Modulo(KeySelector):
    def __init__(self, divisor):
        self._divisor = divisor
        self._offset = 100

    def open(self, runtime_context):
        self._offset = 0

    def get_key(self, value):
        return value % self._divisor + self._offset


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection(list(range(10)), type_info=Types.INT())
    numbers.key_by(Modulo(3), Types.INT()).reduce(lambda a, b: a + b).print("sums")
    people = env.from_collection(
        [("a", "x", 1), ("b", "y", 2), ("a", "x", 3)],
        type_info=Types.ROW_NAMED(["first", "last", "n"], [Types.STRING(), Types.STRING(), Types.INT()]),
    )
    people.key_by(lambda row: (row.first, row.last), Types.TUPLE([Types.STRING(), Types.STRING()])).sum(
        "n"
    ).print("rows")
    env.execute()


if __name__ == "__main__":
    main()
