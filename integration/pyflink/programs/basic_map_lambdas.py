"""map with lambdas, without types: values travel pickled and are printed with str()."""

# compare: exact
# run: drill

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([3, 1, 2, -5, 0])
    numbers.map(lambda n: n * n).map(lambda n: {"square": n, "even": n % 2 == 0}).print()
    env.execute("squares")


if __name__ == "__main__":
    main()
