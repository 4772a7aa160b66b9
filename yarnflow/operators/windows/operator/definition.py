"""What a program says of its windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from yarnflow.errors import GraphError
from yarnflow.operators.functions.elements import AggregateFunction, ReduceFunction
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.process.operator import Operator
from yarnflow.operators.windows.assigner import MergingWindowAssigner, WindowAssigner
from yarnflow.operators.windows.count_windows import CountedWindows
from yarnflow.operators.windows.operator.aligned import AlignedWindowOperator
from yarnflow.operators.windows.operator.contents import (
    AggregatedContents,
    Contents,
    ElementContents,
    ReducedContents,
)
from yarnflow.operators.windows.operator.evaluation import (
    AnyWindowFunction,
    Evaluation,
    check_window_function,
)
from yarnflow.operators.windows.operator.general import WindowOperator
from yarnflow.operators.windows.operator.per_chunk import PerChunkOperator
from yarnflow.operators.windows.operator.sessions import SessionOperator
from yarnflow.operators.windows.session_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from yarnflow.operators.windows.time_windows import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from yarnflow.operators.windows.trigger import Trigger
from yarnflow.operators.windows.triggers import CountTrigger, EventTimeTrigger, ProcessingTimeTrigger

#: assigner → trigger with which its windows are handled per chunk, and by which operator
_PER_CHUNK: dict[type[WindowAssigner[Any, Any]], tuple[type[Trigger[Any, Any]], type[PerChunkOperator]]] = {
    TumblingEventTimeWindows: (EventTimeTrigger, AlignedWindowOperator),
    SlidingEventTimeWindows: (EventTimeTrigger, AlignedWindowOperator),
    EventTimeSessionWindows: (EventTimeTrigger, SessionOperator),
    DynamicEventTimeSessionWindows: (EventTimeTrigger, SessionOperator),
    TumblingProcessingTimeWindows: (ProcessingTimeTrigger, AlignedWindowOperator),
    SlidingProcessingTimeWindows: (ProcessingTimeTrigger, AlignedWindowOperator),
    ProcessingTimeSessionWindows: (ProcessingTimeTrigger, SessionOperator),
    DynamicProcessingTimeSessionWindows: (ProcessingTimeTrigger, SessionOperator),
}


@dataclass(frozen=True)
class WindowDefinition:
    """Windows of a keyed stream, and what is made of each.

    Flink: what a ``WindowedStream`` collects until ``reduce``, ``aggregate``, ``apply`` or
    ``process``.  Windows over a whole stream are windows over a stream with one key.

    Parameters
    ----------
    assigner : WindowAssigner
        Puts elements into windows.
    function : AnyWindowFunction, optional
        Makes the results of a window; None: the combined value is the result.
    combine : ReduceFunction or AggregateFunction or callable, optional
        Combines elements as they come, so that ``function`` sees one value; None: windows keep
        all elements.
    trigger : Trigger, optional
        Says when windows are evaluated; None: the assigner's own.
    allowed_lateness_ms : int
        How long windows of event time are kept after the watermark passed their end.
    late_tag : OutputTag, optional
        Side output of elements that come later than that; None: they are dropped and counted.
    side_outputs : bool
        Somebody reads a side output of the function's, so results are looked at; else ``tag, value``
        is a result like any other.

    Raises
    ------
    GraphError
        Windows merge and the trigger does not, or there is nothing to evaluate windows with.
    """

    assigner: WindowAssigner[Any, Any]
    function: AnyWindowFunction | None = None
    combine: ReduceFunction | AggregateFunction | Callable[[Any, Any], Any] | None = None
    trigger: Trigger[Any, Any] | None = None
    allowed_lateness_ms: int = 0
    late_tag: OutputTag | None = None
    side_outputs: bool = False

    def __post_init__(self) -> None:
        check_window_function(self.function)
        if self.function is None and self.combine is None:
            raise GraphError(
                f"{self.name}: no function for its windows; call reduce, aggregate, apply or process"
            )
        combine = self.combine
        if not (combine is None or isinstance(combine, AggregateFunction) or callable(combine)):
            raise GraphError(
                f"{self.name}: {type(combine).__name__} combines no elements; give a ReduceFunction, a "
                "function of two elements or an AggregateFunction"
            )
        if self.allowed_lateness_ms < 0:
            raise GraphError(f"{self.name}: allowed lateness of {self.allowed_lateness_ms} ms is below 0")
        if isinstance(self.assigner, MergingWindowAssigner) and not self.used_trigger.can_merge():
            raise GraphError(
                f"{self.name} merges windows, and {type(self.used_trigger).__name__} does not support that; "
                "use a trigger whose can_merge() is true"
            )

    @property
    def name(self) -> str:
        """Name of the operator, as Flink shows it."""
        return type(self.assigner).__name__

    @property
    def used_trigger(self) -> Trigger[Any, Any]:
        """The trigger that was given, or the assigner's own."""
        return self.assigner.get_default_trigger(None) if self.trigger is None else self.trigger

    def description(self, kind: str = "Window") -> str:
        """The operator in a line, as Flink shows it; ``kind`` is ``Window`` or ``AllWindow``."""
        functions = [type(given).__name__ for given in (self.combine, self.function) if given is not None]
        return f"{kind}({self.assigner}, {type(self.used_trigger).__name__}, {', '.join(functions)})"

    def build(self) -> Operator:
        """The operator."""
        assigner, trigger = self.assigner, self.used_trigger
        contents = _contents(self.combine)
        evaluation = Evaluation(self.function, single=self.combine is not None)
        late_tag_id = None if self.late_tag is None else self.late_tag.tag_id
        usual_trigger, per_chunk = _PER_CHUNK.get(type(assigner), (None, None))
        if per_chunk is not None and usual_trigger is type(trigger):
            return per_chunk(
                assigner, contents, evaluation, self.allowed_lateness_ms, late_tag_id, self.side_outputs
            )
        return WindowOperator(
            assigner,
            trigger,
            contents,
            evaluation,
            self.allowed_lateness_ms,
            late_tag_id,
            self.side_outputs,
            purge_fired=isinstance(assigner, CountedWindows)
            and type(trigger) is CountTrigger
            and trigger.window_size == assigner.window_size,
        )


def _contents(combine: Any) -> Contents:
    if combine is None:
        return ElementContents()
    if isinstance(combine, AggregateFunction):
        return AggregatedContents(combine)
    return ReducedContents(combine.reduce if isinstance(combine, ReduceFunction) else combine)
