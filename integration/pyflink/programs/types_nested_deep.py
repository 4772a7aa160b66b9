"""Lists of rows of maps of tuples, through two exchanges."""

# compare: exact
# run: drill

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

PART = Types.ROW([Types.STRING(), Types.MAP(Types.STRING(), Types.TUPLE([Types.INT(), Types.DOUBLE()]))])
DEEP = Types.ROW_NAMED(["id", "parts"], [Types.INT(), Types.LIST(PART)])


def grow(row):
    return Row(
        row.id,
        [
            Row(f"{label}!", {name: (a + 1, b * 2) for name, (a, b) in sizes.items()})
            for label, sizes in row.parts
        ],
    )


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    values = [Row(1, [Row("x", {"s": (1, 1.5)}), Row(None, {})]), Row(2, [])]
    stream = env.from_collection(values).map(lambda v: v, DEEP).rebalance()
    stream.filter(lambda row: True).print("before")
    env.execute()
    stream = stream.map(grow, DEEP).rebalance().map(grow, DEEP)
    stream.print("after")
    env.execute()


if __name__ == "__main__":
    main()
