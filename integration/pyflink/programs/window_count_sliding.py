"""Sliding count windows: of three elements, after every two."""

# compare: per-key
# run: drill
# key: ^(\w+> \(?'?\w+)

from pyflink.common import Types
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{key},{context.window()},{[element[1] for element in elements]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = [("a", number) for number in range(1, 10)] + [("b", 1), ("b", 2), ("b", 3), ("c", 1)]
    keyed = env.from_collection(events, Types.TUPLE([Types.STRING(), Types.INT()])).key_by(
        lambda e: e[0], Types.STRING()
    )
    keyed.count_window(3, 2).process(Show(), Types.STRING()).print("process")
    keyed.count_window(2, 1).reduce(lambda a, b: (a[0], a[1] + b[1])).print("reduce")
    keyed.count_window(2, 3).process(Show(), Types.STRING()).print("gaps")
    env.execute()


if __name__ == "__main__":
    main()
