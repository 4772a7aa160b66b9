"""What a function hands on is fitted to its declared type before key_by and functions behind it see it."""

# compare: sorted

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    people = env.from_collection(["ada"], Types.STRING()).map(lambda n: Row(age=36, name=n), PERSON)
    by_name = people.key_by(lambda p: p.name, Types.STRING())
    by_name.map(lambda p: f"map: {p[0]!r} is first", Types.STRING()).print()
    by_name.filter(lambda p: p[0] == "ada").map(lambda p: f"filter: {p.age}", Types.STRING()).print()
    by_name.flat_map(lambda p: [f"flat_map: {p[0]!r} is first"], Types.STRING()).print()
    by_name.reduce(lambda a, b: a).map(lambda p: f"reduce: {p[0]!r} is first", Types.STRING()).print()
    wide = env.from_collection([3], Types.INT()).map(lambda n: n, Types.DOUBLE())
    wide.key_by(lambda n: 1, Types.INT()).map(lambda n: f"double: {n!r}", Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
