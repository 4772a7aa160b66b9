"""Values that are not quite of the declared type and what becomes of them: the coders decide.

Only these pass.  A list or a Row for TUPLE, a tuple for LIST, a list or a tuple for ROW end the job of Apache
PyFlink (from_collection is more generous: source_from_collection_types).
"""

# compare: sorted
# run: drill

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

STRING, INT = Types.STRING(), Types.INT()
CASES = {
    "bool_as_int": (INT, [True, False]),
    "int_as_double": (Types.DOUBLE(), [1, -7]),
    "int_as_boolean": (Types.BOOLEAN(), [0, 1, 2]),
    "named_by_position": (Types.ROW_NAMED(["x", "y"], [INT, STRING]), [Row(1, "a")]),
    "named_in_other_order": (Types.ROW_NAMED(["x", "y"], [INT, STRING]), [Row(y="a", x=1)]),
    "big_in_float": (Types.FLOAT(), [123456789]),
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
