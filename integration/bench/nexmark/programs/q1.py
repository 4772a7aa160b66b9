"""Query 1: bids with their prices in euros."""

import sys

from nexmark_tables import Tables


def main(out, events):
    tables = Tables(out, events)
    euros = tables.bids("auction", "bidder", "price", "time_ms", "extra").select(
        "auction", "bidder", "CAST(0.908 * price AS DECIMAL(23, 3)) AS price", "time_ms", "extra"
    )
    tables.write(euros, "q1")


if __name__ == "__main__":
    main(*sys.argv[1:])
