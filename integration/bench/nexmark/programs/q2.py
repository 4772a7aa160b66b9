"""Query 2: the prices that were bid for some auctions."""

import sys

from nexmark_tables import Tables


def main(out, events):
    tables = Tables(out, events)
    tables.write(tables.bids("auction", "price").filter("auction % 123 = 0"), "q2")


if __name__ == "__main__":
    main(*sys.argv[1:])
