"""print(label) begins lines with the label; several sinks print in one job."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3, 4, 5], type_info=Types.INT())
    numbers.filter(lambda n: n % 2 == 0).print("even")
    numbers.filter(lambda n: n % 2 == 1).print("odd")
    numbers.print()
    env.execute()


if __name__ == "__main__":
    main()
