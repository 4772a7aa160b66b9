"""Logs of key groups: what several workers keep, and attempts that fail, never change what is read."""

from __future__ import annotations

import itertools
import pickle

from hypothesis import given
from hypothesis import strategies as st

from yarnflow.operators.state.backends.group_log import GroupLog, KeptGroup
from yarnflow.operators.state.backends.group_storage import LogHead
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore
from yarnflow.testing.state import StoredGroup


def new_log() -> GroupLog:
    numbers = itertools.count()
    return GroupLog(pickle.dumps, pickle.loads, lambda: f"t{next(numbers)}")


def opened(
    log: GroupLog, stored: StoredGroup, kept: KeptGroup | None = None
) -> tuple[LogHead | None, GroupStore]:
    head = stored.head()
    assert head is None or isinstance(head, LogHead)
    return head, log.open(stored, head, kept)


def write(store: GroupStore, key: int, value: object) -> None:
    state = KeyedState("op")
    state.bind(store)
    state.table("sum", StateKind.VALUE).put(key, value)


def values(store: GroupStore) -> dict[int, object]:
    state = KeyedState("op")
    state.bind(store)
    table = state.table("sum", StateKind.VALUE)
    return {key: found for key in range(4) if (found := table.get(key)) is not None}


#: worker, whether the attempt succeeds, key, bytes of the value
ATTEMPTS = st.lists(
    st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 3), st.sampled_from([1, 40_000])), max_size=60
)


@given(ATTEMPTS)
def test_every_attempt_sees_all_commits_and_nothing_else(attempts: list[tuple[int, bool, int, int]]) -> None:
    log, stored, kept = new_log(), StoredGroup(), dict[int, KeptGroup]()
    committed: dict[int, object] = {}
    for number, (worker, succeeds, key, size) in enumerate(attempts):
        attempt = stored.attempt()
        head, store = opened(log, attempt, kept.pop(worker, None))
        assert values(store) == committed
        value = (number, "x" * size)
        write(store, key, value)
        found = log.commit(attempt, head, store)
        # the worker does not learn whether the batch that its attempt belongs to is committed
        assert found is not None
        kept[worker] = found
        if succeeds:
            stored = attempt
            committed[key] = value
    _, fresh = opened(log, stored)
    assert values(fresh) == committed


def test_a_kept_store_is_read_from_no_log() -> None:
    log, stored = new_log(), StoredGroup()
    head, store = opened(log, stored)
    write(store, 1, "a")
    kept = log.commit(stored, head, store)
    _, again = opened(log, stored, kept)
    assert (again, stored.reads) == (store, [])


def test_a_store_that_is_behind_reads_the_tail_alone() -> None:
    log, stored = new_log(), StoredGroup()
    head, store = opened(log, stored)
    write(store, 1, "a")
    behind = log.commit(stored, head, store)
    head, other = opened(log, stored)
    write(other, 2, "b")
    log.commit(stored, head, other)
    stored.reads.clear()
    _, caught_up = opened(log, stored, behind)
    assert (values(caught_up), stored.reads) == ({1: "a", 2: "b"}, [1])


def test_the_log_stays_short() -> None:
    log, stored = new_log(), StoredGroup()
    kept = None
    for number in range(500):
        head, store = opened(log, stored, kept)
        write(store, number % 4, "x" * 5_000)
        kept = log.commit(stored, head, store)
    assert sum(len(entry.body) for entry in stored.entries.values()) < 200_000
    assert len(stored.entries) <= 33


def test_nothing_changed_writes_nothing() -> None:
    log, stored = new_log(), StoredGroup()
    head, store = opened(log, stored)
    assert log.commit(stored, head, store) is None
    assert stored.stored_head is None
