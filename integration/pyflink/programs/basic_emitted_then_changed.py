"""Functions that change an object after they emitted it: what was emitted stays as it was."""

# compare: sorted
# run: drill

from pyflink.common import Row, Types
from pyflink.datastream import (
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ValueStateDescriptor

EVENTS = [{"key": "a", "n": 1}, {"key": "b", "n": 5}, {"key": "a", "n": 2}, {"key": "a", "n": 3}]


class Totals(KeyedProcessFunction):
    """Emits the value of its state."""

    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("totals", Types.PICKLED_BYTE_ARRAY())
        self.totals = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        totals = self.totals.value() or {"key": value["key"], "sum": 0, "seen": []}
        totals["sum"] += value["n"]
        totals["seen"].append(value["n"])
        self.totals.update(totals)
        yield totals


class SameRow(FlatMapFunction):
    """Fills one row again and again."""

    def open(self, runtime_context: RuntimeContext):
        self.row = Row("", 0)

    def flat_map(self, value):
        for sign in (1, -1):
            self.row[0], self.row[1] = value["key"], sign * value["n"]
            yield self.row


class Buffer(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.seen = []

    def map(self, value):
        self.seen.append(value["n"])
        return self.seen


def add(total, value):
    total["n"] += value["n"]
    return total


def spoil(value):
    value["n"] = 0
    return value


def run(name, make):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    make(env.from_collection(EVENTS)).map(lambda value: f"{name}: {value}", Types.STRING()).print()
    env.execute()


def both_ways(stream):
    spoiled = stream.map(spoil)
    return spoiled.union(stream.map(lambda value: value))


def main():
    run("state", lambda stream: stream.key_by(lambda value: value["key"]).process(Totals()))
    run("row", lambda stream: stream.flat_map(SameRow(), Types.ROW([Types.STRING(), Types.INT()])))
    run("buffer", lambda stream: stream.map(Buffer()))
    run("reduce", lambda stream: stream.key_by(lambda value: value["key"]).reduce(add))
    run("branches", both_ways)


if __name__ == "__main__":
    main()
