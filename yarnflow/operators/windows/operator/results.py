"""Collects what windows evaluate to, so that it travels in chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from yarnflow.operators.elements import MAX_WATERMARK_MS, MIN_WATERMARK_MS, Chunk, Output
from yarnflow.operators.process.results import emit_results
from yarnflow.operators.process.snapshots import extender, snapshot


class Results:
    """Results of windows, and late elements, not handed on yet.

    Parameters
    ----------
    side_outputs : bool
        Results that are ``tag, value`` go to the side output of the tag.
    """

    def __init__(self, side_outputs: bool) -> None:
        self._side_outputs = side_outputs
        #: results are of types that cannot change
        self.fixed = False
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._late_values: list[Any] = []
        self._late_timestamps: list[int | None] = []

    def add_all(self, results: Iterable[Any], max_timestamp_ms: int, moment_ms: int) -> None:
        """Results of a window.

        Parameters
        ----------
        max_timestamp_ms : int
            The window's; the timestamp of the results, if any time ends the window at all.
        moment_ms : int
            Timestamp of the element or timer that made the window fire; that of the results else.
            -2**63: the element had none, so results have none.
        """
        timestamp_ms: int | None = max_timestamp_ms
        if max_timestamp_ms >= MAX_WATERMARK_MS:
            timestamp_ms = None if moment_ms == MIN_WATERMARK_MS else moment_ms
        before = len(self._values)
        extender(self._values, self.fixed)(results)
        self._timestamps.extend([timestamp_ms] * (len(self._values) - before))

    def add(self, value: Any, timestamp_ms: int) -> None:
        """One result."""
        self._values.append(value if self.fixed else snapshot(value))
        self._timestamps.append(timestamp_ms)

    def add_late(self, value: Any, timestamp_ms: int) -> None:
        """An element that goes to the side output of late ones."""
        self._late_values.append(value)
        self._late_timestamps.append(timestamp_ms)

    def flush(self, output: Output, late_tag_id: str | None) -> None:
        """Hand on what there is."""
        if self._values:
            chunk = Chunk(self._values, self._timestamps)
            self._values, self._timestamps = [], []
            emit_results(chunk, self._side_outputs, output)
        if self._late_values and late_tag_id is not None:
            late = Chunk(self._late_values, self._late_timestamps)
            self._late_values, self._late_timestamps = [], []
            output.emit_side(late_tag_id, late)
