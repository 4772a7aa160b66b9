"""connect of two streams that are keyed already, with different selectors."""

# compare: sorted

from pyflink.common import Types
from pyflink.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor


class Pairs(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self._ones = runtime_context.get_map_state(
            MapStateDescriptor("ones", Types.STRING(), Types.BOOLEAN())
        )
        self._twos = runtime_context.get_map_state(
            MapStateDescriptor("twos", Types.STRING(), Types.BOOLEAN())
        )

    def process_element1(self, value, ctx):
        self._ones.put(value, True)
        for other in self._twos.keys():
            yield f"{ctx.get_current_key()}: {value} {other}"

    def process_element2(self, value, ctx):
        self._twos.put(value, True)
        for other in self._ones.keys():
            yield f"{ctx.get_current_key()}: {other} {value}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    words = env.from_collection(["apple", "avocado", "bread", "cheese"], Types.STRING()).key_by(
        lambda w: w[0], Types.STRING()
    )
    others = env.from_collection(["xa", "xb", "ya", "zz"], Types.STRING()).key_by(
        lambda w: w[1], Types.STRING()
    )
    words.connect(others).process(Pairs(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
