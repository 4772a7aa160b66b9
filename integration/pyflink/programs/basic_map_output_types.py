"""map with output types: the print sink is Java's then, so that true, 1.0E10 and null are printed."""

# compare: exact

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 300], type_info=Types.INT())
    numbers.map(lambda n: n + 1, output_type=Types.INT()).print()
    env.execute()
    numbers.map(lambda n: n * 10**12, output_type=Types.LONG()).print()
    env.execute()
    numbers.map(lambda n: n / 4, output_type=Types.DOUBLE()).print()
    env.execute()
    numbers.map(lambda n: n > 1, output_type=Types.BOOLEAN()).print()
    env.execute()
    numbers.map(lambda n: f"number {n}", output_type=Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
