"""None as a field of a row, typed or pickled, whatever the field's type; nested rows, lists and maps may be
None, too.

Inside TUPLE, LIST and MAP a None ends the job of Apache PyFlink.
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
