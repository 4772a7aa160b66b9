"""State of operators that is taken from where it was, and written where it is to be."""

from __future__ import annotations

import pickle
from collections.abc import Collection

import pytest

from tests.operators.state.backends.test_backends import new_backends
from tests.operators.state.scripts import contents
from yarnflow.operators.state.backends.moved_group import GroupPart, put_together
from yarnflow.operators.state.backends.turns import HASHMAP, ROCKSDB
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore
from yarnflow.testing.state import StoredGroup

FORMS = (HASHMAP, ROCKSDB)


def fill(store: GroupStore, operator: str, number: int) -> None:
    """A value, a timer, a type and a watermark."""
    state = KeyedState(operator)
    state.bind(store)
    state.table("value", StateKind.VALUE, None).put(number, number)
    state.timers.register_event_time(10 + number, number, None)
    store.check_type(operator, "value", "Integer")
    store.put_progress(("watermark", operator), (number,))


def group(form: str, **operators: int) -> StoredGroup:
    """Operator → number."""
    stored = StoredGroup()
    turn = new_backends().open(form, stored)
    for operator, number in operators.items():
        fill(turn.store, operator, number)
    turn.commit()
    return stored


def part(stored: StoredGroup, operators: Collection[str]) -> GroupPart:
    assert stored.stored_head is not None
    return GroupPart(stored.stored_head, stored.entries, operators)


@pytest.mark.parametrize("second", FORMS)
@pytest.mark.parametrize("first", FORMS)
@pytest.mark.parametrize("to", FORMS)
def test_operators_of_two_groups_become_those_of_one(first: str, second: str, to: str) -> None:
    # b has left something stale in the first group, and c is not wanted
    parts = [part(group(first, a=1, b=2), {"a"}), part(group(second, b=3, c=4), {"b"})]
    written, backends = StoredGroup(), new_backends()
    backends.write(to, written, put_together(parts, pickle.loads))
    expected = GroupStore()
    for operator, number in (("a", 1), ("b", 3)):
        fill(expected, operator, number)
    for form in FORMS:
        store = backends.open(form, written.attempt()).store
        for operator in ("a", "b", "c"):
            store.prefetch_all(operator)
            store.timers(operator)
        values, timers, progress = contents(store)
        found = contents(expected)
        assert values == found[0] and progress == found[2]
        assert {name: held for name, held in timers.items() if held != (set(), set())} == found[1]


def test_nothing_is_left_of_operators_that_nobody_wants() -> None:
    assert put_together([part(group(HASHMAP, a=1), {"b"})], pickle.loads).empty
