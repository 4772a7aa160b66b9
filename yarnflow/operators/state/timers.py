"""Timers of one operator: what is due is popped in the order of its time.

Timers of one time and operator pop in the order of their registration; registering one that is there
already changes nothing.  Flink counterpart: ``InternalTimerService``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import index
from typing import Any

from yarnflow.errors import InvalidStateUse

#: time in ms since the epoch, key, namespace (None = none)
Timer = tuple[int, Any, Any]


@dataclass(slots=True)
class QueueChanges:
    """Timers added and removed since the last commit, net of each other."""

    added: list[Timer] = field(default_factory=list)
    removed: list[Timer] = field(default_factory=list)


class TimerQueue:
    """Timers of one operator, key group and time domain."""

    __slots__ = ("_by_time", "_times", "_added", "_removed")

    def __init__(self, timers: Iterable[Timer] = ()) -> None:
        #: time → (key, namespace) of its timers, in the order of registration
        self._by_time: dict[int, dict[tuple[Any, Any], None]] = {}
        #: heap of the times; may hold times that have no timers any more
        self._times: list[int] = []
        self.put_back(timers)
        self._added: dict[Timer, None] = {}
        self._removed: dict[Timer, None] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_time.values()))

    def __iter__(self) -> Iterator[Timer]:
        """All timers, in the order they would fire."""
        for timestamp_ms in sorted(self._by_time):
            for key, namespace in self._by_time[timestamp_ms]:
                yield timestamp_ms, key, namespace

    def add(self, timestamp_ms: int, key: Any, namespace: Any) -> None:
        """Register; nothing happens if it is registered."""
        slots = self._by_time.get(timestamp_ms)
        if slots is None:
            slots = self._by_time[timestamp_ms] = {}
            heappush(self._times, timestamp_ms)
        elif (key, namespace) in slots:
            return
        slots[key, namespace] = None
        timer = (timestamp_ms, key, namespace)
        if timer in self._removed:
            del self._removed[timer]
        else:
            self._added[timer] = None

    def remove(self, timestamp_ms: int, key: Any, namespace: Any) -> None:
        """Delete; nothing happens if it is not registered."""
        slots = self._by_time.get(timestamp_ms)
        if slots is not None and (key, namespace) in slots:
            self._pop(timestamp_ms, slots, (key, namespace))

    def put_back(self, timers: Iterable[Timer]) -> None:
        """Take in timers that were committed already, and are no change."""
        for timestamp_ms, key, namespace in timers:
            slots = self._by_time.get(timestamp_ms)
            if slots is None:
                slots = self._by_time[timestamp_ms] = {}
                heappush(self._times, timestamp_ms)
            slots[key, namespace] = None

    def next_ms(self) -> int | None:
        """Time of the earliest timer."""
        times = self._times
        while times and times[0] not in self._by_time:
            heappop(times)
        return times[0] if times else None

    def due(self, until_ms: int) -> Iterator[Timer]:
        """Pop timers up to a time, that included, earliest first.

        All that are due are popped before the first one is given: a timer deleted meanwhile comes all the
        same, and one registered meanwhile comes after them.  PyFlink does so, as it hands due timers to its
        workers together; Flink in Java does not.
        """
        while found := self._pop_due(until_ms):
            yield from found

    def _pop_due(self, until_ms: int) -> list[Timer]:
        found: list[Timer] = []
        while (earliest_ms := self.next_ms()) is not None and earliest_ms <= until_ms:
            slots = self._by_time[earliest_ms]
            for slot in list(slots):
                self._pop(earliest_ms, slots, slot)
                found.append((earliest_ms, *slot))
        return found

    def _pop(self, timestamp_ms: int, slots: dict[tuple[Any, Any], None], slot: tuple[Any, Any]) -> None:
        del slots[slot]
        if not slots:
            del self._by_time[timestamp_ms]
        timer = (timestamp_ms, *slot)
        if timer in self._added:
            del self._added[timer]
        else:
            self._removed[timer] = None

    def changes(self) -> QueueChanges | None:
        """What changed since the last call; None = nothing."""
        if not (self._added or self._removed):
            return None
        found = QueueChanges(list(self._added), list(self._removed))
        self._added, self._removed = {}, {}
        return found

    def apply(self, changes: QueueChanges) -> None:
        """Redo changes of an earlier run."""
        for timer in changes.removed:
            self.remove(*timer)
        for timer in changes.added:
            self.add(*timer)
        self._added, self._removed = {}, {}


@dataclass(slots=True)
class TimerChanges:
    """What changed in the timers of one operator and key group since the last commit."""

    event: QueueChanges | None
    processing: QueueChanges | None


@dataclass(slots=True)
class TimerSnapshot:
    """All timers of one operator and key group."""

    event: list[Timer]
    processing: list[Timer]


class TimerData:
    """Timers of one operator and key group at rest."""

    __slots__ = ("event", "processing")

    def __init__(self, event: TimerQueue, processing: TimerQueue) -> None:
        self.event = event
        self.processing = processing

    @classmethod
    def in_memory(cls, snapshot: TimerSnapshot | None = None) -> TimerData:
        """All of them in memory."""
        if snapshot is None:
            return cls(TimerQueue(), TimerQueue())
        return cls(TimerQueue(snapshot.event), TimerQueue(snapshot.processing))

    def changes(self) -> TimerChanges | None:
        """What changed since the last call; None = nothing."""
        event, processing = self.event.changes(), self.processing.changes()
        return None if event is None and processing is None else TimerChanges(event, processing)

    def apply(self, changes: TimerChanges) -> None:
        """Redo changes of an earlier run."""
        if changes.event is not None:
            self.event.apply(changes.event)
        if changes.processing is not None:
            self.processing.apply(changes.processing)

    def snapshot(self) -> TimerSnapshot:
        """All timers."""
        return TimerSnapshot(list(self.event), list(self.processing))

    @property
    def empty(self) -> bool:
        """No timer at all."""
        return self.event.next_ms() is None and self.processing.next_ms() is None


class Timers:
    """Timers of one operator, in the key group bound at present.

    Times are ms since the epoch.  A timer is identified by its time, key and namespace.
    """

    __slots__ = ("_event", "_processing", "_ended")

    def __init__(self) -> None:
        self.bind(TimerData.in_memory())

    def bind(self, data: TimerData) -> None:
        """Work on the timers of another key group."""
        self._event, self._processing = data.event, data.processing
        self._ended = False

    def register_event_time(self, timestamp_ms: int, key: Any, namespace: Any = None) -> None:
        """Fire when the watermark reaches a time; one in the past fires with the next watermark.

        Raises
        ------
        InvalidStateUse
            The time is no whole number.
        """
        if type(timestamp_ms) is not int:
            timestamp_ms = _whole_ms(timestamp_ms)
        if not self._ended:
            self._event.add(timestamp_ms, key, namespace)

    def delete_event_time(self, timestamp_ms: int, key: Any, namespace: Any = None) -> None:
        """Do not fire."""
        self._event.remove(timestamp_ms, key, namespace)

    def register_processing_time(self, timestamp_ms: int, key: Any, namespace: Any = None) -> None:
        """Fire when the clock reaches a time; raises as :meth:`register_event_time`."""
        if type(timestamp_ms) is not int:
            timestamp_ms = _whole_ms(timestamp_ms)
        if not self._ended:
            self._processing.add(timestamp_ms, key, namespace)

    def delete_processing_time(self, timestamp_ms: int, key: Any, namespace: Any = None) -> None:
        """Do not fire."""
        self._processing.remove(timestamp_ms, key, namespace)

    def due_event_time(self, watermark_ms: int) -> Iterator[Timer]:
        """Pop ``(timestamp_ms, key, namespace)`` up to a watermark, earliest first."""
        return self._event.due(watermark_ms)

    def due_processing_time(self, now_ms: int) -> Iterator[Timer]:
        """Pop ``(timestamp_ms, key, namespace)`` up to a time, earliest first."""
        return self._processing.due(now_ms)

    def end(self) -> None:
        """Register no more until the next :meth:`bind`: the elements of a batch are over."""
        self._ended = True

    def next_event_time_ms(self) -> int | None:
        """When the earliest event timer is due."""
        return self._event.next_ms()

    def next_processing_time_ms(self) -> int | None:
        """When the earliest processing timer is due."""
        return self._processing.next_ms()


def _whole_ms(time: Any) -> int:
    """A time as int, whatever kind of whole number it is."""
    if hasattr(time, "__index__"):
        return index(time)
    if isinstance(time, float) and time.is_integer():
        return int(time)
    raise InvalidStateUse(
        f"the time of a timer is {time!r} ({type(time).__name__}); it must be a whole number of ms since the "
        "epoch"
    )
