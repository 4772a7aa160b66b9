"""States that are registered as another type than the one their entries were written as."""

from __future__ import annotations

import pickle
import re
from itertools import count

import pytest

from yarnflow.errors import StateIncompatible
from yarnflow.operators.state.backends.turns import HASHMAP, ROCKSDB, Backends
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.state.type_names import reads, type_text
from yarnflow.testing.state import StoredGroup

PICKLED = "PickledByteArrayTypeInfo"


def written(type_info: object) -> GroupStore:
    """A key group with an entry of a type, as it is loaded again."""
    store = GroupStore()
    state = KeyedState("op")
    state.bind(store)
    state.table("sum", StateKind.VALUE, type_info=type_info).put("key", 1)
    return GroupStore.load(pickle.loads(pickle.dumps(store.snapshot())))


def stored(backend: str, type_info: object) -> GroupStore:
    """A key group with an entry of a type, stored by a backend and opened again."""
    tokens = count()
    backends = Backends(pickle.dumps, pickle.loads, lambda: f"token{next(tokens)}", hash)
    group = StoredGroup()
    turn = backends.open(backend, group)
    state = KeyedState("op")
    state.bind(turn.store)
    state.table("sum", StateKind.VALUE, type_info=type_info).put("key", 1)
    turn.commit()
    return backends.open(backend, group).store


def registered(store: GroupStore, type_info: object, name: str = "sum") -> None:
    state = KeyedState("op")
    state.bind(store)
    state.table(name, StateKind.VALUE, type_info=type_info)


def test_another_type_is_refused_with_both_named() -> None:
    message = "operator 'op': state 'sum' is stored as Long, the program registers it as String"
    with pytest.raises(StateIncompatible, match=re.escape(message)):
        registered(written("Long"), "String")


@pytest.mark.parametrize("backend", [HASHMAP, ROCKSDB])
def test_another_type_is_refused_in_either_backend(backend: str) -> None:
    registered(stored(backend, "Long"), "BigInteger")
    message = "'sum' is stored as Long, the program registers it as String"
    with pytest.raises(StateIncompatible, match=message):
        registered(stored(backend, "Long"), "String")


def test_another_type_is_found_in_every_key_group_that_is_bound_later() -> None:
    state = KeyedState("op")
    state.bind(GroupStore())
    state.table("sum", StateKind.VALUE, type_info="String")
    with pytest.raises(StateIncompatible, match="stored as Long"):
        state.bind(written("Long"))


def test_the_kind_is_refused_as_well() -> None:
    state = KeyedState("op")
    state.bind(written("Long"))
    message = "stored as value state without time-to-live, the program registers it as list state"
    with pytest.raises(StateIncompatible, match=message):
        state.table("sum", StateKind.LIST, type_info="Long")


@pytest.mark.parametrize("type_info", ["Long", "BigInteger", PICKLED, None])
def test_what_reads_the_same_values_goes_on(type_info: object) -> None:
    store = written("Long")
    registered(store, type_info)
    # and from then on the new type is the one that counts
    assert store.snapshot().progress["type", "op", "sum"] == (type_info or "Long")


def test_a_state_without_entries_may_change() -> None:
    store = written("Long")
    state = KeyedState("op")
    state.bind(store)
    state.table("sum", StateKind.VALUE).remove("key")
    registered(GroupStore.load(pickle.loads(pickle.dumps(store.snapshot()))), "String")


def test_states_that_were_written_without_a_type_take_any() -> None:
    registered(written(None), "String")


def test_wider_types_read_narrower_ones_and_not_the_other_way() -> None:
    assert reads("Long", "Integer") and not reads("Integer", "Long")
    assert reads("Double", "Float") and not reads("Float", "Double")
    assert not reads("Double", "Long")
    assert reads(PICKLED, "RowTypeInfo(a: Integer)") and not reads("RowTypeInfo(a: Integer)", PICKLED)


def test_a_map_has_the_types_of_key_and_value() -> None:
    assert type_text(("String", "Long")) == "String to Long"
    assert type_text(None) == ""
