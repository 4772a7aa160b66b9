"""Random use of an operator's state: the operations, and a script that performs them."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import strategies as st

from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore, Snapshot
from yarnflow.operators.state.ttl import TimeToLive

TTL = TimeToLive(100)


def bound(store: GroupStore) -> KeyedState:
    state = KeyedState("op")
    state.bind(store)
    return state


def copied(value: Any) -> Any:
    """As it is read back by another worker."""
    return pickle.loads(pickle.dumps(value, 5))


def contents(store: GroupStore) -> Any:
    """Everything in a store, in a form that compares: timers of one time have no order."""
    snapshot: Snapshot = copied(store.snapshot())
    return (
        {name: (table.kind, table.plain, table.spaced) for name, table in snapshot.tables.items()},
        {name: (set(timers.event), set(timers.processing)) for name, timers in snapshot.timers.items()},
        snapshot.progress,
    )


KEYS = st.sampled_from([None, "a", "b", ("a", "w1"), 1])
NAMESPACES = st.sampled_from([None, "w1", "w2"])
SMALL = st.integers(0, 3)
OPERATIONS = st.one_of(
    st.tuples(st.just("put"), KEYS, NAMESPACES, SMALL),
    st.tuples(st.just("remove"), KEYS, NAMESPACES),
    st.tuples(st.just("append"), KEYS, NAMESPACES, SMALL),
    st.tuples(st.just("put_list"), KEYS, NAMESPACES, st.lists(SMALL, max_size=2)),
    st.tuples(st.just("remove_list"), KEYS, NAMESPACES),
    st.tuples(st.just("put_entry"), KEYS, NAMESPACES, SMALL, SMALL),
    st.tuples(st.just("remove_entry"), KEYS, NAMESPACES, SMALL),
    st.tuples(st.just("remove_map"), KEYS, NAMESPACES),
    st.tuples(st.just("read"), KEYS, NAMESPACES, SMALL),
    st.tuples(st.just("event_timer"), KEYS, NAMESPACES, SMALL),
    st.tuples(st.just("delete_timer"), KEYS, NAMESPACES, SMALL),
    st.tuples(st.just("watermark"), SMALL),
    st.tuples(st.just("progress"), SMALL, SMALL),
    st.tuples(st.just("time"), st.integers(0, 60)),
    st.tuples(st.just("clean_up")),
)


class Script:
    """Performs drawn operations on one state of each kind."""

    def __init__(self, store: GroupStore, ttl: TimeToLive | None) -> None:
        self.store, self.now_ms = store, 1000
        self.state = bound(store)
        self.value = self.state.table("value", StateKind.VALUE, ttl)
        self.list = self.state.table("list", StateKind.LIST, ttl)
        self.map = self.state.table("map", StateKind.MAP, ttl)
        self.state.set_processing_time(self.now_ms)

    def perform(self, operation: tuple[Any, ...]) -> None:
        timers = self.state.timers
        match operation:
            case "put", key, namespace, value:
                self.value.put(key, value, namespace)
            case "remove", key, namespace:
                self.value.remove(key, namespace)
            case "append", key, namespace, value:
                self.list.append(key, value, namespace)
            case "put_list", key, namespace, values:
                self.list.put(key, values, namespace)
            case "remove_list", key, namespace:
                self.list.remove(key, namespace)
            case "put_entry", key, namespace, entry, value:
                self.map.put_entry(key, entry, value, namespace)
            case "remove_entry", key, namespace, entry:
                self.map.remove_entry(key, entry, namespace)
            case "remove_map", key, namespace:
                self.map.remove(key, namespace)
            case "read", key, namespace, entry:
                self.value.get(key, namespace)
                self.list.get(key, namespace)
                self.map.get_entry(key, entry, namespace)
                self.map.get(key, namespace)
            case "event_timer", key, namespace, time:
                timers.register_event_time(time, key, namespace)
            case "delete_timer", key, namespace, time:
                timers.delete_event_time(time, key, namespace)
            case "watermark", time:
                list(timers.due_event_time(time))
            case "progress", name, value:
                self.store.put_progress(name, value)
            case "time", ms:
                self.now_ms += ms
                self.state.set_processing_time(self.now_ms)
            case ("clean_up",):
                self.state.clean_up()
            case _:
                raise AssertionError(operation)
