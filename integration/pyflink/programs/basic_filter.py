"""filter by a lambda and by a class; values that are not booleans count by their truth."""

# compare: exact
# run: drill

from pyflink.datastream import FilterFunction, StreamExecutionEnvironment


class Odd(FilterFunction):
    def filter(self, value):
        return value % 2  # 1 or 0, not a boolean


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(list(range(12))).filter(lambda n: n > 3).filter(Odd()).print()
    env.execute()


if __name__ == "__main__":
    main()
