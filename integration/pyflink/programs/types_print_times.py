"""How dates, times, timestamps and instants are printed: as Java's sql types and java.time.Instant print
themselves.
"""

# compare: sorted
# run: drill

import datetime

from pyflink.common import Instant, Types
from pyflink.datastream import StreamExecutionEnvironment

CASES = {
    "date": (Types.SQL_DATE(), [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)]),
    "time": (
        Types.SQL_TIME(),
        [datetime.time(1, 2, 3), datetime.time(0, 0), datetime.time(23, 59, 59, 999000)],
    ),
    "timestamp": (
        Types.SQL_TIMESTAMP(),
        [
            datetime.datetime(2024, 2, 29, 1, 2, 3),
            datetime.datetime(2024, 2, 29, 1, 2, 3, 456000),
            datetime.datetime(2024, 2, 29, 1, 2, 3, 456789),
        ],
    ),
    "instant": (
        Types.INSTANT(),
        [Instant.of_epoch_milli(0), Instant.of_epoch_milli(1700000000123), Instant(1, 500)],
    ),
}


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for label, (type_info, values) in CASES.items():
        stream = env.from_collection(values).map(lambda v: v, type_info)
        stream.print(label)
        stream.rebalance().map(lambda v: f"{type(v).__name__} {v!r}", Types.STRING()).print("seen " + label)
    env.execute()


if __name__ == "__main__":
    main()
