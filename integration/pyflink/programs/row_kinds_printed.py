"""Kinds of rows survive an exchange and are printed: +I, -U, +U, -D."""

# compare: exact
# run: drill

from pyflink.common import Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    row = Types.ROW_NAMED(["kind", "n"], [Types.STRING(), Types.INT()])
    kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]
    rows = [Row.of_kind(kind, kind.name, number) for number, kind in enumerate(kinds)]
    env.from_collection(rows, type_info=row).print("source")
    env.execute()
    stream = env.from_collection(rows).map(lambda r: r, row).rebalance().filter(lambda r: r.n != 1)
    stream.print("exchanged")
    env.execute()
    stream.map(lambda r: f"{r.get_row_kind()} {r.kind} {r}", Types.STRING()).print("seen")
    env.execute()
    env.from_collection(rows).print("untyped")
    env.execute()


if __name__ == "__main__":
    main()
