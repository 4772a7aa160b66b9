"""Key groups told entry by entry."""

from __future__ import annotations

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


def filled() -> GroupStore:
    store = GroupStore()
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


def test_every_state_and_timer_is_told() -> None:
    timed = ", time-to-live"
    assert sorted(entries_of(filled()), key=repr) == sorted(
        [
            SavedEntry("op", "sum", "value", "a", None, 1),
            SavedEntry("op", "sum", "value", "b", None, 2),
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
    overview.add(list(entries_of(filled())))
    overview.add([SavedEntry("op", "sum", "value", "c", None, 1)])
    sums, windows = overview.states["op", "sum"], overview.states["op", "by-window"]
    assert (sums.keys, sums.entries) == (3, 3)
    assert (windows.keys, windows.entries) == (1, 2)
