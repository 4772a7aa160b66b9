"""project picks fields of tuples, in any order and repeatedly."""

# compare: exact
# run: drill

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    tuples = env.from_collection(
        [(1, "a", 0.5), (2, "b", 1.0)], Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()])
    )
    tuples.project(2, 0).print()
    env.execute()
    tuples.project(1, 1).map(lambda t: f"{t}", Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
