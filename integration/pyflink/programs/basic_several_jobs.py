"""Several execute() in one program; each runs what was added since the last one."""

# compare: exact
# run: gate

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], type_info=Types.INT())
    numbers.map(lambda n: n + 1, Types.INT()).print("first")
    print("before the first job")
    env.execute("first")
    print("between")
    numbers.map(lambda n: n + 2, Types.INT()).print("second")
    env.execute("second")
    other = StreamExecutionEnvironment.get_execution_environment()
    other.set_parallelism(1)
    other.from_collection(["x"]).print("third")
    other.execute("third")
    print("end")


if __name__ == "__main__":
    main()
