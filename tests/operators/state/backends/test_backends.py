"""Both backends hold what a store in memory holds, whoever wrote it before, whatever attempts fail."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.state.scripts import OPERATIONS, TTL, Script, bound, contents
from yarnflow.errors import StateIncompatible
from yarnflow.operators.state.backends import key_pages, timer_pages
from yarnflow.operators.state.backends.group_log import KeptGroup
from yarnflow.operators.state.backends.group_storage import LogHead, PagesHead
from yarnflow.operators.state.backends.key_pages import BucketHashes, KeyIndex, KeyPages, bucket_of
from yarnflow.operators.state.backends.turns import HASHMAP, ROCKSDB, Backends
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.key_groups import key_group, stable_hash
from yarnflow.testing.state import StoredGroup

Operation = tuple[Any, ...]


@pytest.fixture(scope="module", autouse=True)
def small_pages() -> Iterator[None]:
    with patch.object(key_pages, "PAGE_BYTES", 160), patch.object(timer_pages, "TIMER_PAGE_BYTES", 60):
        yield


def new_backends() -> Backends:
    numbers = itertools.count()
    return Backends(pickle.dumps, pickle.loads, lambda: f"t{next(numbers)}", stable_hash)


def perform(script: Script, operations: list[Operation], fetch: bool) -> None:
    for operation in operations:
        if fetch and len(operation) > 2 and operation[0] != "progress":
            script.state.prefetch((operation[1],))
        script.perform(operation)


def read_whole(backends: Backends, backend: str, stored: StoredGroup) -> Any:
    store = backends.open(backend, stored.attempt()).store
    store.prefetch_all("op")
    store.timers("op")
    return contents(store)


#: backend, worker that may have kept something, whether the attempt succeeds, what happens
TURNS = st.lists(
    st.tuples(
        st.sampled_from([HASHMAP, ROCKSDB]),
        st.integers(0, 1),
        st.booleans(),
        st.lists(OPERATIONS, max_size=8),
    ),
    max_size=10,
)


@settings(max_examples=200)
@given(TURNS)
def test_every_turn_sees_all_that_was_committed_in_either_form(
    turns: list[tuple[str, int, bool, list[Operation]]],
) -> None:
    backends, stored, reference = new_backends(), StoredGroup(), GroupStore()
    kept = dict[int, KeptGroup | None]()
    for backend, worker, succeeds, operations in turns:
        attempt = stored.attempt()
        turn = backends.open(backend, attempt, kept.pop(worker, None))
        perform(Script(turn.store, None), operations, True)
        kept[worker] = turn.commit()
        if succeeds:
            stored = attempt
            perform(Script(reference, None), operations, False)
        for reader in (HASHMAP, ROCKSDB):
            assert read_whole(backends, reader, stored) == contents(reference)
    if stored.stored_head is not None:
        again = stored.attempt()
        for backend, form in ((HASHMAP, LogHead), (ROCKSDB, PagesHead), (HASHMAP, LogHead)):
            backends.open(backend, again).commit()
            assert type(again.stored_head) is form


@given(st.lists(st.lists(OPERATIONS, max_size=8), max_size=8))
def test_what_expires_expires_in_both(batches: list[list[Operation]]) -> None:
    backends = new_backends()
    groups = {HASHMAP: StoredGroup(), ROCKSDB: StoredGroup()}
    now_ms = 1000
    for operations in batches:
        ends = set()
        for backend, stored in groups.items():
            turn = backends.open(backend, stored)
            script = Script(turn.store, TTL)
            script.now_ms = now_ms
            script.state.set_processing_time(now_ms)
            perform(script, operations, True)
            turn.commit()
            ends.add(script.now_ms)
        (now_ms,) = ends
    seen = []
    for backend, stored in groups.items():
        script = Script(backends.open(backend, stored).store, TTL)
        script.state.prefetch_all()
        script.state.set_processing_time(now_ms + 1)
        tables = (script.value, script.list, script.map)
        seen.append([{slot: table.get(*slot) for slot in table.slots()} for table in tables])
    for one, other in zip(*seen, strict=True):
        present = [{slot: value for slot, value in found.items() if value} for found in (one, other)]
        assert present[0] == present[1]


def commit(backends: Backends, stored: StoredGroup, values: dict[Any, Any], now_ms: int = 1) -> None:
    turn = backends.open(ROCKSDB, stored)
    state = bound(turn.store)
    table = state.table("v", StateKind.VALUE)
    state.set_processing_time(now_ms)
    state.prefetch(values)
    for key, value in values.items():
        if value is None:
            table.remove(key)
        else:
            table.put(key, value)
    turn.commit()


def test_only_the_pages_of_keys_that_come_up_are_read_and_written() -> None:
    backends, stored = new_backends(), StoredGroup()
    commit(backends, stored, {key: f"{key:020}" for key in range(1000)})
    pages = len(stored.entries)
    assert pages > 100
    stored.reads.clear()
    stored.writes.clear()
    commit(backends, stored, {5: "five", 700: "seven"})
    assert len(stored.reads) == len(stored.writes) == 2
    commit(backends, stored, {2000: "new"})
    assert len(stored.reads) <= 4
    turn = backends.open(ROCKSDB, stored)
    turn.store.prefetch("op", [5, 700, 999])
    table = bound(turn.store).table("v", StateKind.VALUE)
    assert (table.get(5), table.get(700), table.get(999)) == ("five", "seven", f"{999:020}")


def test_what_is_not_changed_is_not_written() -> None:
    backends, stored = new_backends(), StoredGroup()
    commit(backends, stored, {1: "a"})
    head = stored.stored_head
    stored.writes.clear()
    turn = backends.open(ROCKSDB, stored)
    turn.store.prefetch("op", [1])
    turn.commit()
    assert (stored.writes, stored.stored_head) == ([], head)


def test_pages_come_and_go_with_the_entries() -> None:
    backends, stored = new_backends(), StoredGroup()
    most = 0
    for start in range(0, 1000, 100):
        commit(backends, stored, {key: key for key in range(start, start + 100)})
        most = max(most, len(stored.entries))
        assert stored.stored_bytes / len(stored.entries) < 400
    for start in range(0, 1000, 100):
        commit(backends, stored, dict.fromkeys(range(start, start + 100)))
    assert most > 20 and not stored.entries


def test_one_large_entry_does_not_make_empty_pages() -> None:
    backends, stored = new_backends(), StoredGroup()
    commit(backends, stored, {1: "x" * 100_000, 2: "y"})
    assert len(stored.entries) <= 2


def test_keys_of_one_group_spread_over_its_pages() -> None:
    keys = [key for key in range(100_000) if key_group(key, 128) == 5]
    hashes = key_pages.BucketHashes(stable_hash)
    sizes = [0] * 8
    for key in keys:
        sizes[bucket_of(hashes[key], 8)] += 1
    assert len(keys) > 500
    assert all(len(keys) / 16 < size < len(keys) / 4 for size in sizes)


@given(st.integers(0, 2**64 - 1), st.integers(1, 5000))
def test_one_bucket_more_moves_keys_of_one_bucket_to_the_new_one(bits: int, buckets: int) -> None:
    before, after = bucket_of(bits, buckets), bucket_of(bits, buckets + 1)
    assert 0 <= before < buckets
    assert after in (before, buckets)
    if after == buckets:
        assert before == bucket_of(buckets, buckets)


def test_timers_are_read_when_they_are_due() -> None:
    backends, stored = new_backends(), StoredGroup()
    turn = backends.open(ROCKSDB, stored)
    timers = bound(turn.store).timers
    for time in range(1000):
        timers.register_event_time(time, f"k{time}")
    turn.commit()
    pages = len(stored.entries)
    assert pages > 50
    stored.reads.clear()
    turn = backends.open(ROCKSDB, stored)
    timers = bound(turn.store).timers
    assert timers.next_event_time_ms() == 0 and not stored.reads
    assert [time for time, _, _ in timers.due_event_time(499)] == list(range(500))
    turn.commit()
    assert len(stored.reads) <= pages / 2 + 1
    # the page of the last that fired holds the next ones as well
    assert min(timer[0] for entry in stored.entries.values() for timer in pickle.loads(entry.body)) == 500
    assert not list(bound(backends.open(ROCKSDB, stored).store).timers.due_event_time(499))


def test_timers_set_and_deleted_while_timers_fire() -> None:
    backends, stored = new_backends(), StoredGroup()
    turn = backends.open(ROCKSDB, stored)
    timers = bound(turn.store).timers
    for time in range(0, 200, 2):
        timers.register_event_time(time, "k")
    turn.commit()
    turn = backends.open(ROCKSDB, stored)
    timers = bound(turn.store).timers
    fired = []
    for time, _, _ in timers.due_event_time(150):
        fired.append(time)
        if time == 10:
            timers.register_event_time(141, "k")
            timers.register_event_time(3, "k")
            timers.register_event_time(199, "k")
            timers.delete_event_time(180, "k")
    # what comes meanwhile comes after all that were due
    assert fired == [*range(0, 151, 2), 3, 141]
    turn.commit()
    later = bound(backends.open(ROCKSDB, stored).store).timers.due_event_time(1000)
    assert [time for time, _, _ in later] == [*range(152, 180, 2), *range(182, 199, 2), 199]


def test_entries_nobody_touches_expire() -> None:
    backends, stored = new_backends(), StoredGroup()
    for now_ms in range(1000, 1400, 10):
        turn = backends.open(ROCKSDB, stored)
        state = bound(turn.store)
        table = state.table("v", StateKind.VALUE, TTL)
        state.set_processing_time(now_ms)
        keys = range(300) if now_ms == 1000 else range(300, 301)
        state.prefetch(keys)
        for key in keys:
            table.put(key, key)
        state.clean_up()
        turn.commit()
    assert len(stored.entries) == 1


def test_a_stored_entry_of_another_kind_is_named() -> None:
    backends, stored = new_backends(), StoredGroup()
    commit(backends, stored, {"a": 1})
    store = backends.open(ROCKSDB, stored).store
    bound(store).table("v", StateKind.LIST)
    with pytest.raises(StateIncompatible, match="state 'v' is stored as value state without"):
        store.prefetch("op", ["a"])


class _NoPages:
    """A file of pages without a page."""

    def read(self, number: int) -> bytes | None:
        return None

    def write(self, number: int, body: bytes) -> None:
        raise AssertionError("nothing is written")

    def remove(self, number: int) -> None:
        raise AssertionError("nothing is removed")


def test_pages_that_were_not_looked_through_are_looked_through_next() -> None:
    index = KeyIndex(buckets=1000, entries=5000, swept_ms=1_000)

    def looked_through(now_ms: int) -> int:
        pages = KeyPages(index, _NoPages(), pickle.dumps, pickle.loads, BucketHashes(stable_hash))
        return sum(1 for _ in pages.read_expiring(10_000, now_ms))

    # every 10 ms a page is due; one turn looks through 64
    assert looked_through(1_009) == 0
    assert [looked_through(now_ms) for now_ms in (2_000, 2_010, 2_020)] == [64, 38 - 1, 1]
    # no more than one round after any pause
    assert [looked_through(900_000) for _ in range(17)] == [64] * 15 + [40, 0]
    # less than a page is not forgotten
    assert sum(looked_through(now_ms) for now_ms in range(900_000, 900_101, 15)) == 9
