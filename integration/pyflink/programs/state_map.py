"""MapState: all its methods; keys and values with types, missing ones, removing while there are others.

put_all of Apache PyFlink 2.3 takes pairs; a dict, which its documentation asks for, ends the job.
"""

# compare: per-key
# run: drill

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor


class Inventory(KeyedProcessFunction):
    def open(self, runtime_context):
        self._stock = runtime_context.get_map_state(MapStateDescriptor("stock", Types.STRING(), Types.INT()))

    def process_element(self, value, ctx):
        shop, command, item, amount = value
        said = ""
        if command == "put":
            self._stock.put(item, amount)
        elif command == "put_all":
            self._stock.put_all(item)
        elif command == "remove":
            self._stock.remove(item)
        elif command == "get":
            said = f"{self._stock.get(item)} {self._stock.contains(item)} {item in self._stock}"
        elif command == "clear":
            self._stock.clear()
        yield (
            f"{shop},{command},{said},{sorted(self._stock.items())},{sorted(self._stock.keys())},"
            f"{sorted(self._stock.values())},{self._stock.is_empty()},{sorted(self._stock)}"
        )


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    commands = [
        ("x", "get", "tea", 0), ("x", "put", "tea", 3), ("y", "put", "milk", 1), ("x", "put", "milk", 5),
        ("x", "put", "tea", 4), ("x", "get", "tea", 0), ("x", "get", "none", 0), ("x", "remove", "tea", 0),
        ("x", "remove", "none", 0), ("y", "put_all", [("a", 1), ("b", 2)], 0), ("x", "clear", "", 0),
        ("x", "put", "tea", 9), ("y", "remove", "milk", 0),
    ]  # fmt: skip
    env.from_collection(commands).key_by(lambda c: c[0]).process(Inventory()).print()
    env.execute()


if __name__ == "__main__":
    main()
