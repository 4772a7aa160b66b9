"""min and max change one field of the first element; min_by and max_by give whole elements, the first of
equal ones.
"""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

VALUES = [
    ("a", 3, "r"),
    ("b", 5, "s"),
    ("a", 1, "t"),
    ("a", 2, "u"),
    ("a", 1, "v"),
    ("b", 5, "w"),
    ("a", 9, "x"),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    fields = [Types.STRING(), Types.INT(), Types.STRING()]
    tuples = env.from_collection(VALUES, Types.TUPLE(fields)).key_by(lambda v: v[0])
    tuples.min(1).print("min")
    tuples.max(1).print("max")
    tuples.min_by(1).print("min_by")
    tuples.max_by(1).print("max_by")
    rows = env.from_collection(VALUES, Types.ROW_NAMED(["k", "n", "t"], fields)).key_by(lambda v: v.k)
    rows.min("n").print("row_min")
    rows.max_by("n").print("row_max_by")
    numbers = env.from_collection([3, 1, 2], Types.INT()).key_by(lambda v: 0)
    numbers.min().print("number_min")
    numbers.max_by().print("number_max_by")
    env.from_collection(VALUES).key_by(lambda v: v[0]).max_by(2).print("untyped")
    env.execute()


if __name__ == "__main__":
    main()
