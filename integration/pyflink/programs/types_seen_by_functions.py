"""What a function is given after a value went through an exchange with a type: bytes, float32, lists for
arrays.
"""

# compare: sorted

import decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

STRING, INT = Types.STRING(), Types.INT()
CASES = {
    "boolean": (Types.BOOLEAN(), [True]),
    "byte": (Types.BYTE(), [-5]),
    "short": (Types.SHORT(), [300]),
    "int": (INT, [2147483647]),
    "long": (Types.LONG(), [-(2**63)]),
    "float": (Types.FLOAT(), [0.1]),
    "double": (Types.DOUBLE(), [0.1, float("nan")]),
    "string": (STRING, ["text", None]),
    "decimal": (Types.BIG_DEC(), [decimal.Decimal("12.3400")]),
    "tuple": (Types.TUPLE([INT, STRING]), [(1, "a")]),
    "row": (Types.ROW([INT, STRING]), [Row(1, "a"), Row(2, None)]),
    "named": (Types.ROW_NAMED(["x", "y"], [INT, STRING]), [Row(x=1, y="a")]),
    "list": (Types.LIST(INT), [[1, 2], []]),
    "map": (Types.MAP(STRING, INT), [{"a": 1}]),
    "ints": (Types.PRIMITIVE_ARRAY(INT), [[1, 2]]),
    "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"abc"]),
    "doubles": (Types.PRIMITIVE_ARRAY(Types.DOUBLE()), [[1.5]]),
    "strings": (Types.BASIC_ARRAY(STRING), [["a", "b"]]),
    "rows": (Types.OBJECT_ARRAY(Types.ROW([INT])), [[Row(1), Row(2)]]),
    "lists": (Types.LIST(Types.LIST(STRING)), [[["a"], []]]),
    "maps": (Types.MAP(STRING, Types.MAP(INT, STRING)), [{"a": {1: "b"}}]),
    "pickled": (Types.PICKLED_BYTE_ARRAY(), [{"a"}]),
}


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for label, (type_info, values) in CASES.items():
        exchanged = env.from_collection(values).map(lambda v: v, type_info).rebalance()
        exchanged.map(lambda v: f"{type(v).__name__} {v!r}", STRING).print(label)
    env.execute()


if __name__ == "__main__":
    main()
