"""The checker finds what it is there to find."""

from __future__ import annotations

import pytest

from integration.faults.records import KEYS, Numbered, Taken

pytestmark = pytest.mark.gate

JOB = Numbered("unused")
TAKEN = Taken(100, 100)


def _sums(values: range | list[int]) -> list[tuple[int, int, int]]:
    parts = [[value for value in values if value % KEYS == part] for part in range(KEYS)]
    return [(part, sum(found), len(found)) for part, found in enumerate(parts)]


def test_each_record_once_is_right() -> None:
    assert TAKEN.verdict(range(100), _sums(range(100))) == ""


def test_lost_doubled_and_invented_records_are_named() -> None:
    values = [v for v in range(100) if v not in (3, 4, 9)] + [50, 100]
    found = TAKEN.verdict(values, _sums(range(100)))
    assert "3 records missing: 3–4, 9" in found
    assert "1 records more than once: 50" in found
    assert "1 records nobody made: 100" in found


def test_a_sum_that_is_off_is_named() -> None:
    sums = [(part, total + (part == 2), records) for part, total, records in _sums(range(100))]
    assert TAKEN.verdict(range(100), sums).startswith("key 2: sum ")


def test_each_query_has_its_own_number_of_records() -> None:
    assert Taken(100, 80).verdict(range(100), _sums(range(80))) == ""
    assert Taken(80, 100).verdict(range(100), _sums(range(80))) != ""
    assert "nothing was read" in Taken(100, 0).verdict(range(100), [])


def test_what_was_taken_is_told_by_the_savepoint() -> None:
    manifest = {
        "program": {"queries": [{"name": "a", "operators": [{}]}, {"name": "b", "operators": []}]},
        "positions": [
            {"query": "b", "sources": [{"end_offset": "12"}]},
            {"query": "a", "sources": [{"end_offset": "10"}]},
        ],
    }
    assert JOB.taken(manifest) == Taken(rows=600, sums=500)
