"""union of several streams, of one stream with itself, and of unions."""

# compare: sorted

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    a = env.from_collection(["a1", "a2"], type_info=Types.STRING())
    b = env.from_collection(["b1"], type_info=Types.STRING())
    c = env.from_collection(["c1", "c2", "c3"], type_info=Types.STRING())
    a.union(b, c).map(lambda v: "three " + v, Types.STRING()).print()
    a.union(a).map(lambda v: "twice " + v, Types.STRING()).print()
    a.union(b).union(c).filter(lambda v: v.endswith("1")).print("nested")
    env.execute()


if __name__ == "__main__":
    main()
