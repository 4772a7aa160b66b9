"""union of streams without types: any values side by side."""

# compare: sorted
# run: drill

from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2.5])
    others = env.from_collection(["text", None, ("tuple", 1), [1, 2]])
    numbers.union(others).map(lambda v: f"{type(v).__name__}: {v}").print()
    env.execute()


if __name__ == "__main__":
    main()
