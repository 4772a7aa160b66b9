"""Query 8: persons who came and opened an auction in the same ten seconds."""

import sys

from nexmark_tables import Tables, timed

from yarnflow import api


def main(out, events):
    tables = Tables(out, events)
    people = tables.events.filter("event_type < 2").select(
        "coalesce(person.id, auction.seller) AS id",
        "coalesce(person.time_ms, auction.time_ms) AS time_ms",
        "person.name AS name",
        "event_type",
    )  # fmt: skip
    new_sellers = (
        timed(people)
        .key_by("id")
        .window(api.TumblingEventTimeWindows.of("10 seconds"))
        .aggregate("max(name) AS name", "max(event_type) AS did")
        .filter("name IS NOT NULL AND did = 1")
        .select("id", "name", "unix_millis(window_start) AS start_ms")
    )
    tables.write(new_sellers, "q8")


if __name__ == "__main__":
    main(*sys.argv[1:])
