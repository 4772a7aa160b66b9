"""BroadcastProcessFunction without keys: the broadcast side writes state and tells what is in it; the other
side reads.

What an element sees depends on which input comes first, so elements only tell what holds in both orders.
"""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor

NAMES = MapStateDescriptor("names", Types.INT(), Types.STRING())
COUNTS = MapStateDescriptor("counts", Types.STRING(), Types.INT())


class Enrich(BroadcastProcessFunction):
    def open(self, runtime_context):
        self._known = {1: "one", 2: "two", 3: "three"}

    def process_element(self, value, ctx):
        names = ctx.get_broadcast_state(NAMES)
        name = names.get(value)
        yield f"element {value}: {name in (None, self._known[value])} {names.contains(99)}"

    def process_broadcast_element(self, value, ctx):
        names, counts = ctx.get_broadcast_state(NAMES), ctx.get_broadcast_state(COUNTS)
        number, name = value
        if name == "remove":
            names.remove(number)
        else:
            names.put(number, name)
        counts.put(name, (counts.get(name) or 0) + 1)
        known = sorted(names.items())
        yield f"rule {value}: {known} {sorted(counts.items())} {names.is_empty()} {2 in names}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3], type_info=Types.INT())
    rules = env.from_collection(
        [(1, "one"), (2, "two"), (1, "remove"), (3, "three")], Types.TUPLE([Types.INT(), Types.STRING()])
    )
    numbers.connect(rules.broadcast(NAMES, COUNTS)).process(Enrich(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
