"""Rows from typed streams have names (f0, f1 where none were given), can be changed and given on."""

# compare: exact

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def shout(row):
    row["name"] = row.name.upper()
    return row


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    named = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])
    stream = env.from_collection([("a", 1), ("b", 2)], type_info=named)
    stream.map(shout, named).map(lambda r: Row(n=r.n * 2, name=r["name"]), named).print("named")
    env.execute()
    stream.map(lambda r: r.as_dict()).print("dict")
    env.execute()
    plain = env.from_collection([("a", 1)], type_info=Types.ROW([Types.STRING(), Types.INT()]))
    plain.map(lambda r: f"{r} {r.f0} {r['f1']} {r.as_dict()}").print("plain")
    env.execute()
    stream.map(lambda r: Row(r.n, r.name)).print("untyped")
    env.execute()


if __name__ == "__main__":
    main()
