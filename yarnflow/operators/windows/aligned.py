"""Tumbling and sliding windows that fire at their end only: the usual case, done per chunk.

Between two watermarks such windows only collect, so the elements of a chunk are grouped by window
and key first, and state is read and written once for each of these groups.
"""

from __future__ import annotations

from collections import defaultdict
from math import gcd
from typing import Any

from yarnflow.operators.elements import MAX_WATERMARK_MS, Output
from yarnflow.operators.windows.base import WindowOperatorBase
from yarnflow.operators.windows.contents import Contents, Group
from yarnflow.operators.windows.evaluation import Evaluation
from yarnflow.operators.windows.time_windows import AlignedWindows
from yarnflow.operators.windows.window import TimeWindow


class AlignedWindowOperator(WindowOperatorBase):
    """Windows of :class:`AlignedWindows` with the assigner's own trigger.

    Parameters are those of :class:`WindowOperatorBase`.
    """

    assigner: AlignedWindows[Any]

    def __init__(
        self,
        assigner: AlignedWindows[Any],
        contents: Contents,
        evaluation: Evaluation,
        allowed_lateness_ms: int,
        late_tag_id: str | None,
    ) -> None:
        super().__init__(assigner, contents, evaluation, allowed_lateness_ms, late_tag_id)
        # starts and ends of windows are multiples of it, so elements between two of these multiples
        # are in the same windows
        self._pane_ms = gcd(assigner.size_ms, assigner.slide_ms)

    def add_elements(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        if not values:
            return
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
        for start_ms in self.assigner.starts_at(moment_ms):
            self._store(start_ms, group)

    def _add_open(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        """Elements of several windows, all of which are open."""
        offset_ms, pane_ms = self.assigner.offset_ms, self._pane_ms
        groups: defaultdict[int, Group] = defaultdict(_new_group)
        if self.assigner.size_ms == self.assigner.slide_ms:
            for key, value, timestamp_ms in zip(keys, values, timestamps, strict=True):
                groups[timestamp_ms - (timestamp_ms - offset_ms) % pane_ms][key].append(value)
        else:
            groups_of: dict[int, list[Group]] = {}
            for key, value, timestamp_ms in zip(keys, values, timestamps, strict=True):
                pane = timestamp_ms - (timestamp_ms - offset_ms) % pane_ms
                if pane not in groups_of:
                    groups_of[pane] = [groups[start_ms] for start_ms in self.assigner.starts_at(pane)]
                for group in groups_of[pane]:
                    group[key].append(value)
        for start_ms, group in groups.items():
            self._store(start_ms, group)

    def _add_some_late(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        """Elements of windows that may be open, past their end, or gone."""
        groups: defaultdict[int, Group] = defaultdict(_new_group)
        for key, value, timestamp_ms in zip(keys, values, timestamps, strict=True):
            skipped = True
            for start_ms in self.assigner.starts_at(timestamp_ms):
                max_timestamp_ms = start_ms + self.assigner.size_ms - 1
                if self.cleanup_ms(max_timestamp_ms) <= self.context.current_watermark_ms:
                    continue
                skipped = False
                if max_timestamp_ms > self.context.current_watermark_ms:
                    groups[start_ms][key].append(value)
                else:  # past its end: evaluated again with each element
                    self._store(start_ms, {key: [value]})
                    self._fire(key, (start_ms, max_timestamp_ms + 1))
            if skipped:
                self.add_late(value, timestamp_ms)
        for start_ms, group in groups.items():
            self._store(start_ms, group)

    def _store(self, start_ms: int, group: dict[Any, list[Any]]) -> None:
        """Put elements into the window of this start."""
        end_ms = start_ms + self.assigner.size_ms
        namespace = (start_ms, end_ms)
        timers = self.timers
        register = timers.register_event_time if self.is_event_time else timers.register_processing_time
        cleanup_ms = self.cleanup_ms(end_ms - 1)
        fires = not self.is_event_time or end_ms - 1 > self.context.current_watermark_ms
        # a window that has contents has its timers
        for key in self.contents.add_group(namespace, group):
            if fires:
                register(end_ms - 1, key, namespace)
            if cleanup_ms < MAX_WATERMARK_MS and not (fires and cleanup_ms == end_ms - 1):
                register(cleanup_ms, key, namespace)

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        if self.is_event_time:
            self._on_timer(timestamp_ms, key, namespace)

    def on_processing_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        if not self.is_event_time:
            self._on_timer(timestamp_ms, key, namespace)
            self.results.flush(output)

    def _on_timer(self, timestamp_ms: int, key: Any, namespace: tuple[int, int]) -> None:
        max_timestamp_ms = namespace[1] - 1
        if timestamp_ms == max_timestamp_ms:
            self._fire(key, namespace)
        if timestamp_ms == self.cleanup_ms(max_timestamp_ms):
            self.contents.clear(key, namespace)
            if self.evaluation.clears:
                self.enter(key, namespace)
                self.evaluation.clear(TimeWindow(*namespace))

    def _fire(self, key: Any, namespace: tuple[int, int]) -> None:
        contents = self.contents.get(key, namespace)
        if contents is None:
            return
        max_timestamp_ms = namespace[1] - 1
        if self.evaluation.function is None:
            self.results.add_value(contents, max_timestamp_ms)
        else:
            self.enter(key, namespace)
            results = self.evaluation.results(key, TimeWindow(*namespace), contents)
            self.results.add(results, max_timestamp_ms, max_timestamp_ms)


def _new_group() -> Group:
    return defaultdict(list)
