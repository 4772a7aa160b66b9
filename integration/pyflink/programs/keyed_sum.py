"""sum over tuples, rows (by number and by name), lists and plain numbers; fields that are not summed stay
the first's.
"""

# compare: sorted
# run: drill

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

VALUES = [("a", 1, "first"), ("b", 10, "second"), ("a", 2, "third"), ("a", 4, "fourth"), ("b", 0, "fifth")]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    fields = [Types.STRING(), Types.INT(), Types.STRING()]
    env.from_collection(VALUES).key_by(lambda v: v[0]).sum(1).print("untyped")
    env.from_collection(VALUES, Types.TUPLE(fields)).key_by(lambda v: v[0]).sum(1).print("tuple")
    env.from_collection(VALUES, Types.ROW(fields)).key_by(lambda v: v[0]).sum(1).print("row")
    env.from_collection(VALUES, Types.ROW_NAMED(["k", "n", "t"], fields)).key_by(lambda v: v.k).sum(
        "n"
    ).print("named")
    env.from_collection([list(v) for v in VALUES]).key_by(lambda v: v[0]).sum(1).print("list")
    env.from_collection([1, 2, 3, 4, 5], Types.INT()).key_by(lambda v: v % 2).sum().print("numbers")
    env.from_collection([0.5, 0.25], Types.DOUBLE()).key_by(lambda v: 0).sum(0).print("doubles")
    env.execute()


if __name__ == "__main__":
    main()
