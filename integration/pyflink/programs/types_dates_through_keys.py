"""Dates, times, decimals and nested rows through a key_by exchange and keyed state.

A row has the names of its type only after an exchange: operators that follow each other in one chain, and the
state of a key, hand on the very object that a function made.  So the rows made here bring their names.
"""

# compare: per-key
# run: drill

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
    return Row(day=day, at=at, price=decimal.Decimal(price), shop=Row(name=shop))


def both(a, b):
    shop = Row(name=a.shop.name + b.shop.name)
    return Row(day=a.day, at=max(a.at, b.at), price=a.price + b.price, shop=shop)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    sales = [sale(0, "1.10", "a"), sale(1, "2.20", "b"), sale(0, "3.30", "c"), sale(1, "0.05", "b")]
    stream = env.from_collection(sales, type_info=SALE)
    totals = stream.key_by(lambda s: s.day, Types.SQL_DATE()).reduce(both)
    totals.map(lambda s: f"{s.day},{s.at},{s.price},{s.shop.name}", Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
