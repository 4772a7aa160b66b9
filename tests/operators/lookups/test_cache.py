"""What a worker keeps of a table; times are the test's."""

from __future__ import annotations

from typing import Any

import pytest

from yarnflow.graph.connectors.lookups import LookupOptions
from yarnflow.operators.lookups.cache import LookupCache, Rows

ANN: Rows = (("Ann",),)
TWO: Rows = (("a",), ("b",))


def cache(**options: Any) -> LookupCache:
    return LookupCache(LookupOptions(cached=True, **options))


def test_an_answer_is_kept() -> None:
    kept = cache()
    assert kept.get((1,), 0) is None
    kept.put((1,), ANN, 0)
    assert kept.get((1,), 10**12) == ANN
    assert kept.get((2,), 0) is None


def test_an_answer_expires_after_it_was_written_however_often_it_is_used() -> None:
    kept = cache(expire_after_write_ms=100)
    kept.put((1,), ANN, 1000)
    assert kept.get((1,), 1050) == kept.get((1,), 1099) == ANN
    assert kept.get((1,), 1100) is None
    assert kept.row_count == 0
    kept.put((1,), TWO, 1100)
    assert kept.get((1,), 1199) == TWO


def test_an_answer_expires_when_it_was_not_used_for_long() -> None:
    kept = cache(expire_after_access_ms=100)
    kept.put((1,), ANN, 0)
    for now_ms in (99, 198, 297):
        assert kept.get((1,), now_ms) == ANN
    assert kept.get((1,), 397) is None


@pytest.mark.parametrize(("keeps", "found"), [(True, ()), (False, None)])
def test_that_a_key_has_no_rows(keeps: bool, found: Rows | None) -> None:
    kept = cache(cache_missing_key=keeps)
    kept.put((1,), (), 0)
    assert kept.get((1,), 0) == found
    # what was known of the key before is not true any more
    kept.put((2,), ANN, 0)
    kept.put((2,), (), 1)
    assert kept.get((2,), 1) == found


def test_what_was_not_used_for_longest_gives_way() -> None:
    kept = cache(max_rows=3)
    for number in range(3):
        kept.put((number,), ANN, number)
    assert kept.get((0,), 3) == ANN
    kept.put((3,), ANN, 4)
    assert [kept.get((number,), 5) for number in range(4)] == [ANN, None, ANN, ANN]
    assert kept.row_count == 3


def test_rows_are_counted_and_not_keys() -> None:
    kept = cache(max_rows=3)
    kept.put((1,), ANN, 0)
    kept.put((2,), (), 0)
    assert kept.row_count == 2, "a key without rows counts as one"
    kept.put((3,), TWO, 0)
    assert kept.row_count == 3 and kept.get((1,), 0) is None and kept.get((2,), 0) == ()
    kept.put((3,), ANN, 0)
    assert kept.row_count == 2, "in place of two"


def test_more_rows_than_may_be_kept_are_not_kept() -> None:
    kept = cache(max_rows=1)
    kept.put((1,), ANN, 0)
    kept.put((2,), TWO, 0)
    assert kept.get((2,), 0) is None and kept.get((1,), 0) == ANN
