"""Options of file sources, and how sequences are divided."""

from __future__ import annotations

import itertools

import pytest

from yarnflow.graph.connectors.sources import FileSource, SequenceSource
from yarnflow.graph.schema import Schema
from yarnflow.spark.connectors.sources import _strict, sequence_ranges


@pytest.mark.parametrize(
    ("file_format", "options", "mode"),
    [
        ("csv", {}, "FAILFAST"),
        ("json", {"multiLine": "true"}, "FAILFAST"),
        ("csv", {"Mode": "PERMISSIVE"}, None),
        ("parquet", {}, None),
    ],
)
def test_records_that_do_not_fit_fail_unless_asked_otherwise(
    file_format: str, options: dict[str, str], mode: str | None
) -> None:
    found = _strict(FileSource("/data", file_format, Schema(()), options))
    assert found.get("mode") == mode
    assert options.items() <= found.items()


@pytest.mark.parametrize(
    ("first", "last", "parallelism"),
    [(0, 9, 4), (5, 5, 3), (-3, 300_000, 1), (1, 1_000_000, 3), (2**63 - 5, 2**63 - 1, 2)],
)
def test_subtasks_of_a_sequence_have_rising_numbers_without_a_gap(
    first: int, last: int, parallelism: int
) -> None:
    ranges = list(sequence_ranges(SequenceSource(first, last), parallelism))
    assert ranges == sorted(ranges)
    assert ranges[0][1] == first and ranges[-1][2] == last
    for before, after in itertools.pairwise(ranges):
        assert after[1] == before[2] + 1
    sizes = [sum(end - start + 1 for at, start, end in ranges if at == n) for n in range(parallelism)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1
