"""What every operator is to the runner of a level, and what the runner gives it.

Flink counterpart: ``StreamOperator`` and its factory; ``OperatorContext`` stands for the services
an operator finds in its ``StreamTask``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from yarnflow.operators.elements import MIN_WATERMARK_MS, Chunk, Output
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.timers import Timers

if TYPE_CHECKING:
    from yarnflow.operators.functions.runtime_context import RuntimeContext


class OperatorContext:
    """What an operator can use, given to ``open`` and kept by it.

    The runner moves it from key group to key group and from batch to batch, so operators read
    its attributes whenever they need them.

    Attributes
    ----------
    runtime_context : RuntimeContext
        What users' functions get.
    state : KeyedState or None
        State of this operator in the key group bound at present; None in level 0, which is stateless.
    timers : Timers or None
        ``state.timers``; None where there is no state.
    current_watermark_ms : int
        Watermark of the operator; already the new one while its timers fire.
    processing_time_ms : int
        Time of the machine, ms since the epoch, set once per chunk.
    """

    def __init__(self, runtime_context: RuntimeContext, state: KeyedState | None) -> None:
        self.runtime_context = runtime_context
        self.state = state
        self.timers: Timers | None = None if state is None else state.timers
        self.current_watermark_ms = MIN_WATERMARK_MS
        self.processing_time_ms = 0


class Operator(Protocol):
    """One operator of a program in one worker.

    Lives as long as the worker keeps the level: ``open`` once, then any number of batches of any
    key groups, then ``close``.  So it keeps nothing of a key group but in its state.
    """

    def open(self, context: OperatorContext) -> None:
        """Prepare; register state."""

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        """Handle elements of one input, numbered from 0; ``chunk.keys`` is there if the input is keyed."""

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        """The watermark reached a timer's time."""

    def on_processing_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        """The clock reached a timer's time."""

    def on_watermark(self, watermark_ms: int, output: Output) -> None:
        """The watermark advanced, and the timers it made due have fired."""

    def close(self) -> None:
        """Let go of what ``open`` took."""


class OperatorDefinition(Protocol):
    """What a program ships of an operator: plain values and the user's function."""

    def build(self) -> Operator:
        """The operator; runs in the worker."""


class OperatorBase:
    """An operator that does nothing; operators override what they need."""

    def open(self, context: OperatorContext) -> None:
        """Nothing to prepare."""

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        """Drop the elements."""

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        """No timers."""

    def on_processing_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        """No timers."""

    def on_watermark(self, watermark_ms: int, output: Output) -> None:
        """Nothing waits for it."""

    def close(self) -> None:
        """Nothing to let go of."""
