"""ValueState: None at first, updates, other values for other keys, cleared back to None."""

# compare: per-key
# run: drill

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Remember(KeyedProcessFunction):
    def open(self, runtime_context):
        self._last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))
        self._any = runtime_context.get_state(ValueStateDescriptor("any", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        key, word = value
        before = self._last.value()
        if word == "clear":
            self._last.clear()
            self._any.clear()
        else:
            self._last.update(word)
            seen = self._any.value() or {"words": []}
            # the object that was read is changed and given back
            seen["words"].append(word)
            self._any.update(seen)
        yield f"{key},{before} -> {self._last.value()},{self._any.value()}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = [
        ("a", "x"),
        ("b", "y"),
        ("a", "z"),
        ("a", "clear"),
        ("a", "again"),
        ("b", "clear"),
        ("b", "clear"),
    ]
    stream = env.from_collection(events, type_info=Types.TUPLE([Types.STRING(), Types.STRING()]))
    stream.key_by(lambda e: e[0], Types.STRING()).process(Remember(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
