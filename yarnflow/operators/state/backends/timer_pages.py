"""Timers in pages by time: only pages that are due, or whose timers change, are read.

Each page holds the timers from its first time to the first of the next page; a page that grows is cut in
two.  What there is, and the earliest timer of each page, stands in a small list, so that nothing is read
while no timer is due; what is due is read together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from yarnflow.operators.state.backends.key_pages import PageFile
from yarnflow.operators.state.timers import QueueChanges, Timer, TimerQueue

#: bytes of a page on the average
TIMER_PAGE_BYTES: Final = 8 * 1024


@dataclass(slots=True)
class TimerPage:
    """One page; the first one begins with the first timer there can be."""

    start_ms: int
    number: int
    #: of its timers
    earliest_ms: int
    #: its timers are in the queue
    loaded: bool = False
    written: bool = True


class PagedTimerQueue(TimerQueue):
    """A queue that reads its timers when they are needed.

    Parameters
    ----------
    packed : list of tuple
        What :meth:`packed` gave at the last commit.
    file : PageFile
    dumps, loads : callable
        Pickle's.
    """

    __slots__ = ("_pages", "_starts", "_file", "_dumps", "_loads")

    def __init__(
        self,
        packed: list[tuple[int, int, int]],
        file: PageFile,
        dumps: Callable[[Any], bytes],
        loads: Callable[[bytes], Any],
    ) -> None:
        super().__init__()
        self._pages = [TimerPage(*page) for page in packed]
        self._starts = [page.start_ms for page in self._pages]
        self._file = file
        self._dumps = dumps
        self._loads = loads

    def packed(self) -> list[tuple[int, int, int]]:
        """The list of pages, picklable."""
        return [(page.start_ms, page.number, page.earliest_ms) for page in self._pages]

    def __len__(self) -> int:
        self._load_all()
        return super().__len__()

    def __iter__(self) -> Iterator[Timer]:
        self._load_all()
        return super().__iter__()

    def add(self, timestamp_ms: int, key: Any, namespace: Any) -> None:
        self._load_page_of(timestamp_ms)
        super().add(timestamp_ms, key, namespace)

    def remove(self, timestamp_ms: int, key: Any, namespace: Any) -> None:
        self._load_page_of(timestamp_ms)
        super().remove(timestamp_ms, key, namespace)

    def next_ms(self) -> int | None:
        found, waiting = super().next_ms(), self._first_waiting()
        if waiting is None or (found is not None and found <= waiting.earliest_ms):
            return found
        return waiting.earliest_ms

    def _pop_due(self, until_ms: int) -> list[Timer]:
        for page in self._pages:
            if not page.loaded and page.earliest_ms <= until_ms:
                self._load(page)
        return super()._pop_due(until_ms)

    def _first_waiting(self) -> TimerPage | None:
        return next((page for page in self._pages if not page.loaded), None)

    def _position(self, timestamp_ms: int) -> int:
        return max(0, bisect_right(self._starts, timestamp_ms) - 1)

    def _load_page_of(self, timestamp_ms: int) -> None:
        if self._pages:
            self._load(self._pages[self._position(timestamp_ms)])

    def _load_all(self) -> None:
        for page in self._pages:
            self._load(page)

    def _load(self, page: TimerPage) -> None:
        if page.loaded:
            return
        page.loaded = True
        body = self._file.read(page.number)
        assert body is not None, "the list of pages names it"
        self.put_back(self._loads(body))

    def write(self, changes: QueueChanges) -> None:
        """Write the pages of timers that were added or removed."""
        if not self._pages:
            self._put_page(0, TimerPage(0, 0, 0, loaded=True, written=False))
        changed = {self._position(timer[0]) for timer in (*changes.added, *changes.removed)}
        timers: dict[int, list[Timer]] = {position: [] for position in changed}
        for timer in super().__iter__():
            position = self._position(timer[0])
            if position in changed:
                timers[position].append(timer)
        # from the last on, so that positions stay right while pages come and go
        for position in sorted(changed, reverse=True):
            self._write_page(position, timers[position])

    def _write_page(self, position: int, timers: list[Timer]) -> None:
        page = self._pages[position]
        if not timers:
            if page.written:
                self._file.remove(page.number)
            del self._pages[position], self._starts[position]
            return
        body = self._dumps(timers)
        if len(body) > 2 * TIMER_PAGE_BYTES:
            pieces = _cut(timers, -(-len(timers) * TIMER_PAGE_BYTES // len(body)))
        else:
            pieces = [timers]
        for piece in reversed(pieces[1:]):
            number = max(page.number for page in self._pages) + 1
            new = TimerPage(piece[0][0], number, piece[0][0], loaded=True)
            self._put_page(position + 1, new)
            self._file.write(number, self._dumps(piece))
        page.earliest_ms, page.written = pieces[0][0][0], True
        self._file.write(page.number, body if len(pieces) == 1 else self._dumps(pieces[0]))

    def _put_page(self, position: int, page: TimerPage) -> None:
        self._pages.insert(position, page)
        self._starts.insert(position, page.start_ms)

    def clear(self) -> None:
        """Remove all pages."""
        for page in self._pages:
            if page.written:
                self._file.remove(page.number)
        self._pages, self._starts = [], []


def _cut(timers: list[Timer], most: int) -> list[list[Timer]]:
    """Pieces of about that many timers; those of one time are never parted."""
    pieces: list[list[Timer]] = [[]]
    for timer in timers:
        last = pieces[-1]
        if len(last) >= most and last[-1][0] != timer[0]:
            pieces.append(last := [])
        last.append(timer)
    return pieces
