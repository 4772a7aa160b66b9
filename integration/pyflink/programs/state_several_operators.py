"""States of the same name in two operators, and several in one, are different states."""

# compare: per-key
# run: drill
# key: ^(\w+> \(?'?\w+)

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor


class Track(KeyedProcessFunction):
    def __init__(self, step):
        self._step = step

    def open(self, runtime_context):
        self._total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))
        self._history = runtime_context.get_list_state(ListStateDescriptor("history", Types.INT()))
        self._counts = runtime_context.get_map_state(
            MapStateDescriptor("counts", Types.BOOLEAN(), Types.INT())
        )

    def process_element(self, value, ctx):
        total = (self._total.value() or 0) + self._step
        self._total.update(total)
        self._history.add(total)
        even = total % 2 == 0
        self._counts.put(even, (self._counts.get(even) or 0) + 1)
        yield f"{ctx.get_current_key()},{total},{list(self._history)},{sorted(self._counts.items())}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    keyed = env.from_collection(["a", "b", "a", "a"], type_info=Types.STRING()).key_by(
        lambda v: v, Types.STRING()
    )
    keyed.process(Track(1), Types.STRING()).print("ones")
    keyed.process(Track(10), Types.STRING()).print("tens")
    env.execute()


if __name__ == "__main__":
    main()
