"""What every operator is to the runner of a level, and what the runner gives it.

Flink counterpart: ``StreamOperator`` and its factory; ``OperatorContext`` stands for the services
an operator finds in its ``StreamTask``.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from yarnflow.operators.elements import MIN_WATERMARK_MS, Chunk, Output
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.timers import Timers

if TYPE_CHECKING:
    from yarnflow.operators.functions.runtime_context import RuntimeContext

T = TypeVar("T")


class WatermarkStatus(NamedTuple):
    """How far event time has come, and whether that holds anybody back."""

    #: no element with an earlier time is expected
    watermark_ms: int = MIN_WATERMARK_MS
    #: nothing comes for the time being: others need not wait
    idle: bool = False


class OperatorContext:
    """What an operator can use, given to ``open`` and kept by it.

    The runner moves it from key group to key group and from batch to batch, so operators read
    its attributes whenever they need them.

    Attributes
    ----------
    runtime_context : RuntimeContext
        What users' functions get.
    state : KeyedState or None
        State of this operator in the key group bound at present; the runner of a level always gives
        it, also for what an operator that is not keyed remembers of its own, under the key None.
    timers : Timers or None
        ``state.timers``; None where there is no state.
    current_watermark_ms : int
        Watermark of the operator; already the new one while its timers fire.
    processing_time_ms : int
        Time of the micro-batch, ms since the epoch.
    async_calls : AsyncCalls or None
        Runs coroutines; None where the program has no asynchronous operators.
    """

    def __init__(
        self,
        runtime_context: RuntimeContext,
        state: KeyedState | None,
        async_calls: AsyncCalls | None = None,
        fixed_results: bool = False,
    ) -> None:
        self.runtime_context = runtime_context
        self.async_calls = async_calls
        self.state = state
        self.timers: Timers | None = None if state is None else state.timers
        self.current_watermark_ms = MIN_WATERMARK_MS
        self.processing_time_ms = 0
        #: another group emits the same of broadcast elements, unless it is about the keys of this group
        self.muted = False
        #: what the operator emits is of types that cannot change; else functions may change it later
        self.fixed_results = fixed_results
        #: beginning of the job's run: state with another one is of a time before the job stood still
        self.run_ms = 0


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


@runtime_checkable
class WatermarkOperator(Protocol):
    """An operator behind which another watermark holds than before it."""

    def output_watermark(self, input_watermark_ms: int) -> WatermarkStatus:
        """The watermark behind it; asked once per batch, after the elements; never goes back."""


class AsyncCalls(Protocol):
    """Port to an event loop.  Time limits and pauses are in ms."""

    def run(self, coroutines: Sequence[Coroutine[Any, Any, T]], capacity: int) -> list[tuple[int, T]]:
        """Wait for all, at most ``capacity`` at a time, begun in their order.

        Returns
        -------
        list of (index, result)
            In the order they ended.  The first exception ends them all and is raised.
        """

    async def within(self, coroutine: Coroutine[Any, Any, T], timeout_ms: int) -> T:
        """Wait for a result; TimeoutError when it takes longer.  ``timeout_ms`` 0 = no limit."""

    async def pause(self, ms: int) -> None:
        """Wait."""


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
