"""from_collection with types takes tuples, lists, dicts, rows and plain objects for rows with names."""

# compare: exact

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


class Person:
    def __init__(self, name, age):
        self.name = name
        self.age = age


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    people = [
        ("tuple", 1),
        ["list", 2],
        {"age": 3, "name": "dict"},
        Row("row", 4),
        Row(age=5, name="named row"),
        Person("object", 6),
        {"name": "dict without an age"},
    ]
    stream = env.from_collection(people, type_info=person)
    stream.print()
    env.execute()
    stream.map(lambda row: f"{row.name} {row['age']} {row[0]}").print()
    env.execute()


if __name__ == "__main__":
    main()
