"""Assigning event times, and the watermark that follows them.

Flink counterpart: ``TimestampsAndWatermarksOperator``.  A watermark is asked for once per batch, as
Flink asks once per ``pipeline.auto-watermark-interval``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from yarnflow.operators.elements import MAX_WATERMARK_MS, MIN_WATERMARK_MS, Chunk, Output
from yarnflow.operators.functions.base import method_of
from yarnflow.operators.process.contexts import state_of
from yarnflow.operators.process.elementwise import FunctionOperator
from yarnflow.operators.process.operator import Operator, OperatorContext, WatermarkStatus
from yarnflow.operators.process.user_code import noted, shown
from yarnflow.operators.state.kinds import StateKind

_STATE: Final = "watermark"
#: what an assigner is told of an element without a time, as in Flink
NO_TIMESTAMP: Final = MIN_WATERMARK_MS


@dataclass(frozen=True, slots=True)
class TimestampsAndWatermarksDefinition:
    """``assign_timestamps_and_watermarks``.

    Parameters
    ----------
    assigner : object, optional
        TimestampAssigner or function of value and present time; None: elements keep their times.
    out_of_orderness_ms : int or None
        How late elements may come after ones with later times; 0 = never (monotonous); None: no watermarks.
    idle_after_ms : int or None
        Without elements for so long, by the clock, nobody waits for this stream; None = never.
    """

    assigner: Any = None
    out_of_orderness_ms: int | None = 0
    idle_after_ms: int | None = None

    def build(self) -> Operator:
        return TimestampsAndWatermarksOperator(self)


class TimestampsAndWatermarksOperator(FunctionOperator):
    """Gives elements their times and remembers the latest one of the group."""

    def __init__(self, definition: TimestampsAndWatermarksDefinition) -> None:
        super().__init__(definition.assigner)
        self._definition = definition

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._context = context
        self._state, _ = state_of(context)
        # (latest time, the watermark so far, time of the clock of the last elements) and, where that matters,
        # the run of the job it was in
        self._table = self._state.table(_STATE, StateKind.VALUE)
        self._assign = None if self.function is None else method_of(self.function, "extract_timestamp")

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        if self._assign is None and self._definition.out_of_orderness_ms is None:
            # all that is wanted is that the watermarks before end here
            output.emit(chunk)
            return
        times = self._times(chunk)
        latest_ms, watermark_ms, _ = self._remembered()
        try:
            latest_ms = max(latest_ms, max(times))
        except TypeError:
            wrong = next(position for position, time in enumerate(times) if not isinstance(time, int))
            raise TypeError(
                f"operator '{self.name}': the timestamp of element {shown(chunk.values[wrong])} is "
                f"{times[wrong]!r}; a timestamp is a whole number of ms since the epoch"
            ) from None
        self._remember(latest_ms, watermark_ms, self._context.processing_time_ms)
        output.emit(Chunk(chunk.values, list(times)))

    def _times(self, chunk: Chunk) -> list[int]:
        values, before = chunk.values, chunk.timestamps
        if self._assign is None:
            if before is None or None in before:
                missing = 0 if before is None else before.index(None)
                raise TypeError(
                    f"operator '{self.name}': element {shown(values[missing])} has no timestamp; give the "
                    "watermark strategy a timestamp assigner"
                )
            return before  # type: ignore[return-value]
        times: list[int] = []
        assign, value = self._assign, None
        try:
            if before is None:
                append = times.append
                for value in values:
                    append(assign(value, NO_TIMESTAMP))
            else:
                for value, time in zip(values, before, strict=True):
                    times.append(assign(value, NO_TIMESTAMP if time is None else time))
        except Exception as error:
            raise noted(error, self.name, "element", value)
        return times

    def output_watermark(self, input_watermark_ms: int) -> WatermarkStatus:
        """Latest time seen, less what may come late, less one; or the end of the input."""
        definition, now_ms = self._definition, self._context.processing_time_ms
        latest_ms, watermark_ms, last_ms = self._remembered()
        if input_watermark_ms == MAX_WATERMARK_MS:
            watermark_ms = MAX_WATERMARK_MS
        elif definition.out_of_orderness_ms is not None and latest_ms > MIN_WATERMARK_MS:
            watermark_ms = max(watermark_ms, latest_ms - definition.out_of_orderness_ms - 1, MIN_WATERMARK_MS)
        self._remember(latest_ms, watermark_ms, last_ms)
        idle_after_ms = definition.idle_after_ms
        idle = idle_after_ms is not None and now_ms - last_ms >= idle_after_ms
        return WatermarkStatus(watermark_ms, idle and watermark_ms < MAX_WATERMARK_MS)

    def _remembered(self) -> tuple[int, int, int]:
        """Idleness counts from the first batch on, of a group and of a run of the job."""
        now_ms = self._context.processing_time_ms
        start = (MIN_WATERMARK_MS, MIN_WATERMARK_MS, now_ms, *self._run())
        latest_ms, watermark_ms, last_ms, *run = self._table.get(None, None, start)
        return latest_ms, watermark_ms, last_ms if run == self._run() else now_ms

    def _run(self) -> list[int]:
        return [] if self._definition.idle_after_ms is None else [self._context.run_ms]

    def _remember(self, latest_ms: int, watermark_ms: int, last_ms: int) -> None:
        value = (latest_ms, watermark_ms, last_ms, *self._run())
        if value != self._table.get(None, None, None):
            self._table.put(None, value)
