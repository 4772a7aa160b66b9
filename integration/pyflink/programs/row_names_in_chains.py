"""A row without names, declared as ROW_NAMED: the next function of the chain sees no names, one after an
exchange does.
"""

# compare: exact
# run: drill

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

POINT = Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.LONG()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    points = env.from_collection([1, 2]).map(lambda n: Row(n, n * 10), POINT)
    points.map(lambda p: repr(p), Types.STRING()).print("chained")
    env.execute()
    points.rebalance().map(lambda p: repr(p), Types.STRING()).print("exchanged")
    env.execute()
    points.disable_chaining().map(lambda p: repr(p), Types.STRING()).print("not_chained")
    env.execute()
    points.key_by(lambda p: p[0]).map(lambda p: repr(p), Types.STRING()).print("keyed")
    env.execute()
    # nor is a value converted to its type within a chain
    halves = env.from_collection([1, 2]).map(lambda n: n / 3, Types.FLOAT())
    halves.map(lambda v: repr(v), Types.STRING()).print("chained_float")
    env.execute()
    halves.rebalance().map(lambda v: repr(v), Types.STRING()).print("exchanged_float")
    env.execute()


if __name__ == "__main__":
    main()
