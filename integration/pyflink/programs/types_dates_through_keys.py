"""Dates, times, decimals and nested rows through a key_by exchange and keyed state.

Names of a row inside a row are lost on the way: only positions work there.
"""
# compare: per-key

import datetime
import decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

SALE = Types.ROW_NAMED(
    ["day", "at", "price", "shop"],
    [Types.SQL_DATE(), Types.SQL_TIMESTAMP(), Types.BIG_DEC(), Types.ROW_NAMED(["name"], [Types.STRING()])],
)
DAY = datetime.date(2024, 2, 28)


def sale(days, price, shop):
    day = DAY + datetime.timedelta(days)
    at = datetime.datetime(day.year, day.month, day.day, 12, 30, 0, 250000)
    return Row(day, at, decimal.Decimal(price), Row(shop))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    sales = env.from_collection([sale(0, "1.10", "a"), sale(1, "2.20", "b"), sale(0, "3.30", "c"), sale(1, "0.05", "b")])
    sales = sales.map(lambda s: s, SALE)
    totals = sales.key_by(lambda s: s.day, Types.SQL_DATE()).reduce(
        lambda a, b: Row(a.day, max(a.at, b.at), a.price + b.price, Row(a.shop[0] + b.shop[0]))
    )
    totals.map(lambda s: f"{s.day},{s.at},{s.price},{s.shop[0]}", Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
