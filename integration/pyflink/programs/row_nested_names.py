"""Rows inside rows, lists, maps and tuples have their names after an exchange, whether they brought them or
not.
"""

# compare: sorted
# run: drill

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

POINT = Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.INT()])
CASES = {
    "row": (Types.ROW_NAMED(["id", "at"], [Types.INT(), POINT]), [Row(id=1, at=Row(x=2, y=3))]),
    "list": (Types.LIST(POINT), [[Row(x=1, y=2)]]),
    "map": (Types.MAP(Types.STRING(), POINT), [{"a": Row(1, 2)}]),
    "tuple": (Types.TUPLE([POINT, Types.INT()]), [(Row(1, 2), 3)]),
    "array": (Types.OBJECT_ARRAY(POINT), [[Row(1, 2)]]),
    "pickled": (Types.PICKLED_BYTE_ARRAY(), [Row(id=1, at=Row(x=2, y=3))]),
}


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for label, (type_info, values) in CASES.items():
        exchanged = env.from_collection(values).map(lambda v: v, type_info).rebalance()
        exchanged.map(lambda v: repr(v), Types.STRING()).print(label)
    env.execute()


if __name__ == "__main__":
    main()
