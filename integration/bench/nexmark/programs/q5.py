"""Query 5: the auctions with the most bids of the last ten seconds, every two seconds."""

import sys

from nexmark_tables import Tables, timed

from yarnflow import api


def hottest(start_ms, context, counts):
    """All auctions of a window that have as many bids as none has more."""
    counts = list(counts)
    most = max(count.num for count in counts)
    return [(count.auction, most, start_ms) for count in counts if count.num == most]


def main(out, events):
    tables = Tables(out, events)
    counts = (
        timed(tables.bids("auction", "time_ms"))
        .key_by("auction")
        .window(api.SlidingEventTimeWindows.of("10 seconds", "2 seconds"))
        .aggregate("count(*) AS num")
        .select("auction", "num", "unix_millis(window_start) AS start_ms")
    )
    # the counts of a window of ten seconds have the time of its end: they are alone in two seconds
    hot = (
        counts.key_by("start_ms")
        .window(api.TumblingEventTimeWindows.of("2 seconds"))
        .process(hottest, "auction BIGINT, num BIGINT, start_ms BIGINT")
    )
    tables.write(hot, "q5")


if __name__ == "__main__":
    main(*sys.argv[1:])
