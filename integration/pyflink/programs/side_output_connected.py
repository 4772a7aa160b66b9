"""Side outputs of functions with two inputs, keyed and not."""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ValueStateDescriptor

LEFT = OutputTag("left", Types.STRING())
RIGHT = OutputTag("right", Types.STRING())


class Split(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield LEFT, f"left {value}"
        yield f"main {value}"

    def process_element2(self, value, ctx):
        yield RIGHT, f"right {value}"


class Both(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.STRING()))

    def process_element1(self, value, ctx):
        return self._see("1", value)

    def process_element2(self, value, ctx):
        return self._see("2", value)

    def _see(self, side, value):
        seen = self._seen.value()
        if seen is not None and seen != side:
            yield LEFT, f"both {value}"
        self._seen.update(side)
        yield f"{side} {value}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    ones = env.from_collection(["a", "b"], type_info=Types.STRING())
    twos = env.from_collection(["b", "c"], type_info=Types.STRING())
    split = ones.connect(twos).process(Split(), Types.STRING())
    split.print("split")
    split.get_side_output(LEFT).print("split_left")
    split.get_side_output(RIGHT).print("split_right")
    both = ones.connect(twos).key_by(lambda v: v, lambda v: v, Types.STRING()).process(Both(), Types.STRING())
    both.print("keyed")
    both.get_side_output(LEFT).print("keyed_both")
    env.execute()


if __name__ == "__main__":
    main()
