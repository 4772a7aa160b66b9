"""How tuples are printed: (a,1.0,true), nested ones alike, lists [1, 2], maps {a=1}."""

# compare: sorted
# run: drill

import datetime
import decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

STRING, INT = Types.STRING(), Types.INT()
CASES = {
    "basic": (
        Types.TUPLE([STRING, Types.DOUBLE(), Types.BOOLEAN(), Types.LONG()]),
        [("a", 1.0, True, 2**40), ("", 1e-7, False, 0)],
    ),
    "nested": (Types.TUPLE([STRING, Types.TUPLE([INT, Types.TUPLE([INT])])]), [("a", (1, (2,)))]),
    "times": (
        Types.TUPLE([Types.SQL_DATE(), Types.BIG_DEC()]),
        [(datetime.date(2024, 1, 2), decimal.Decimal("1.50"))],
    ),
    "row": (Types.TUPLE([INT, Types.ROW([STRING, INT])]), [(1, Row("x", 2)), (2, Row("y", None))]),
    "list": (Types.TUPLE([INT, Types.LIST(STRING)]), [(1, ["x", "y"]), (2, [])]),
    "map": (Types.TUPLE([INT, Types.MAP(STRING, INT)]), [(1, {"x": 1}), (2, {})]),
    "one": (Types.TUPLE([INT]), [(1,)]),
}


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for label, (type_info, values) in CASES.items():
        env.from_collection(values).map(lambda v: v, type_info).print(label)
    env.execute()


if __name__ == "__main__":
    main()
