"""get_type() of streams: pickled without a type, kept by filter, key_by and union, named f0, f1 for rows."""

# compare: exact
# differs: a collection without a type has that of its elements; functions see the same values.

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    untyped = env.from_collection([1])
    typed = env.from_collection([("a", 1)], type_info=Types.ROW([Types.STRING(), Types.INT()]))
    pairs = typed.map(lambda r: (r[0], r[1]), Types.TUPLE([Types.STRING(), Types.INT()]))
    for stream in (
        untyped,
        untyped.map(lambda v: v),
        untyped.filter(lambda v: True),
        typed,
        typed.map(lambda v: v),
        typed.filter(lambda v: True),
        typed.key_by(lambda r: r[0]).filter(lambda v: True),
        typed.key_by(lambda r: r[0], Types.STRING()).reduce(lambda a, b: b),
        pairs.key_by(lambda p: p[0]).sum(1),
        typed.union(typed),
        typed.rebalance(),
        pairs.project(1, 0, 1),
        typed.map(lambda v: [], Types.LIST(Types.MAP(Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE())))),
        typed.map(lambda v: [], Types.OBJECT_ARRAY(Types.TUPLE([Types.SQL_TIMESTAMP(), Types.INSTANT()]))),
        typed.map(
            lambda v: v, Types.ROW_NAMED(["x", "y"], [Types.BIG_DEC(), Types.BASIC_ARRAY(Types.STRING())])
        ),
    ):
        print(stream.get_type())


if __name__ == "__main__":
    main()
