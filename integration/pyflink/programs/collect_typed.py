"""execute_and_collect of streams with types: rows, tuples, dates, arrays, maps come back as Python objects.

Apache PyFlink 2.3 cannot collect SQL_TIMESTAMP and INSTANT (the client fails), so they are not here.  FLOAT
comes back as the shortest decimal (0.1), while an operator would be given 0.10000000149011612.
"""

# compare: exact

import datetime
import decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

CASES = [
    (Types.INT(), [1, -2]),
    (Types.STRING(), ["text", "ünïcode"]),
    (Types.BOOLEAN(), [True, False]),
    (Types.FLOAT(), [0.5, 0.1]),
    (Types.BIG_DEC(), [decimal.Decimal("12.3400")]),
    (Types.SQL_DATE(), [datetime.date(2024, 2, 29)]),
    (Types.SQL_TIME(), [datetime.time(1, 2, 3)]),
    (Types.TUPLE([Types.STRING(), Types.INT()]), [("a", 1)]),
    (Types.ROW([Types.STRING(), Types.INT()]), [Row("a", 1), Row("b", None)]),
    (Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()]), [Row(x=1, y="one")]),
    (Types.LIST(Types.INT()), [[1, 2], []]),
    (Types.MAP(Types.STRING(), Types.INT()), [{"a": 1}, {}]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"abc"]),
    (Types.OBJECT_ARRAY(Types.ROW([Types.INT()])), [[Row(1), Row(2)]]),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for type_info, values in CASES:
        stream = env.from_collection(values).map(lambda v: v, type_info)
        with stream.execute_and_collect() as results:
            print(type_info, [(type(value).__name__, value) for value in results])


if __name__ == "__main__":
    main()
