"""Values without types are printed with str(), strings as they are, bytes with str() of bytes at Java's
hands.
"""

# compare: exact
# run: drill

import datetime
import decimal

from pyflink.common import Row
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    values = [
        1,
        -2.0,
        True,
        "text",
        "it's",
        ("a", 1, None),
        ["x", 2.5],
        {"k": (1,)},
        Row(1, "a"),
        Row(name="n", age=2),
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 1, 2, 3),
        datetime.timedelta(seconds=90),
        decimal.Decimal("1.50"),
        2**100,
        range(3),
        None,
        ...,
        "🙂",
    ]
    env.from_collection(values).print()
    env.execute()


if __name__ == "__main__":
    main()
