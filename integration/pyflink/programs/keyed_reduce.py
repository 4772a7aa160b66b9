"""Keyed reduce emits for each element, the first one as it is; functions may be classes with open()."""

# compare: per-key
# run: drill
# key: ^(?:\w+> )?\(?'?(\w+)

from pyflink.common import Types
from pyflink.datastream import ReduceFunction, StreamExecutionEnvironment


class Join(ReduceFunction):
    def __init__(self):
        self._separator = None

    def open(self, runtime_context):
        self._separator = "+"

    def reduce(self, value1, value2):
        return value1[0], value1[1] + self._separator + value2[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    values = [("k1", "a"), ("k2", "b"), ("k1", "c"), ("k1", "d"), ("k2", "e"), ("k3", "f")]
    typed = env.from_collection(values, type_info=Types.TUPLE([Types.STRING(), Types.STRING()]))
    typed.key_by(lambda v: v[0], Types.STRING()).reduce(Join()).print()
    env.execute()
    env.from_collection(values).key_by(lambda v: v[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).print()
    env.execute()


if __name__ == "__main__":
    main()
