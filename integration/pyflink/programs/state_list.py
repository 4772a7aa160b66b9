"""ListState: add, add_all, update, clear; empty at first and after an update with nothing."""

# compare: per-key

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor


class Collect(KeyedProcessFunction):
    def open(self, runtime_context):
        self._items = runtime_context.get_list_state(ListStateDescriptor("items", Types.INT()))

    def process_element(self, value, ctx):
        key, command, numbers = value
        if command == "add":
            for number in numbers:
                self._items.add(number)
        elif command == "add_all":
            self._items.add_all(numbers)
        elif command == "update":
            self._items.update(numbers)
        elif command == "clear":
            self._items.clear()
        yield f"{key},{command},{list(self._items.get())},{list(self._items)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    commands = [
        ("a", "nothing", []),
        ("a", "add", [1, 2]),
        ("b", "add_all", [7, 7]),
        ("a", "add_all", [3]),
        ("a", "update", [9, 8]),
        ("a", "clear", []),
        ("a", "nothing", []),
        ("a", "add", [5]),
        ("b", "update", []),
        ("b", "add", [6]),
    ]
    env.from_collection(commands).key_by(lambda c: c[0]).process(Collect()).print()
    env.execute()


if __name__ == "__main__":
    main()
