"""State tables, what they record as changed, and stores made again of snapshots and changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.state.scripts import OPERATIONS, TTL, Script, bound, contents, copied
from yarnflow.errors import InvalidStateUse, StateIncompatible
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import Changes, GroupStore
from yarnflow.operators.state.ttl import TimeToLive


@given(
    st.lists(st.lists(OPERATIONS, max_size=8), max_size=8),
    st.integers(0, 8),
    st.sampled_from([None, TTL, TimeToLive(100, on_read=True), TimeToLive(100, return_expired=True)]),
)
def test_a_snapshot_and_the_changes_after_it_make_the_store(
    batches: list[list[tuple[Any, ...]]], snapshot_after: int, ttl: TimeToLive | None
) -> None:
    script = Script(GroupStore(), ttl)
    snapshot, tail = None, list[Changes]()
    for number, batch in enumerate(batches, start=1):
        for operation in batch:
            script.perform(operation)
        tail.append(copied(script.store.changes()))
        if number == snapshot_after:
            snapshot, tail = copied(script.store.snapshot()), []
    again = GroupStore.load(snapshot, tail)
    assert contents(again) == contents(script.store)
    assert again.changes().empty


@given(st.lists(OPERATIONS, max_size=30))
def test_expired_entries_are_found_in_a_store_made_again(operations: list[tuple[Any, ...]]) -> None:
    script = Script(GroupStore(), TTL)
    tail = []
    for operation in operations:
        script.perform(operation)
        tail.append(copied(script.store.changes()))
    again = Script(GroupStore.load(None, tail), TTL)
    for one in (script, again):
        one.state.set_processing_time(script.now_ms + 101)
        one.perform(("clean_up",))
    assert contents(again.store)[0] == contents(script.store)[0] == {}


def test_only_what_was_appended_is_recorded() -> None:
    store = GroupStore()
    table = bound(store).table("events", StateKind.LIST)
    table.put("k", list(range(1000)))
    store.changes()
    table.append("k", "last")
    changes = store.changes().tables["op", "events"].plain
    assert changes is not None and changes.appended == {"k": ["last"]} and not changes.put


def test_only_the_entry_of_a_map_that_changed_is_recorded() -> None:
    store = GroupStore()
    table = bound(store).table("counts", StateKind.MAP)
    table.put("k", {n: n for n in range(1000)})
    store.changes()
    table.put_entry("k", 5, "five")
    table.remove_entry("k", 6)
    changes = store.changes().tables["op", "counts"].plain
    assert changes is not None and not changes.put
    assert changes.map_put == {"k": {5: "five"}} and changes.map_removed == {"k": [6]}


def test_a_key_that_looks_like_key_and_namespace_is_another_entry() -> None:
    table = bound(GroupStore()).table("v", StateKind.VALUE)
    table.put(("k", "w"), 1)
    table.put("k", 2, "w")
    assert (table.get(("k", "w")), table.get("k", "w")) == (1, 2)
    assert sorted(table.slots(), key=repr) == [("k", "w"), (("k", "w"), None)]


def test_an_emptied_list_or_map_is_gone() -> None:
    state = bound(GroupStore())
    elements, entries = state.table("l", StateKind.LIST), state.table("m", StateKind.MAP)
    elements.put("k", [1])
    elements.put("k", [])
    entries.put_entry("k", 1, 1)
    entries.remove_entry("k", 1)
    assert not elements.contains("k") and not entries.contains("k")


def test_a_state_is_found_again_by_its_name() -> None:
    state = bound(GroupStore())
    assert state.table("v", StateKind.VALUE) is state.table("v", StateKind.VALUE)


@pytest.mark.parametrize(
    "kind, ttl, type_info, said",
    [
        (StateKind.LIST, None, None, "as value state and as list state"),
        (StateKind.VALUE, TTL, None, "time-to-live none and of 100 ms"),
        (StateKind.VALUE, None, "LONG", "type STRING and LONG"),
    ],
)
def test_registering_a_name_twice_names_both(
    kind: StateKind, ttl: TimeToLive | None, type_info: str | None, said: str
) -> None:
    state = bound(GroupStore())
    state.table("v", StateKind.VALUE, None, "STRING")
    with pytest.raises(InvalidStateUse, match=f"state 'v'.*{said}"):
        state.table("v", kind, ttl, type_info)


def test_state_of_another_kind_in_the_store_is_named() -> None:
    store = GroupStore()
    bound(store).table("v", StateKind.VALUE).put("k", 1)
    with pytest.raises(StateIncompatible, match="state 'v' is stored as value state without"):
        bound(store).table("v", StateKind.LIST)


def test_a_state_that_is_empty_may_change_its_kind() -> None:
    store = GroupStore()
    bound(store).table("v", StateKind.VALUE)
    bound(store).table("v", StateKind.LIST).append("k", 1)
    assert GroupStore.load(None, [copied(store.changes())]).snapshot().tables["op", "v"].plain == {"k": [1]}


def test_the_wrong_access_is_named() -> None:
    table = bound(GroupStore()).table("v", StateKind.VALUE)
    with pytest.raises(InvalidStateUse, match="'v' is a value state, not a list state"):
        table.append("k", 1)


def test_progress_is_recorded_when_it_changes() -> None:
    store = GroupStore()
    store.put_progress("w", 1)
    assert store.changes().progress == {"w": 1}
    store.put_progress("w", 1)
    assert store.changes().empty
