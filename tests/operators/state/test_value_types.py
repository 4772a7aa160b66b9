"""Values that functions store against the types their states were registered with."""

from __future__ import annotations

import datetime
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from yarnflow.api.common.typeinfo import Types
from yarnflow.errors import InvalidStateUse
from yarnflow.operators.row import Row
from yarnflow.operators.state.backends.turns import HASHMAP, ROCKSDB, Backends
from yarnflow.operators.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from yarnflow.operators.state.handles import BroadcastHandle, StateHandles, broadcast_table
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.state.ttl import StateTtlConfig
from yarnflow.testing.state import StoredGroup

Use = Callable[[StateHandles], Any]


def changed(use: Use, namespace: object = None) -> None:
    """What a batch does: functions use state of the key ``"k"``, then it is made durable."""
    keyed, store = KeyedState("op-id", "Sum", "job.py:7"), GroupStore()
    keyed.bind(store)
    keyed.current_key = "k"
    use(StateHandles(keyed, namespace))
    store.changes()


def value(type_info: object, stored: object) -> Use:
    return lambda states: states.value(ValueStateDescriptor("n", type_info)).update(stored)


def mapped(key: object, stored: object) -> Use:
    descriptor = MapStateDescriptor("m", Types.STRING(), Types.LONG())
    return lambda states: states.map(descriptor).put(key, stored)


@pytest.mark.parametrize(
    ("type_info", "stored"),
    [
        (Types.LONG(), 2**63 - 1),
        (Types.BIG_INT(), 2**80),
        (Types.DOUBLE(), 1),
        (Types.FLOAT(), 1.5),
        (Types.STRING(), ""),
        (Types.BOOLEAN(), 1),
        (Types.SQL_DATE(), datetime.date(2026, 1, 1)),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2026, 1, 1)),
        (Types.PICKLED_BYTE_ARRAY(), object()),
        (None, object()),
        ("LONG", "a type that only its text tells is not looked at"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", None)),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ["a", 1]),
        (Types.ROW([Types.STRING(), Types.INT()]), Row("a", None)),
        (Types.ROW([Types.STRING(), Types.INT()]), ("a", 1)),
        (Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()]), Row(b=1, a="x")),
        (Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()]), Row(a="x", b=1)),
        (Types.LIST(Types.INT()), [1, None]),
        (Types.LIST(Types.INT()), []),
        (Types.MAP(Types.STRING(), Types.LIST(Types.INT())), {"a": [1], "b": None}),
        (Types.MAP(Types.STRING(), Types.INT()), {}),
    ],
)
def test_what_fits_is_stored(type_info: object, stored: object) -> None:
    changed(value(type_info, stored))


@pytest.mark.parametrize(
    ("type_info", "stored", "said"),
    [
        (Types.LONG(), "a text",
         "the descriptor says Long, and 'a text' was stored under 'k': a whole number of 64 bits is needed "
         "and 'a text' (str) came; correct the descriptor's type or what the function stores"),
        (Types.INT(), 2**31, "a whole number of 32 bits is needed and 2147483648 (int) came"),
        (Types.LONG(), 1.5, "a whole number of 64 bits is needed and 1.5 (float) came"),
        (Types.STRING(), 5, "text is needed and 5 (int) came"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("a", "b"), "field [1]: a whole number of 32 bits is "),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ("a",), "a tuple of 2 values is needed and "),
        (Types.ROW([Types.STRING(), Types.INT()]), Row("a", "b"), "field f1: a whole number of 32 bits is "),
        (Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()]), Row(c="x", b=1), "a Row of a, b is "),
        (Types.LIST(Types.INT()), [1, "x"], "field [1]: a whole number of 32 bits is needed and 'x' (str)"),
        (Types.MAP(Types.STRING(), Types.INT()), {1: 1}, "text is needed and 1 (int) came"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": "x"}, "field ['a']: a whole number of 32 bits"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(type_info: object, stored: object, said: str) -> None:
    with pytest.raises(InvalidStateUse) as caught:
        changed(value(type_info, stored))
    assert caught.value.message.startswith("job.py:7: operator 'Sum', state 'n': the descriptor says ")
    assert said in caught.value.message


@pytest.mark.parametrize("namespace", [None, "window"])
@pytest.mark.parametrize("ttl", [False, True])
def test_it_is_the_same_in_every_kind_of_state(namespace: object, ttl: bool) -> None:
    def described(descriptor: Any) -> Any:
        if ttl:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(_OneSecond()).build())
        return descriptor

    def fails(use: Use, said: str) -> None:
        with pytest.raises(InvalidStateUse, match=said):
            changed(use, namespace)

    longs = described(ListStateDescriptor("n", Types.LONG()))
    pairs = described(MapStateDescriptor("n", Types.STRING(), Types.LONG()))
    total = described(ReducingStateDescriptor("n", lambda a, b: a + b, Types.LONG()))
    number = described(ValueStateDescriptor("n", Types.LONG()))
    fails(lambda states: states.value(number).update("x"), "state 'n': the descriptor says Long")
    fails(lambda states: states.list(longs).add_all([1, "x"]), "state 'n', element of the list: .*'x'")
    fails(lambda states: states.list(longs).update([None]), "state 'n', element of the list: .*None")
    fails(lambda states: states.map(pairs).put("a", "x"), "state 'n', value of an entry: .*'x'")
    fails(lambda states: states.map(pairs).put(5, 1), "state 'n', key of an entry: .*5")
    fails(lambda states: states.reducing(total).add("x"), "state 'n': the descriptor says Long")
    changed(lambda states: states.list(longs).add_all([1, 2]), namespace)
    changed(lambda states: states.map(pairs).put_all({"a": 1, "b": None}), namespace)


class _OneSecond:
    def to_milliseconds(self) -> int:
        return 1_000


def test_what_is_added_to_an_entry_of_an_earlier_batch_is_looked_at() -> None:
    keyed, store = KeyedState("op-id", "Sum", "job.py:7"), GroupStore()
    keyed.bind(store)
    keyed.current_key = "k"
    states = StateHandles(keyed)
    longs = states.list(ListStateDescriptor("l", Types.LONG()))
    pairs = states.map(MapStateDescriptor("m", Types.STRING(), Types.LONG()))
    longs.add(1)
    pairs.put("a", 1)
    store.changes()
    longs.add("x")
    with pytest.raises(InvalidStateUse, match="state 'l', element of the list"):
        store.changes()
    pairs.put("b", "x")
    with pytest.raises(InvalidStateUse, match="state 'm', value of an entry"):
        store.changes()


def test_every_key_group_is_looked_at() -> None:
    keyed = KeyedState("op-id", "Sum", "job.py:7")
    state = StateHandles(keyed).value(ValueStateDescriptor("n", Types.LONG()))
    for _ in range(2):
        store = GroupStore()
        keyed.bind(store)
        keyed.current_key = "k"
        state.update("x")
        with pytest.raises(InvalidStateUse, match="state 'n'"):
            store.changes()


def test_broadcast_state_is_looked_at() -> None:
    keyed, store = KeyedState("op-id", "Rules"), GroupStore()
    keyed.bind(store)
    descriptor = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
    BroadcastHandle(keyed, broadcast_table(keyed, descriptor)).put("a", "x")
    with pytest.raises(InvalidStateUse, match="operator 'Rules', broadcast state 'rules', value of an entry"):
        store.changes()


def test_one_value_that_does_not_fit_is_found_among_many() -> None:
    def use(states: StateHandles) -> None:
        state = states.list(ListStateDescriptor("n", Types.TUPLE([Types.STRING(), Types.LONG()])))
        state.add_all([("a", number) for number in range(1_000)] + [("b", "x")])

    with pytest.raises(InvalidStateUse, match=r"\('b', 'x'\) was stored under 'k', field \[1\]"):
        changed(use)


@pytest.mark.parametrize("backend", [HASHMAP, ROCKSDB])
@pytest.mark.parametrize(
    ("use", "said"),
    [
        (value(None, threading.Lock()), r"state 'n': <unlocked _thread.lock .* was stored under 'k'"),
        (
            lambda states: states.list(ListStateDescriptor("l")).add_all([1, threading.Lock()]),
            r"state 'l': \[1, <unlocked _thread.lock",
        ),
        (
            lambda states: states.map(MapStateDescriptor("m")).put("a", threading.Lock()),
            r"state 'm': \{'a': <unlocked _thread.lock",
        ),
    ],
)
def test_what_cannot_be_pickled_is_named(backend: str, use: Use, said: str) -> None:
    turn = Backends(pickle.dumps, pickle.loads, lambda: "token", hash).open(backend, StoredGroup())
    keyed = KeyedState("op-id", "Sum", "job.py:7")
    keyed.bind(turn.store)
    for keyed.current_key in ("k", "other"):
        if keyed.current_key == "k":
            use(StateHandles(keyed))
        else:
            value(None, "fine")(StateHandles(keyed))
    with pytest.raises(InvalidStateUse, match=f"^job.py:7: operator 'Sum', {said}") as caught:
        turn.commit()
    assert "cannot be kept: cannot pickle '_thread.lock' object; store plain values" in caught.value.message


def test_a_map_of_one_pair_of_types() -> None:
    changed(mapped("a", 1))
    with pytest.raises(InvalidStateUse, match="key of an entry"):
        changed(mapped(1, 1))
