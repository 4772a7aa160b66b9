"""In batch mode a keyed reduce or sum emits one result for a key, at the end; maps are as ever."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    events = env.from_collection([("a", 1), ("b", 10), ("a", 2), ("a", 3), ("b", 20)], pair)
    keyed = events.map(lambda v: (v[0], v[1] * 2), pair).key_by(lambda v: v[0], Types.STRING())
    keyed.reduce(lambda a, b: (a[0], a[1] + b[1])).print("reduce")
    keyed.max(1).print("max")
    env.execute()


if __name__ == "__main__":
    main()
