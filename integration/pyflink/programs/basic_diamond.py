"""One stream read by two operators and joined again by union; each element goes both ways."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3, 4], type_info=Types.INT())
    doubled = numbers.map(lambda n: n * 2, Types.INT())
    odd = numbers.filter(lambda n: n % 2 == 1)
    doubled.union(odd).map(lambda n: f"value {n}", Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
