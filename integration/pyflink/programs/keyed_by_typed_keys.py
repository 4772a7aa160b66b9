"""Keys with key types: what get_current_key() gives back for each kind."""

# compare: sorted

import datetime
import decimal

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

CASES = {
    "int": (Types.INT(), [1, 2, 1]),
    "long": (Types.LONG(), [2**40, -1, 2**40]),
    "string": (Types.STRING(), ["a", "b", "a", ""]),
    "boolean": (Types.BOOLEAN(), [True, False, True]),
    "double": (Types.DOUBLE(), [1.5, -0.5, 1.5]),
    "date": (
        Types.SQL_DATE(),
        [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), datetime.date(2024, 1, 1)],
    ),
    "decimal": (Types.BIG_DEC(), [decimal.Decimal("1.5"), decimal.Decimal("2"), decimal.Decimal("1.5")]),
    "tuple": (Types.TUPLE([Types.STRING(), Types.INT()]), [("a", 1), ("a", 2), ("a", 1)]),
    "row": (Types.ROW([Types.STRING(), Types.INT()]), [Row("a", 1), Row("a", 2), Row("a", 1)]),
    "named": (
        Types.ROW_NAMED(["x", "y"], [Types.STRING(), Types.INT()]),
        [Row("a", 1), Row(y=2, x="a"), Row("a", 1)],
    ),
}


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value, ctx):
        seen = (self._seen.value() or 0) + 1
        self._seen.update(seen)
        key = ctx.get_current_key()
        yield f"{type(key).__name__} {key!r} is number {seen}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for label, (key_type, keys) in CASES.items():
        env.from_collection(keys).key_by(lambda v: v, key_type).process(Count(), Types.STRING()).print(label)
    env.execute()


if __name__ == "__main__":
    main()
