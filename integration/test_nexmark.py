"""Events and expected results of ``scripts/bench nexmark``, without Spark: the SQL on a few events whose
results are plain to see.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from integration.bench.nexmark.generator import START_MS, Events, events
from integration.bench.nexmark.queries import QUERIES
from integration.bench.nexmark.reference import Reference

pytestmark = pytest.mark.gate

#: times are in ms after the start
PERSONS: Final = [
    {"id": 1, "name": "Ann", "city": "Bend", "state": "OR", "time_ms": 1_000},
    {"id": 2, "name": "Bob", "city": "Kent", "state": "WA", "time_ms": 9_000},
]
AUCTIONS: Final = [
    {"id": 10, "seller": 1, "category": 10, "time_ms": 2_000, "expires_ms": 6_000},
    {"id": 11, "seller": 2, "category": 10, "time_ms": 12_000, "expires_ms": 15_000},
    {"id": 12, "seller": 1, "category": 11, "time_ms": 3_000, "expires_ms": 3_500},
]
BIDS: Final = [
    {"auction": 10, "bidder": 5, "price": 100, "time_ms": 1_999},
    {"auction": 10, "bidder": 6, "price": 200, "time_ms": 2_000},
    {"auction": 12, "bidder": 5, "price": 70, "time_ms": 3_200},
    {"auction": 10, "bidder": 5, "price": 300, "time_ms": 6_000},
    {"auction": 10, "bidder": 4, "price": 300, "time_ms": 6_000},
    {"auction": 10, "bidder": 7, "price": 900, "time_ms": 6_001},
    {"auction": 11, "bidder": 8, "price": 60, "time_ms": 14_000},
    {"auction": 11, "bidder": 5, "price": 50, "time_ms": 16_000},
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    directory = tmp_path_factory.mktemp("events")
    tables: tuple[tuple[str, list[dict[str, Any]]], ...] = (
        ("person", PERSONS),
        ("auction", AUCTIONS),
        ("bid", BIDS),
    )
    lines = [
        json.dumps({"event_type": number, table: _moved(row)})
        for number, (table, rows) in enumerate(tables)
        for row in rows
    ]
    (directory / "events.json").write_text("\n".join(lines))
    with contextlib.closing(Reference(Events(len(lines), directory))) as found:
        yield found


def _moved(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value + START_MS if name.endswith("_ms") else value for name, value in row.items()}


def _at(seconds: float) -> str:
    return str(START_MS + round(seconds * 1_000))


def _hot(start_s: int, auction: int, bids: int) -> str:
    return f"{auction},{bids},{_at(start_s)}"


#: as programs write them
RIGHT: Final = {
    "q3": ["Ann,Bend,OR,10"],
    # the first of category 10 is replaced by the second
    "q4": ["10,1,300", "10,2,180", "11,1,70"],
    "q5": [
        *(_hot(start_s, 10, bids) for start_s, bids in zip(range(-8, 7, 2), (1, 2, 2, 5, 5, 4, 3, 3))),
        *(_hot(start_s, 11, bids) for start_s, bids in zip(range(8, 17, 2), (2, 2, 2, 2, 1))),
    ],
    "q7": [f"10,7,900,{_at(6.001)},", f"11,8,60,{_at(14)},"],
    "q8": [f"1,Ann,{_at(0)}"],
    "q9": [
        f"10,,,,,{_at(2)},{_at(6)},1,10,,10,4,300,{_at(6)},",
        f"11,,,,,{_at(12)},{_at(15)},2,10,,11,8,60,{_at(14)},",
        f"12,,,,,{_at(3)},{_at(3.5)},1,11,,12,5,70,{_at(3.2)},",
    ],
    # a bid just when the session would end belongs to it
    "q11": [
        f"5,4,{_at(1.999)},{_at(26)}",
        f"6,1,{_at(2)},{_at(12)}",
        f"4,1,{_at(6)},{_at(16)}",
        f"7,1,{_at(6.001)},{_at(16.001)}",
        f"8,1,{_at(14)},{_at(24)}",
    ],
}


@pytest.mark.parametrize("query", [query for query in QUERIES if query.name in RIGHT], ids=lambda q: q.name)
def test_sql_gives_what_is_right(query: Any, reference: Reference, tmp_path: Path) -> None:
    lines = RIGHT[query.name]
    _write(tmp_path, lines)
    rows = reference.compare(query, tmp_path)
    assert rows.is_equal, rows
    assert rows.written == len(lines)


def test_rows_that_differ_are_counted(reference: Reference, tmp_path: Path) -> None:
    query = next(query for query in QUERIES if query.name == "q11")
    wanted = len(RIGHT["q11"])
    assert reference.compare(query, tmp_path / "nothing written").missing == wanted
    _write(tmp_path, [*RIGHT["q11"][1:], RIGHT["q11"][1], "9,1,2,3"])
    rows = reference.compare(query, tmp_path)
    assert (rows.expected, rows.written, rows.missing, rows.additional) == (wanted, wanted + 1, 1, 2)
    assert len(rows.examples) == 3


def test_a_category_has_a_row_for_each_auction(reference: Reference, tmp_path: Path) -> None:
    query = next(query for query in QUERIES if query.name == "q4")
    _write(tmp_path, [*RIGHT["q4"], RIGHT["q4"][0]])
    assert not reference.compare(query, tmp_path).is_equal


def _write(directory: Path, lines: list[str]) -> None:
    (directory / "part-0.csv").write_text("".join(f"{line}\n" for line in lines))
    (directory / ".part-0.csv.crc").write_text("no result")


def test_events_are_the_same_every_time_and_have_their_shares() -> None:
    lines = list(events(5_000, 250))
    assert lines == list(events(5_000, 250))
    found = [json.loads(line) for line in lines]
    assert Counter(event["event_type"] for event in found) == {0: 100, 1: 300, 2: 4_600}
    bids = [event["bid"] for event in found if event["event_type"] == 2]
    hot = Counter(bid["bidder"] for bid in bids).most_common(1)[0][1] / len(bids)
    assert 0.7 < hot < 0.8
    times = [next(value["time_ms"] for value in event.values() if type(value) is dict) for event in found]
    assert any(one > other for one, other in itertools.pairwise(times))
    early = max(latest - moment for latest, moment in zip(_highest(times), times, strict=True))
    assert early < 4_000, "the watermark of the programs is 4 s behind"


def _highest(times: list[int]) -> Iterator[int]:
    highest = 0
    for moment in times:
        highest = max(highest, moment)
        yield highest
