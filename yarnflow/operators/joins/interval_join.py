"""The join of two keyed streams by an interval of event time.

Each side keeps its elements until the watermark says that nothing of the other side can reach them.  Flink
counterpart: ``IntervalJoinOperator``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from yarnflow.errors import TimestampsMissing
from yarnflow.operators.elements import MIN_WATERMARK_MS, Chunk, Output
from yarnflow.operators.functions.joins import JoinContext
from yarnflow.operators.process.contexts import state_of
from yarnflow.operators.process.elementwise import FunctionOperator
from yarnflow.operators.process.operator import Operator, OperatorContext
from yarnflow.operators.process.results import emit_results
from yarnflow.operators.process.snapshots import extender
from yarnflow.operators.process.user_code import noted, or_wrong_shape
from yarnflow.operators.state.keyed import NO_KEY
from yarnflow.operators.state.kinds import StateKind

LATE_DROPPED: Final = "numLateRecordsDropped"
#: of left and right; time in ms → elements of this time
_STATES: Final = ("left-buffer", "right-buffer")
#: namespace of the timers of each side
_SIDES: Final = ("left", "right")


@dataclass(frozen=True, slots=True)
class IntervalJoinDefinition:
    """Pairs of one key with ``left + lower_ms <= right <= left + upper_ms``.

    Parameters
    ----------
    function : ProcessJoinFunction
    lower_ms, upper_ms : int
        Bounds, both included.
    late_tags : tuple of str or None
        Side outputs of late left and right elements; None: they are dropped and counted.
    side_outputs : bool
        Results that are ``tag, value`` go to the side output of the tag.
    """

    function: Any
    lower_ms: int
    upper_ms: int
    late_tags: tuple[str | None, str | None] = (None, None)
    side_outputs: bool = False

    def build(self) -> Operator:
        return IntervalJoinOperator(self)


class _PairContext(JoinContext):
    """Moved from pair to pair."""

    def __init__(self) -> None:
        self.left_ms = self.right_ms = 0

    def get_left_timestamp(self) -> int:
        return self.left_ms

    def get_right_timestamp(self) -> int:
        return self.right_ms

    def get_timestamp(self) -> int:
        return max(self.left_ms, self.right_ms)


class IntervalJoinOperator(FunctionOperator):
    """Calls ``process_element`` for each pair when its second element comes."""

    def __init__(self, definition: IntervalJoinDefinition) -> None:
        super().__init__(definition.function)
        self._late_tags = definition.late_tags
        self._side_outputs = definition.side_outputs
        lower_ms, upper_ms = definition.lower_ms, definition.upper_ms
        #: of each side: where the other side's elements may be, beside its own time
        self._bounds = ((lower_ms, upper_ms), (-upper_ms, -lower_ms))
        #: of each side: how long after its time an element may be wanted
        self._kept_ms = (max(upper_ms, 0), max(-lower_ms, 0))

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._operator = context
        self.keyed, self._timers = state_of(context)
        self._buffers = [self.keyed.table(name, StateKind.MAP) for name in _STATES]
        self._context = _PairContext()
        self._late = context.runtime_context.get_metrics_group().counter(LATE_DROPPED)

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        assert chunk.keys is not None, "both inputs are keyed"
        times = chunk.timestamps if chunk.timestamps is not None else [None] * len(chunk.values)
        results: list[Any] = []
        result_times: list[int | None] = []
        late = Chunk([], [])
        for key, value, time_ms in zip(chunk.keys, chunk.values, times, strict=True):
            if time_ms is None or time_ms == MIN_WATERMARK_MS:
                raise TimestampsMissing(
                    f"operator '{self.name}': an interval join needs elements with a timestamp, and "
                    f"{value!r} has "
                    "none; call assign_timestamps_and_watermarks() on both streams before"
                )
            if time_ms < self._operator.current_watermark_ms:
                late.values.append(value)
                assert late.timestamps is not None
                late.timestamps.append(time_ms)
                continue
            self._keep(input_index, key, time_ms, value)
            self._pair(input_index, key, time_ms, value, results, result_times)
        self.keyed.current_key = NO_KEY
        if results:
            emit_results(Chunk(results, result_times), self._side_outputs, output)
        if late.values:
            self._emit_late(self._late_tags[input_index], late, output)

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        side = _SIDES.index(namespace)
        self._buffers[side].remove_entry(key, timestamp_ms - self._kept_ms[side])

    def _keep(self, side: int, key: Any, time_ms: int, value: Any) -> None:
        buffer = self._buffers[side]
        known = buffer.get_entry(key, time_ms)
        # a list of its own: the one that is kept may still have to be written
        buffer.put_entry(key, time_ms, [value] if known is None else [*known, value])
        self._timers.register_event_time(time_ms + self._kept_ms[side], key, _SIDES[side])

    def _pair(
        self, side: int, key: Any, time_ms: int, value: Any, results: list[Any], times: list[int | None]
    ) -> None:
        others = self._buffers[1 - side].get(key)
        if not others:
            return
        lower_ms, upper_ms = self._bounds[side]
        first_ms, last_ms = time_ms + lower_ms, time_ms + upper_ms
        context, function = self._context, self.function.process_element
        extend, found = extender(results, self.fixed_results), None
        self.keyed.current_key = key
        # in the order of their time, whatever the order in which they came
        for other_ms in sorted(other_ms for other_ms in others if first_ms <= other_ms <= last_ms):
            context.left_ms, context.right_ms = (other_ms, time_ms) if side else (time_ms, other_ms)
            for other in others[other_ms]:
                try:
                    found = function(other, value, context) if side else function(value, other, context)
                    if found is not None:
                        extend(found)
                except Exception as error:
                    raise noted(or_wrong_shape(error, found), self.name, "element", value) from None
            times += [max(time_ms, other_ms)] * (len(results) - len(times))

    def _emit_late(self, tag_id: str | None, late: Chunk, output: Output) -> None:
        if tag_id is None:
            self._late.inc(len(late.values))
        else:
            output.emit_side(tag_id, late)
