"""Collects what windows evaluate to, so that it travels in chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from yarnflow.operators.elements import MAX_WATERMARK_MS, MIN_WATERMARK_MS, Chunk, Output
from yarnflow.operators.functions.output_tag import OutputTag


class Results:
    """Results of windows not handed on yet."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        #: tag id → values, timestamps
        self._sides: dict[str, tuple[list[Any], list[int | None]]] = {}

    def add(self, results: Iterable[Any], max_timestamp_ms: int, moment_ms: int) -> None:
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
        for result in results:
            if type(result) is tuple and result and isinstance(result[0], OutputTag):
                self.add_side(result[0].tag_id, result[1], timestamp_ms)
            else:
                self._values.append(result)
                self._timestamps.append(timestamp_ms)

    def add_value(self, value: Any, timestamp_ms: int) -> None:
        """One result that is no element of a side output."""
        self._values.append(value)
        self._timestamps.append(timestamp_ms)

    def add_side(self, tag_id: str, value: Any, timestamp_ms: int | None) -> None:
        """An element of a side output."""
        values, timestamps = self._sides.setdefault(tag_id, ([], []))
        values.append(value)
        timestamps.append(timestamp_ms)

    def flush(self, output: Output) -> None:
        """Hand on what there is."""
        if self._values:
            values, timestamps = self._values, self._timestamps
            self._values, self._timestamps = [], []
            output.emit(Chunk(values, timestamps))
        if self._sides:
            sides, self._sides = self._sides, {}
            for tag_id, (values, timestamps) in sides.items():
                output.emit_side(tag_id, Chunk(values, timestamps))
