"""How rows are printed: +I[a,None], by Python's str() of each field, so True and None, not true and null."""

# compare: sorted
# run: drill

import datetime
import decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

STRING, INT = Types.STRING(), Types.INT()
CASES = {
    "basic": (
        Types.ROW([STRING, Types.DOUBLE(), Types.BOOLEAN()]),
        [Row("a", 1.0, True), Row(None, 1e10, False)],
    ),
    "named": (Types.ROW_NAMED(["name", "age"], [STRING, INT]), [Row(name="x", age=3), Row("y", None)]),
    "nested": (
        Types.ROW([INT, Types.ROW([STRING, Types.ROW_NAMED(["deep"], [INT])])]),
        [Row(1, Row("a", Row(2))), Row(2, Row(None, Row(None)))],
    ),
    "null row": (Types.ROW([INT, Types.ROW([STRING])]), [Row(1, None)]),
    "collections": (
        Types.ROW([Types.LIST(INT), Types.MAP(STRING, Types.LONG()), Types.TUPLE([INT, STRING])]),
        [Row([1, 2], {"k": 2}, (3, "t")), Row([], {}, (0, ""))],
    ),
    "times": (
        Types.ROW([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()]),
        [
            Row(
                datetime.date(2024, 2, 29),
                datetime.time(1, 2, 3),
                datetime.datetime(2024, 2, 29, 1, 2, 3, 456000),
            ),
            Row(None, None, None),
        ],
    ),
    "numbers": (
        Types.ROW([Types.BIG_DEC(), Types.FLOAT(), Types.SHORT(), Types.BYTE()]),
        [Row(decimal.Decimal("1.50"), 0.1, 2, 3)],
    ),
    "arrays": (
        Types.ROW(
            [Types.PRIMITIVE_ARRAY(INT), Types.BASIC_ARRAY(STRING), Types.OBJECT_ARRAY(Types.ROW([INT]))]
        ),
        [Row([1, 2], ["a"], [Row(1), Row(2)])],
    ),
    "bytes": (Types.ROW([Types.PRIMITIVE_ARRAY(Types.BYTE()), INT]), [Row(b"abc", 1)]),
    "pickled": (Types.ROW([Types.PICKLED_BYTE_ARRAY(), INT]), [Row({"any": "thing"}, 1), Row(None, None)]),
}


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for label, (type_info, values) in CASES.items():
        env.from_collection(values).map(lambda v: v, type_info).print(label.replace(" ", "_"))
    env.execute()


if __name__ == "__main__":
    main()
