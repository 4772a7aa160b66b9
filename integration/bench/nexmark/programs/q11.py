"""Query 11: how many bids each bidder makes before a pause of ten seconds."""

import sys

from nexmark_tables import Tables, timed

from yarnflow import api


def main(out, events):
    tables = Tables(out, events)
    sessions = (
        timed(tables.bids("bidder", "time_ms"))
        .key_by("bidder")
        .window(api.EventTimeSessionWindows.with_gap("10 seconds"))
        .aggregate("count(*) AS bids")
        .select(
            "bidder",
            "bids",
            "unix_millis(window_start) AS start_ms",
            "unix_millis(window_end) AS end_ms",
        )
    )
    tables.write(sessions, "q11")


if __name__ == "__main__":
    main(*sys.argv[1:])
