"""None as a field of a row, whatever the field's type, as a value of a map and as an element of an array.

In TUPLE and LIST, and as a whole element of a stream, it ends the job of Apache PyFlink.
"""

# compare: sorted

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

STRING, INT = Types.STRING(), Types.INT()
CASES = {
    "row": (
        Types.ROW([STRING, INT, Types.DOUBLE(), Types.BOOLEAN(), Types.SQL_DATE()]),
        [Row(None, None, None, None, None)],
    ),
    "nested": (
        Types.ROW([Types.ROW([INT]), Types.LIST(INT), Types.MAP(STRING, INT), Types.TUPLE([INT])]),
        [Row(None, None, None, None), Row(Row(None), [], {}, (1,))],
    ),
    "array": (Types.ROW([Types.PRIMITIVE_ARRAY(INT), Types.BIG_DEC()]), [Row(None, None)]),
    "map": (Types.MAP(STRING, INT), [{"a": None, "b": 1}]),
    "objects": (Types.OBJECT_ARRAY(STRING), [["a", None]]),
    "basics": (Types.BASIC_ARRAY(STRING), [["a", None]]),
    "pickled": (Types.PICKLED_BYTE_ARRAY(), [(None, [None])]),
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
