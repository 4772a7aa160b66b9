"""Tumbling and sliding windows that fire at their end only: the usual case, done per chunk.

Between two watermarks such windows only collect, so the elements of a chunk are grouped by window
and key first, and state is read and written once for each of these groups.
"""

from __future__ import annotations

from collections import defaultdict
from math import gcd
from typing import Any

from yarnflow.operators.windows.operator.contents import Contents, Group
from yarnflow.operators.windows.operator.evaluation import Evaluation
from yarnflow.operators.windows.operator.per_chunk import Interval, PerChunkOperator
from yarnflow.operators.windows.time_windows import AlignedWindows


class AlignedWindowOperator(PerChunkOperator):
    """Windows of :class:`AlignedWindows` with the assigner's own trigger.

    Parameters are those of the base.
    """

    assigner: AlignedWindows[Any]

    def __init__(
        self,
        assigner: AlignedWindows[Any],
        contents: Contents,
        evaluation: Evaluation,
        allowed_lateness_ms: int,
        late_tag_id: str | None,
        side_outputs: bool,
    ) -> None:
        super().__init__(assigner, contents, evaluation, allowed_lateness_ms, late_tag_id, side_outputs)
        # starts and ends of windows are multiples of it, so elements between two of these multiples
        # are in the same windows
        self._pane_ms = gcd(assigner.size_ms, assigner.slide_ms)

    def add_elements(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        if not self.is_event_time:
            self._add_at(self.context.processing_time_ms, keys, values)
            return
        earliest_ms = min(timestamps)
        if earliest_ms < self._all_open_from_ms():
            self._add_some_late(keys, values, timestamps)
        elif self._pane(earliest_ms) == self._pane(max(timestamps)):
            self._add_at(earliest_ms, keys, values)
        else:
            self._add_open(keys, values, timestamps)

    def _pane(self, timestamp_ms: int) -> int:
        return timestamp_ms - (timestamp_ms - self.assigner.offset_ms) % self._pane_ms

    def _all_open_from_ms(self) -> int:
        """No element from this time on is late, nor in a window whose end the watermark has passed."""
        assigner = self.assigner
        first_open_ms = self.context.current_watermark_ms - assigner.size_ms + 2
        # the earliest start of a window that is open
        start_ms = first_open_ms + (assigner.offset_ms - first_open_ms) % assigner.slide_ms
        return start_ms + max(0, assigner.size_ms - assigner.slide_ms)

    def _add_at(self, moment_ms: int, keys: list[Any], values: list[Any]) -> None:
        """Elements that are all in the windows of one moment, which are open."""
        group: Group = defaultdict(list)
        for key, value in zip(keys, values, strict=True):
            group[key].append(value)
        for window in self._windows_at(moment_ms):
            self._store(window, group)

    def _windows_at(self, moment_ms: int) -> list[Interval]:
        size_ms = self.assigner.size_ms
        return [(start_ms, start_ms + size_ms) for start_ms in self.assigner.starts_at(moment_ms)]

    def _add_open(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        """Elements of several windows, all of which are open."""
        offset_ms, pane_ms = self.assigner.offset_ms, self._pane_ms
        groups: defaultdict[Interval, Group] = defaultdict(_new_group)
        if self.assigner.size_ms == self.assigner.slide_ms:
            by_start: defaultdict[int, Group] = defaultdict(_new_group)
            # elements mostly follow others of the same window
            start_ms = end_ms = 0
            for key, value, timestamp_ms in zip(keys, values, timestamps, strict=True):
                if not start_ms <= timestamp_ms < end_ms:
                    start_ms = timestamp_ms - (timestamp_ms - offset_ms) % pane_ms
                    end_ms = start_ms + pane_ms
                    group = by_start[start_ms]
                group[key].append(value)
            for start_ms, group in by_start.items():
                self._store((start_ms, start_ms + pane_ms), group)
            return
        groups_of: dict[int, list[Group]] = {}
        for key, value, timestamp_ms in zip(keys, values, timestamps, strict=True):
            pane = timestamp_ms - (timestamp_ms - offset_ms) % pane_ms
            if pane not in groups_of:
                groups_of[pane] = [groups[window] for window in self._windows_at(pane)]
            for group in groups_of[pane]:
                group[key].append(value)
        for window, group in groups.items():
            self._store(window, group)

    def _add_some_late(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        """Elements of windows that may be open, past their end, or gone."""
        groups: defaultdict[Interval, Group] = defaultdict(_new_group)
        for key, value, timestamp_ms in zip(keys, values, timestamps, strict=True):
            skipped = True
            for window in self._windows_at(timestamp_ms):
                if self.is_over(window):
                    continue
                skipped = False
                if self.is_open(window):
                    groups[window][key].append(value)
                else:
                    self._store(window, {key: [value]})
                    self.fire(key, window, window)
            if skipped:
                self.add_late(value, timestamp_ms)
        for window, group in groups.items():
            self._store(window, group)

    def _store(self, window: Interval, group: dict[Any, list[Any]]) -> None:
        """Put elements into a window."""
        # a window that has contents has its timers
        for key in self.contents.add_group(window, group):
            self.register(key, window)

    def contents_of(self, key: Any, window: Interval) -> Any:
        return window


def _new_group() -> Group:
    return defaultdict(list)
