"""Entries by key in pages: only the pages of keys that come up are read, and only changed ones written.

A page holds the entries of the keys of one hash bucket, of all states of an operator.  The buckets grow
and shrink one by one with what is in them (linear hashing), so that pages keep a size that is quick to
read whole and large enough that thousands of keys are few round trips.  What belongs to no key (key
None), such as broadcast state, has a page of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final, Protocol

from yarnflow.operators.state.cells import CellChanges, TableChanges, TableData, TableSnapshot
from yarnflow.operators.state.kinds import StateKind

#: bytes of a page on the average
PAGE_BYTES: Final = 8 * 1024
#: pages that one commit reads only to find what has expired
_MAX_SWEPT_PAGES: Final = 64
_MASK: Final = 2**64 - 1
_OWN: Final = 0

#: state name → entries
Entries = dict[str, TableSnapshot]


class PageFile(Protocol):
    """Numbered pages of one operator."""

    def read(self, number: int) -> bytes | None:
        """A page; None = there is none."""

    def write(self, number: int, body: bytes) -> None:
        """Write or replace a page."""

    def remove(self, number: int) -> None:
        """Remove a page that there is."""


@dataclass(slots=True)
class KeyIndex:
    """All that is to be known of an operator's pages without reading one."""

    buckets: int = 1
    #: of the pages of all buckets
    size_bytes: int = 0
    #: keys and namespaces in them, once for each state
    entries: int = 0
    #: of the page of what belongs to no key
    own_bytes: int = 0
    #: bucket that is looked through next for what has expired
    swept_next: int = 0
    #: what was due until then has been looked through
    swept_ms: int = 0

    def packed(self) -> tuple[int, ...]:
        """Picklable, without the name of a class."""
        return astuple(self)


class BucketHashes(dict[Any, int]):
    """Key → well spread 64 bits, computed at first use.

    Parameters
    ----------
    stable_hash : callable
        The same in every process, and for keys that are equal.
    """

    def __init__(self, stable_hash: Callable[[Any], int]) -> None:
        super().__init__()
        self._stable_hash = stable_hash

    def __missing__(self, key: Any) -> int:
        # all keys of a group have some bits in common: every bit is mixed with every other
        bits = self._stable_hash(key) & _MASK
        bits = (bits ^ bits >> 33) * 0xFF51AFD7ED558CCD & _MASK
        bits = (bits ^ bits >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
        bits ^= bits >> 33
        if len(self) >= _REMEMBERED:
            self.clear()
        self[key] = bits
        return bits


_REMEMBERED: Final = 200_000


class KeyPages:
    """The entries of one operator in one key group, during one turn of the group.

    Parameters
    ----------
    index : KeyIndex
        Changed by :meth:`commit`.
    file : PageFile
    dumps, loads : callable
        Pickle's.
    hashes : mapping
        Key → 64 bits.
    """

    def __init__(
        self,
        index: KeyIndex,
        file: PageFile,
        dumps: Callable[[Any], bytes],
        loads: Callable[[bytes], Any],
        hashes: Mapping[Any, int],
    ) -> None:
        self._index = index
        self._file = file
        self._dumps = dumps
        self._loads = loads
        self._hashes = hashes
        #: number of the page → its entries
        self._pages: dict[int, Entries] = {}
        #: bytes and entries of pages as the index counts them
        self._counted: dict[int, tuple[int, int]] = {}
        self._written: set[int] = set()
        self._changed: set[int] = set()

    # --- reading ------------------------------------------------------------------------

    def read(self, keys: Iterable[Any]) -> Iterator[Entries]:
        """The pages of some keys, each once in a turn."""
        for number in {self._page_of(key) for key in keys}:
            if number not in self._pages:
                yield self._read(number)

    def read_all(self) -> Iterator[Entries]:
        """All pages that were not given yet."""
        for number in range(self._index.buckets + 1):
            if number not in self._pages:
                yield self._read(number)

    def read_expiring(self, ttl_ms: int, now_ms: int) -> Iterator[Entries]:
        """Some pages, so that each is looked through once in the time after which entries expire."""
        index = self._index
        if not index.entries or not index.swept_ms:
            index.swept_ms = now_ms
            return
        # a group that was quiet for long has one round to catch up with
        since_ms = max(index.swept_ms, now_ms - ttl_ms)
        due = min(index.buckets * (now_ms - since_ms) // ttl_ms, _MAX_SWEPT_PAGES)
        if due < 1:
            return
        # what is left is done in the next turns
        index.swept_ms = since_ms + due * ttl_ms // index.buckets
        for _ in range(due):
            index.swept_next %= index.buckets
            number = index.swept_next + 1
            index.swept_next += 1
            if number not in self._pages:
                yield self._read(number)

    def _page_of(self, key: Any) -> int:
        if key is None:
            return _OWN
        return bucket_of(self._hashes[key], self._index.buckets) + 1

    def _read(self, number: int) -> Entries:
        index = self._index
        # what the index knows to be empty costs no round trip
        known = index.own_bytes if number == _OWN else index.entries
        body = self._file.read(number) if known else None
        entries: Entries = {}
        if body is not None:
            self._written.add(number)
            for state, (kind, timed, plain, spaced) in self._loads(body).items():
                entries[state] = TableSnapshot(StateKind(kind), timed, plain, spaced)
        self._pages[number] = entries
        self._counted[number] = (len(body or b""), _count(entries))
        return entries

    # --- writing ------------------------------------------------------------------------

    def take_over(self, state: str, data: TableData, changes: TableChanges) -> None:
        """Note what changed in one state."""
        values = data.plain.values
        for slot in _touched(changes.plain):
            self._set(state, data, slot, slot, False, values.get(slot, _MISSING))
        values = data.spaced.values
        for slot in _touched(changes.spaced):
            self._set(state, data, slot[0], slot, True, values.get(slot, _MISSING))

    def _set(self, state: str, data: TableData, key: Any, slot: Any, spaced: bool, value: Any) -> None:
        number = self._page_of(key)
        page = self._pages.get(number)
        if page is None:
            page = self._read(number)
        self._changed.add(number)
        entries = page.get(state)
        if entries is None or (entries.kind, entries.timed) != (data.kind, data.timed):
            # of another kind only if the state was empty
            entries = page[state] = TableSnapshot(data.kind, data.timed, {}, {})
        slots = entries.spaced if spaced else entries.plain
        if value is _MISSING:
            slots.pop(slot, None)
        else:
            slots[slot] = value

    def commit(self) -> None:
        """Write the pages that changed, after there are as many as are needed."""
        bodies = self._bodies()
        wanted = self._wanted_buckets()
        if wanted != self._index.buckets:
            self._divide(wanted)
            bodies = self._bodies()
        for number, body in bodies.items():
            if body:
                self._file.write(number, body)
                self._written.add(number)
            elif number in self._written:
                self._file.remove(number)
                self._written.discard(number)
        self._changed.clear()

    def clear(self) -> None:
        """Remove all pages; all were read."""
        for number in self._written:
            self._file.remove(number)
        self._written.clear()

    def _bodies(self) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        index = self._index
        for number in self._changed:
            packed = {
                state: (entries.kind.value, entries.timed, entries.plain, entries.spaced)
                for state, entries in self._pages[number].items()
                if entries.plain or entries.spaced
            }
            body = found[number] = self._dumps(packed) if packed else b""
            before, now = self._counted.get(number, (0, 0)), (len(body), _count(self._pages[number]))
            self._counted[number] = now
            if number == _OWN:
                index.own_bytes = now[0]
            else:
                index.size_bytes += now[0] - before[0]
                index.entries += now[1] - before[1]
        return found

    def _wanted_buckets(self) -> int:
        index = self._index
        # a page has one entry at least, however large that is
        fitting = max(1, min(-(-index.size_bytes // PAGE_BYTES), index.entries))
        if fitting > index.buckets and 2 * index.size_bytes > 3 * index.buckets * PAGE_BYTES:
            return fitting
        if 4 * index.size_bytes < index.buckets * PAGE_BYTES:
            return fitting
        return index.buckets

    def _divide(self, wanted: int) -> None:
        """Have another number of buckets; only pages whose entries move are read."""
        index = self._index
        fewer, more = sorted((index.buckets, wanted))
        new = range(fewer, more)
        moved = {bucket_of(bucket, fewer) for bucket in new}
        if wanted == fewer:
            moved.update(new)
        numbers = sorted(bucket + 1 for bucket in moved)
        taken = [self._pages[n] if n in self._pages else self._read(n) for n in numbers]
        index.buckets = wanted
        self._changed.update(numbers)
        for number in numbers:
            self._pages[number] = {}
        for page in taken:
            for state, entries in page.items():
                for key, value in entries.plain.items():
                    self._placed(key, state, entries).plain[key] = value
                for slot, value in entries.spaced.items():
                    self._placed(slot[0], state, entries).spaced[slot] = value  # type: ignore[index]

    def _placed(self, key: Any, state: str, like: TableSnapshot) -> TableSnapshot:
        number = self._page_of(key)
        self._changed.add(number)
        page = self._pages.setdefault(number, {})
        found = page.get(state)
        if found is None:
            found = page[state] = TableSnapshot(like.kind, like.timed, {}, {})
        return found


def bucket_of(bits: int, buckets: int) -> int:
    """The bucket of a key; with one bucket more only the keys of one bucket move."""
    if buckets == 1:
        return 0
    power = 1 << (buckets - 1).bit_length()
    bucket = bits & (power - 1)
    while bucket >= buckets:
        power >>= 1
        bucket &= power - 1
    return bucket


def _count(page: Entries) -> int:
    return sum(len(entries.plain) + len(entries.spaced) for entries in page.values())


def _touched(changes: CellChanges | None) -> Iterator[Any]:
    if changes is not None:
        yield from changes.put
        yield from changes.removed
        yield from changes.appended
        yield from changes.map_put


_MISSING: Final = object()
