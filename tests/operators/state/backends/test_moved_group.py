"""State of operators that is taken from where it was, and written where it is to be."""

from __future__ import annotations

import pickle
from collections.abc import Collection
from dataclasses import dataclass

import pytest

from tests.operators.state.backends.test_backends import new_backends
from tests.operators.state.scripts import contents
from yarnflow.errors import StateIncompatible
from yarnflow.operators.state.backends.missing_classes import TolerantReader, missing_class
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
    backends.write(to, written, put_together(parts))
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
    assert put_together([part(group(HASHMAP, a=1), {"b"})]).empty


@dataclass(frozen=True)
class Coin:
    """Of a module that is gone when its state is moved."""

    cents: int


def fill_coins(store: GroupStore, number: int) -> None:
    """As keys, values and keys of timers."""
    state = KeyedState("coins")
    state.bind(store)
    state.table("coin", StateKind.VALUE, None).put(Coin(number), Coin(number))
    state.timers.register_event_time(number, Coin(number), None)


def group_with_coins(form: str) -> StoredGroup:
    """In several commits, so that changes are applied to what is not there."""
    stored, backends, kept = StoredGroup(), new_backends(), None
    for number in (1, 2, 1):
        turn = backends.open(form, stored, kept)
        fill(turn.store, "a", number)
        fill_coins(turn.store, number)
        turn.commit()
    return stored


@pytest.mark.parametrize("form", FORMS)
def test_what_is_left_behind_may_be_of_classes_that_are_gone(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = group_with_coins(form)
    whole = put_together([part(stored, {"a"})])
    monkeypatch.delattr(f"{__name__}.Coin")
    found = put_together([part(stored, {"a"})])
    assert found.tables.keys() == {("a", "value")} == whole.tables.keys()
    assert found.tables == whole.tables and found.timers == whole.timers
    with pytest.raises(
        StateIncompatible, match=rf"operator 'purse': state 'coin' holds an object of {__name__}.Coin"
    ):
        put_together([part(stored, {"a", "coins"})], {"coins": "purse"})


def test_objects_of_missing_classes_are_told_apart() -> None:
    pickled = [pickle.dumps([{Coin(n): n for n in range(100)}, [Coin(1), Coin]])]
    found = TolerantReader().loads(pickled[0].replace(b"test_moved_group", b"test_gone_groups"))
    coins, (coin, kind) = found
    assert len({hash(key) for key in coins}) == 100 and coins[coin] == 1
    assert missing_class(coin) == missing_class([kind]) == f"{__name__}.Coin".replace(
        "test_moved_group", "test_gone_groups"
    )
    assert not missing_class([Coin, Coin(1), pickle, fill, {"a": (1, 2)}])
    with pytest.raises(pickle.PicklingError, match="Coin, which cannot be imported"):
        pickle.dumps(coin)
