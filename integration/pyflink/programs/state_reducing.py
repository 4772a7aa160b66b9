"""ReducingState: None at first, reduced by a lambda or a class, cleared."""

# compare: per-key
# run: drill

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, ReduceFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ReducingStateDescriptor


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return value2 if len(value2) > len(value1) else value1


class Summary(KeyedProcessFunction):
    def open(self, runtime_context):
        self._sum = runtime_context.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
        )
        self._longest = runtime_context.get_reducing_state(
            ReducingStateDescriptor("longest", Longest(), Types.STRING())
        )

    def process_element(self, value, ctx):
        key, word = value
        before = self._sum.get(), self._longest.get()
        if word == "clear":
            self._sum.clear()
            self._longest.clear()
        else:
            self._sum.add(len(word))
            self._longest.add(word)
        yield f"{key},{before} {self._sum.get()} {self._longest.get()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = [
        ("a", "to"),
        ("a", "being"),
        ("b", "x"),
        ("a", "not"),
        ("a", "clear"),
        ("a", "or"),
        ("b", "clear"),
    ]
    env.from_collection(events).key_by(lambda e: e[0]).process(Summary()).print()
    env.execute()


if __name__ == "__main__":
    main()
