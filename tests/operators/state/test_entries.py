"""Key groups told entry by entry."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from yarnflow.errors import InvariantViolated
from yarnflow.operators.state.backends.group_storage import PagesHead
from yarnflow.operators.state.backends.saved_group import read_saved
from yarnflow.operators.state.backends.turns import HASHMAP, ROCKSDB, Backends
from yarnflow.operators.state.entries import (
    EVENT_TIMERS,
    PROCESSING_TIMERS,
    Overview,
    SavedEntry,
    entries_of,
)
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.state.ttl import TimeToLive
from yarnflow.spark.state.plain_pickle import foreign_names, loads_plain
from yarnflow.testing.state import StoredGroup


@dataclass(frozen=True)
class Sum:
    n: int


def filled() -> GroupStore:
    return fill(GroupStore())


def fill(store: GroupStore) -> GroupStore:
    state = KeyedState("op")
    state.bind(store)
    state.set_processing_time(1000)
    lifetime = TimeToLive(60_000)
    state.table("sum", StateKind.VALUE).put("a", 1)
    state.table("sum", StateKind.VALUE).put("b", 2)
    state.table("by-window", StateKind.LIST).put("a", [1, 2], "w1")
    state.table("by-window", StateKind.LIST).put("a", [3], "w2")
    state.table("last", StateKind.VALUE, lifetime).put("a", 7)
    state.table("lasts", StateKind.LIST, lifetime).put("a", [7, 8])
    state.table("named", StateKind.MAP, lifetime).put("a", {"x": 9})
    state.timers.register_event_time(50, "a", "w1")
    state.timers.register_processing_time(60, "b")
    return store


def backends() -> Backends:
    tokens = count()
    return Backends(pickle.dumps, pickle.loads, lambda: f"token{next(tokens)}", hash)


def stored(backend: str, value: Any = 1) -> StoredGroup:
    """A group filled in two turns."""
    group, opened = StoredGroup(), backends()
    turn = opened.open(backend, group)
    fill(turn.store)
    turn.commit()
    turn = opened.open(backend, group)
    state = KeyedState("op")
    turn.store.prefetch("op", ["a"])
    state.bind(turn.store)
    state.table("sum", StateKind.VALUE, type_info="Long").put("a", value)
    turn.commit()
    return group


def test_every_state_and_timer_is_told() -> None:
    assert sorted(entries_of(filled().snapshot()), key=repr) == expected("value")


@pytest.mark.parametrize("backend", [HASHMAP, ROCKSDB])
def test_every_state_and_timer_that_either_backend_has_stored_is_told(backend: str) -> None:
    group = stored(backend)
    assert group.stored_head is not None
    found = entries_of(read_saved(group.stored_head, group.entries, loads_plain))
    assert sorted(found, key=repr) == expected("value of Long")


@pytest.mark.parametrize("backend", [HASHMAP, ROCKSDB])
def test_objects_are_told_by_their_class_in_either_backend(backend: str) -> None:
    plain, group = stored(backend), stored(backend, value=Sum(7))
    assert group.stored_head is not None
    found = entries_of(read_saved(group.stored_head, group.entries, loads_plain))
    assert f"<object of {__name__}.Sum>" in {repr(entry.value) for entry in found if entry.state == "sum"}
    assert names(plain) == set()
    assert names(group) == {f"{__name__}.Sum"}


def names(group: StoredGroup) -> set[str]:
    """Of classes, in whatever is stored."""
    bodies = [entry.body for entry in group.entries.values()]
    if isinstance(group.stored_head, PagesHead):
        bodies.append(group.stored_head.root)
    return set().union(*map(foreign_names, bodies))


@pytest.mark.parametrize("backend", [HASHMAP, ROCKSDB])
def test_state_of_which_entries_are_missing_is_no_state(backend: str) -> None:
    group = stored(backend)
    assert group.stored_head is not None
    with pytest.raises(InvariantViolated, match="names an entry that there is not"):
        read_saved(group.stored_head, {}, loads_plain)


def expected(sums: str) -> list[SavedEntry]:
    timed = ", time-to-live"
    return sorted(
        [
            SavedEntry("op", "sum", sums, "a", None, 1),
            SavedEntry("op", "sum", sums, "b", None, 2),
            SavedEntry("op", "by-window", "list", "a", "w1", [1, 2]),
            SavedEntry("op", "by-window", "list", "a", "w2", [3]),
            SavedEntry("op", "last", f"value{timed}", "a", None, 7),
            SavedEntry("op", "lasts", f"list{timed}", "a", None, [7, 8]),
            SavedEntry("op", "named", f"map{timed}", "a", None, {"x": 9}),
            SavedEntry("op", EVENT_TIMERS, "timer", "a", "w1", 50),
            SavedEntry("op", PROCESSING_TIMERS, "timer", "b", None, 60),
        ],
        key=repr,
    )


def test_keys_are_counted_once_and_entries_each() -> None:
    overview = Overview()
    overview.add(list(entries_of(filled().snapshot())))
    overview.add([SavedEntry("op", "sum", "value", "c", None, 1)])
    sums, windows = overview.states["op", "sum"], overview.states["op", "by-window"]
    assert (sums.keys, sums.entries) == (3, 3)
    assert (windows.keys, windows.entries) == (1, 2)
