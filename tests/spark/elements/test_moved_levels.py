"""Levels that take over the state of others: what their processors make of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import Row

from tests.operators.state.backends.test_moved_group import FORMS, fill, group
from tests.operators.state.scripts import contents
from yarnflow.operators.state.backends.group_storage import values_of
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.state_layout import LevelMove, LevelPart
from yarnflow.spark.elements.moved_levels import MovedLevel
from yarnflow.spark.elements.worker_runs import backends
from yarnflow.testing.state import StoredGroup

#: its types know of texts alone
new_row: Any = Row
NO_HEAD = (None,) * 6


def rows_of(level: int, source: int, stored: StoredGroup) -> Iterator[Row]:
    """A group as it is read from a level, in no order, for another."""
    for number, entry in stored.entries.items():
        yield new_row(level, 7, source, number, entry.previous, bytearray(entry.body), *NO_HEAD)
    assert stored.stored_head is not None
    yield new_row(level, 7, source, None, None, None, *values_of(stored.stored_head))


def moved(level: int, move: LevelMove, rows: list[Row]) -> tuple[StoredGroup, list[Row]]:
    """What is written, and the rows that go on."""
    processor, stored = MovedLevel(level, move, {}), StoredGroup()
    processor._storage = stored  # type: ignore[assignment]
    return stored, list(processor.handleInputRows((7,), iter(rows), None))


def found(stored: StoredGroup, *operators: str) -> Any:
    store = backends.open(FORMS[0], stored).store
    for operator in operators:
        store.timers(operator)
    return contents(store)


def expected(**operators: int) -> Any:
    store = GroupStore()
    for operator, number in operators.items():
        fill(store, operator, number)
    return contents(store)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_another_levels_goes_on(form: str) -> None:
    whole = LevelMove((LevelPart(0, frozenset("a")),), True)
    source = group(form, a=1)
    for_later = [*rows_of(2, 1, group(form, b=2))]
    stored, passed = moved(1, whole, [*for_later, *rows_of(1, 0, source)])
    assert passed == for_later
    # as it was, byte for byte
    assert (stored.stored_head, stored.entries) == (source.stored_head, source.entries)


@pytest.mark.parametrize("form", FORMS)
def test_levels_are_put_together_and_torn_apart(form: str) -> None:
    parts = LevelPart(0, frozenset("a")), LevelPart(2, frozenset("b"))
    rows = [*rows_of(1, 2, group(form, b=2, c=3)), *rows_of(1, 0, group(form, a=1, d=4))]
    stored, passed = moved(1, LevelMove(parts), rows)
    assert passed == []
    # the form is that of the state
    assert type(stored.stored_head) is type(group(form, a=1).stored_head)
    assert found(stored, "a", "b") == expected(a=1, b=2)


def test_a_group_that_has_nothing_of_it_stays_empty() -> None:
    move = LevelMove((LevelPart(0, frozenset("a")),))
    stored, _ = moved(1, move, [*rows_of(1, 0, group(FORMS[0], b=2))])
    assert stored.stored_head is None and not stored.entries
