"""Tumbling count windows: what does not fill a window at the end is never emitted."""

# compare: per-key
# key: ^(\w+> \(?'?\w+)

from pyflink.common import Types
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key},{context.window()},{[element[1] for element in elements]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = [("a", 1), ("b", 10), ("a", 2), ("a", 3), ("b", 20), ("a", 4), ("c", 100), ("a", 5)]
    keyed = env.from_collection(events, Types.TUPLE([Types.STRING(), Types.INT()])).key_by(
        lambda e: e[0], Types.STRING()
    )
    keyed.count_window(2).reduce(lambda a, b: (a[0], a[1] + b[1])).print("reduce")
    keyed.count_window(2).process(Show(), Types.STRING()).print("process")
    keyed.count_window(1).process(Show(), Types.STRING()).print("one")
    env.execute()


if __name__ == "__main__":
    main()
