"""MapState with tuples and rows as keys and lists as values, and a None as value."""

# compare: per-key
# run: drill

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor


class Pairs(KeyedProcessFunction):
    def open(self, runtime_context):
        self._by_pair = runtime_context.get_map_state(
            MapStateDescriptor("pairs", Types.TUPLE([Types.STRING(), Types.INT()]), Types.LIST(Types.INT()))
        )
        self._any = runtime_context.get_map_state(
            MapStateDescriptor("any", Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value, ctx):
        key, number = value
        pair = ("odd" if number % 2 else "even", number // 4)
        self._by_pair.put(pair, (self._by_pair.get(pair) or []) + [number])
        self._any.put(number if number % 2 else str(number), {"n": number})
        yield f"{key},{sorted(self._by_pair.items())},{sorted(map(str, self._any.items()))}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    events = [("a", 1), ("a", 2), ("b", 3), ("a", 3), ("a", 6), ("b", 5)]
    env.from_collection(events).key_by(lambda e: e[0]).process(Pairs()).print()
    env.execute()


if __name__ == "__main__":
    main()
