"""Query 0: all bids as they are."""

import sys

from nexmark_tables import Tables


def main(out, events):
    tables = Tables(out, events)
    tables.write(tables.bids("auction", "bidder", "price", "time_ms", "extra"), "q0")


if __name__ == "__main__":
    main(*sys.argv[1:])
