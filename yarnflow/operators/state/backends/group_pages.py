"""A key group's state in pages, for state larger than memory.

A turn of the group reads the pages of the keys and the times that come up, and writes those that
changed; nothing is kept between turns.  A small root finds the pages; watermarks and the like lie in it.
Flink counterpart: ``EmbeddedRocksDBStateBackend``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Any, Final

from yarnflow.operators.state.backends.group_storage import GroupStorage, LogEntry, PagesHead
from yarnflow.operators.state.backends.key_pages import BucketHashes, Entries, KeyIndex, KeyPages
from yarnflow.operators.state.backends.timer_pages import PagedTimerQueue
from yarnflow.operators.state.cells import Slot, last_access_ms
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore, Snapshot
from yarnflow.operators.state.timers import TimerData

#: what pages are of; above the page's number in that of the entry
_KEYS: Final = 0
_EVENT: Final = 1
_PROCESSING: Final = 2
_KIND_BITS: Final = 40
_OPERATOR_BITS: Final = _KIND_BITS + 2


class GroupPages:
    """Opens groups.

    Parameters
    ----------
    dumps, loads : callable
        Pickle's, or others of that form.
    stable_hash : callable
        Hash of a key, the same in every process.
    """

    def __init__(
        self,
        dumps: Callable[[Any], bytes],
        loads: Callable[[bytes], Any],
        stable_hash: Callable[[Any], int],
    ) -> None:
        self.dumps = dumps
        self.loads = loads
        self.hashes = BucketHashes(stable_hash)

    def open(self, storage: GroupStorage, head: PagesHead | None) -> PagedGroup:
        """The state as of the head; reads nothing."""
        return PagedGroup(self, storage, head)


class _Pages:
    """Some of a group's entries as numbered pages."""

    def __init__(self, storage: GroupStorage, first: int) -> None:
        self._storage = storage
        self._first = first

    def read(self, number: int) -> bytes | None:
        entry = self._storage.entry(self._first + number)
        return None if entry is None else entry.body

    def write(self, number: int, body: bytes) -> None:
        self._storage.put_entry(self._first + number, LogEntry("", body))

    def remove(self, number: int) -> None:
        self._storage.remove_entry(self._first + number)


class PagedGroup:
    """One group during a turn; an :class:`~yarnflow.operators.state.store.EntryReader`.

    Attributes
    ----------
    store : GroupStore
        What operators work on.
    """

    def __init__(self, pages: GroupPages, storage: GroupStorage, head: PagesHead | None) -> None:
        self._pages = pages
        self._storage = storage
        self._root = b"" if head is None else head.root
        progress: dict[Hashable, Any] = {}
        #: operator id → number
        self._operators: dict[str, int] = {}
        #: operator id → index of its keys, as it was committed last
        self._key_indexes: dict[str, tuple[int, ...]] = {}
        #: (operator id, kind) → list of its pages of timers
        self._timer_pages: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        if head is not None:
            root = pages.loads(head.root)
            self._operators, self._key_indexes, self._timer_pages, progress = root
        self._keys: dict[str, tuple[KeyIndex, KeyPages]] = {}
        self._queues: dict[tuple[str, int], PagedTimerQueue] = {}
        self.store = GroupStore.load(Snapshot({}, {}, progress), reader=self)

    # --- EntryReader ----------------------------------------------------------------------

    def read(self, operator_id: str, keys: Iterable[Any]) -> Iterator[Entries]:
        """See :class:`~yarnflow.operators.state.store.EntryReader`."""
        # of an operator without entries there is nothing to read
        return self._keys_of(operator_id).read(keys) if operator_id in self._key_indexes else iter(())

    def read_all(self, operator_id: str) -> Iterator[Entries]:
        """See :class:`~yarnflow.operators.state.store.EntryReader`."""
        return self._keys_of(operator_id).read_all() if operator_id in self._key_indexes else iter(())

    def read_expiring(self, operator_id: str, ttl_ms: int, now_ms: int) -> Iterator[Entries]:
        """See :class:`~yarnflow.operators.state.store.EntryReader`."""
        return self._keys_of(operator_id).read_expiring(ttl_ms, now_ms)

    def timers(self, operator_id: str) -> TimerData:
        """See :class:`~yarnflow.operators.state.store.EntryReader`."""
        return TimerData(self._queue(operator_id, _EVENT), self._queue(operator_id, _PROCESSING))

    def _keys_of(self, operator_id: str) -> KeyPages:
        found = self._keys.get(operator_id)
        if found is None:
            index = KeyIndex(*self._key_indexes.get(operator_id, ()))
            pages = self._pages
            file = self._file(operator_id, _KEYS)
            made = KeyPages(index, file, pages.dumps, pages.loads, pages.hashes)
            found = self._keys[operator_id] = index, made
        return found[1]

    def _queue(self, operator_id: str, kind: int) -> PagedTimerQueue:
        found = self._queues.get((operator_id, kind))
        if found is None:
            packed = self._timer_pages.get((operator_id, kind), [])
            file = self._file(operator_id, kind)
            found = PagedTimerQueue(packed, file, self._pages.dumps, self._pages.loads)
            self._queues[operator_id, kind] = found
        return found

    def _file(self, operator_id: str, kind: int) -> _Pages:
        number = self._operators.setdefault(operator_id, len(self._operators))
        return _Pages(self._storage, (number << _OPERATOR_BITS) + (kind << _KIND_BITS))

    # --- writing ------------------------------------------------------------------------

    def commit(self) -> None:
        """Write what the store has changed; then neither is to be used again."""
        changes = self.store.changes()
        for (operator_id, state), changed in changes.tables.items():
            data = self.store.table(operator_id, state, changed.kind, changed.timed)
            self._keys_of(operator_id).take_over(state, data, changed)
        for operator_id, timers in changes.timers.items():
            for kind, queue_changes in ((_EVENT, timers.event), (_PROCESSING, timers.processing)):
                if queue_changes is not None:
                    self._queue(operator_id, kind).write(queue_changes)
        for operator_id, (index, pages) in self._keys.items():
            try:
                pages.commit()
            except Exception as error:
                raise self.store.not_stored(changes, error, self._pages.dumps) from None
            self._key_indexes[operator_id] = index.packed()
        for place, queue in self._queues.items():
            self._timer_pages[place] = queue.packed()
        self._write_root()

    def _write_root(self) -> None:
        timer_pages = {place: packed for place, packed in self._timer_pages.items() if packed}
        progress = self.store.progress()
        root = self._pages.dumps((self._operators, self._key_indexes, timer_pages, progress))
        if root != self._root:
            self._root = root
            self._storage.set_head(PagesHead(root))

    def fill(self, snapshot: Snapshot) -> None:
        """Take in all of another group's state, before anything else is done; :meth:`commit` writes it."""
        store = self.store
        for (operator_id, state), table in snapshot.tables.items():
            data = store.table(operator_id, state, table.kind, table.timed)
            for cells, found in ((data.plain, table.plain), (data.spaced, table.spaced)):
                cells.values.update(found)
                cells.touched.update(found)
        for operator_id, timers in snapshot.timers.items():
            queues = store.timers(operator_id)
            for queue, found_timers in ((queues.event, timers.event), (queues.processing, timers.processing)):
                for timer in found_timers:
                    queue.add(*timer)
        for name, value in snapshot.progress.items():
            store.put_progress(name, value)

    def read_out(self, operators: Collection[str] | None = None) -> Snapshot:
        """Everything, or of the pages of some operators alone."""
        for operator_id in self._operators:
            if operators is not None and operator_id not in operators:
                continue
            self.store.prefetch_all(operator_id)
            self.store.timers(operator_id)
        snapshot = self.store.snapshot()
        for table in snapshot.tables.values():
            if table.timed:
                table.plain = _by_last_access(table.kind, table.plain)
                table.spaced = _by_last_access(table.kind, table.spaced)
        return snapshot

    def take_out(self) -> Snapshot:
        """Read everything, and remove it from the storage."""
        snapshot = self.read_out()
        for operator_id in self._operators:
            self._keys_of(operator_id).clear()
            for kind in (_EVENT, _PROCESSING):
                self._queue(operator_id, kind).clear()
        return snapshot


def _by_last_access(kind: StateKind, values: dict[Slot, Any]) -> dict[Slot, Any]:
    return dict(sorted(values.items(), key=lambda item: last_access_ms(kind, item[1])))
