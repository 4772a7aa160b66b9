"""Windows as one would write them down: every element of every window is kept, nothing is clever.

What the operator does is compared with this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: key, value, event time in ms
Element = tuple[Any, Any, int]


@dataclass
class Pane:
    """Elements of one key and window."""

    key: Any
    start: int
    end: int
    values: list[Any] = field(default_factory=list)

    @property
    def result(self) -> tuple[Any, int, int, list[Any]]:
        return (self.key, self.start, self.end, sorted(self.values))


class Model:
    """Sliding windows; tumbling ones are those whose slide is their size.

    Attributes
    ----------
    fired : list
        Results in the order they come in, those of one watermark sorted.
    late : list
        Elements that came too late.
    """

    def __init__(self, lateness: int) -> None:
        self.lateness = lateness
        self.watermark = -(2**63)
        self.panes: list[Pane] = []
        self.fired: list[Any] = []
        self.late: list[Any] = []

    def over(self, end: int) -> bool:
        return end - 1 + self.lateness <= self.watermark

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        fired = [pane.result for pane in self.panes if self.watermark < pane.end - 1 <= watermark]
        self.fired.extend(sorted(fired, key=lambda result: (result[2], repr(result))))
        self.watermark = watermark
        self.panes = [pane for pane in self.panes if not self.over(pane.end)]

    def add_to(self, pane: Pane, value: Any) -> None:
        pane.values.append(value)
        if pane.end - 1 <= self.watermark:
            self.fired.append(pane.result)


class SlidingModel(Model):
    def __init__(self, size: int, slide: int, offset: int, lateness: int) -> None:
        super().__init__(lateness)
        self.size, self.slide, self.offset = size, slide, offset

    def add(self, key: Any, value: Any, timestamp: int) -> None:
        added = False
        for start in range(timestamp, timestamp - self.size, -1):
            if (start - self.offset) % self.slide or self.over(start + self.size):
                continue
            added = True
            found = [pane for pane in self.panes if (pane.key, pane.start) == (key, start)]
            if not found:
                found = [Pane(key, start, start + self.size)]
                self.panes.extend(found)
            self.add_to(found[0], value)
        if not added and timestamp + self.lateness <= self.watermark:
            self.late.append(value)


class SessionModel(Model):
    def add(self, key: Any, value: Any, timestamp: int, gap: int) -> None:
        pane = Pane(key, timestamp, timestamp + gap)
        touched = [
            other
            for other in self.panes
            if other.key == key and other.start <= pane.end and pane.start <= other.end
        ]
        for other in touched:
            pane.start, pane.end = min(pane.start, other.start), max(pane.end, other.end)
            pane.values.extend(other.values)
        if self.over(pane.end):
            if timestamp + self.lateness <= self.watermark:
                self.late.append(value)
            return
        self.panes = [other for other in self.panes if other not in touched] + [pane]
        self.add_to(pane, value)
