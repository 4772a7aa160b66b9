"""Keys of any kind without a key type: compared as what they are in Python, given back by get_current_key().

Without a type a key is its pickled bytes: 1, 1.0 and True are three keys, though equal in Python.
"""

# compare: per-key
# run: drill
# key: (.*) is number
# differs: keys that are equal in Python are one key, whatever their type.

import datetime

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value, ctx):
        seen = (self._seen.value() or 0) + 1
        self._seen.update(seen)
        key = ctx.get_current_key()
        yield f"{type(key).__name__} {key!r} is number {seen}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    keys = [
        1,
        2,
        1,
        "a",
        "b",
        "a",
        ("a", 1),
        ("a", 2),
        ("a", 1),
        True,
        False,
        True,
        None,
        None,
        1.5,
        1.0,
        b"x",
        b"x",
        datetime.date(2024, 1, 1),
        datetime.date(2024, 1, 1),
        (None,),
        ((1, 2), "n"),
        -(2**70),
        "",
        "1",
    ]
    env.from_collection(keys).key_by(lambda v: v).process(Count()).print()
    env.execute()


if __name__ == "__main__":
    main()
