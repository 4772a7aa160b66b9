"""The contexts and timer services that operators hand to users' functions.

One object per operator: the operator sets the element's time before each call, and nothing else.
"""

from __future__ import annotations

from typing import Any

from yarnflow.errors import InvalidStateUse
from yarnflow.operators.elements import MIN_WATERMARK_MS
from yarnflow.operators.functions.process import ElementContext, TimerContext
from yarnflow.operators.functions.time import TimeDomain, TimerService
from yarnflow.operators.process.operator import OperatorContext
from yarnflow.operators.state.handles import no_key
from yarnflow.operators.state.keyed import NO_KEY, KeyedState
from yarnflow.operators.state.timers import Timers


class UnkeyedTimerService(TimerService):
    """Times; timers are refused, since they belong to keys."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def current_processing_time(self) -> int:
        return self._context.processing_time_ms

    def current_watermark(self) -> int:
        return self._context.current_watermark_ms

    def register_processing_time_timer(self, timestamp: int) -> None:
        raise self._refused()

    def register_event_time_timer(self, timestamp: int) -> None:
        raise self._refused()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        raise self._refused()

    def delete_event_time_timer(self, timestamp: int) -> None:
        raise self._refused()

    def _refused(self) -> InvalidStateUse:
        name = self._context.runtime_context.get_task_name()
        return InvalidStateUse(
            f"operator '{name}': timers need a keyed stream; call key_by before it, and use a "
            "KeyedProcessFunction"
        )


class KeyedTimerService(UnkeyedTimerService):
    """Times, and timers of the current key."""

    def __init__(self, context: OperatorContext) -> None:
        super().__init__(context)
        self._keyed, self._timers = state_of(context)

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._timers.register_processing_time(timestamp, self._key())

    def register_event_time_timer(self, timestamp: int) -> None:
        self._timers.register_event_time(timestamp, self._key())

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._timers.delete_processing_time(timestamp, self._key())

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._timers.delete_event_time(timestamp, self._key())

    def _key(self) -> Any:
        key = self._keyed.current_key
        if key is NO_KEY:
            raise no_key(self._keyed, "a timer")
        return key


class ProcessContext(ElementContext):
    """Context of process functions of streams that are not keyed."""

    def __init__(self, context: OperatorContext, timer_service: TimerService | None = None) -> None:
        self.context = context
        #: set by the operator before each call
        self.timestamp_ms: int | None = None
        self._timer_service = UnkeyedTimerService(context) if timer_service is None else timer_service

    def timer_service(self) -> TimerService:
        return self._timer_service

    def timestamp(self) -> int:
        return MIN_WATERMARK_MS if self.timestamp_ms is None else self.timestamp_ms

    def current_processing_time(self) -> int:
        return self.context.processing_time_ms

    def current_watermark(self) -> int:
        return self.context.current_watermark_ms


class KeyedProcessContext(ProcessContext, TimerContext):
    """Context of process functions of keyed streams, also while a timer fires."""

    def __init__(self, context: OperatorContext) -> None:
        super().__init__(context, KeyedTimerService(context))
        self.keyed, _ = state_of(context)
        #: set by the operator before a timer
        self.domain = TimeDomain.EVENT_TIME

    def get_current_key(self) -> Any:
        return self.keyed.current_key

    def time_domain(self) -> TimeDomain:
        return self.domain


def state_of(context: OperatorContext) -> tuple[KeyedState, Timers]:
    """State and timers of a keyed operator.

    Raises
    ------
    InvalidStateUse
        The operator was opened without.
    """
    if context.state is None or context.timers is None:
        name = context.runtime_context.get_task_name()
        raise InvalidStateUse(f"operator '{name}' needs a keyed stream; call key_by before it")
    return context.state, context.timers
