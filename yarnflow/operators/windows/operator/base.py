"""What the operators of all windows have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from yarnflow.errors import InvariantViolated, TimestampsMissing
from yarnflow.operators.elements import MAX_WATERMARK_MS, MIN_WATERMARK_MS, Chunk, Output
from yarnflow.operators.functions.metrics import Counter
from yarnflow.operators.functions.runtime_context import StateStore
from yarnflow.operators.process.operator import OperatorBase, OperatorContext
from yarnflow.operators.process.user_code import noted
from yarnflow.operators.state.handles import StateHandles
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.timers import Timers
from yarnflow.operators.windows.assigner import MergingWindowAssigner, WindowAssigner
from yarnflow.operators.windows.operator.contents import CONTENTS, Contents
from yarnflow.operators.windows.operator.contexts import NoWindowState
from yarnflow.operators.windows.operator.evaluation import Evaluation
from yarnflow.operators.windows.operator.results import Results

#: counter of elements that came too late for all of their windows
LATE_DROPPED = "numLateRecordsDropped"


class WindowOperatorBase(OperatorBase):
    """Keeps windows by key and fires them.  Flink: ``WindowOperator``.

    Parameters
    ----------
    assigner : WindowAssigner
        Puts elements into windows.
    contents : Contents
        What windows keep.
    evaluation : Evaluation
        What windows evaluate to.
    allowed_lateness_ms : int
        How long windows are kept after the watermark passed their end.
    late_tag_id : str or None
        Side output of late elements; None: they are dropped and counted.
    side_outputs : bool
        Results that are ``tag, value`` go to the side output of the tag.
    """

    context: OperatorContext
    state: KeyedState
    timers: Timers
    late_dropped: Counter

    def __init__(
        self,
        assigner: WindowAssigner[Any, Any],
        contents: Contents,
        evaluation: Evaluation,
        allowed_lateness_ms: int,
        late_tag_id: str | None,
        side_outputs: bool,
    ) -> None:
        self.assigner = assigner
        self.contents = contents
        self.evaluation = evaluation
        self.late_tag_id = late_tag_id
        self.is_event_time = assigner.is_event_time()
        # only the watermark can be late
        self.lateness_ms = allowed_lateness_ms if self.is_event_time else 0
        self.results = Results(side_outputs)

    def open(self, context: OperatorContext) -> None:
        if context.state is None or context.timers is None:
            raise InvariantViolated("windows need keyed state, and this operator was given none")
        self.context, self.state, self.timers = context, context.state, context.timers
        self.results.fixed = context.fixed_results
        self.contents.operator_name = self.state.operator_name
        self.contents.table = self.state.table(CONTENTS, self.contents.kind)
        self.late_dropped = context.runtime_context.get_metrics_group().counter(LATE_DROPPED)
        self._window_state = StateStore(StateHandles(self.state), self.state.operator_name)
        merges = isinstance(self.assigner, MergingWindowAssigner)
        self.evaluation.open(context, NoWindowState() if merges else self._window_state)

    def close(self) -> None:
        self.evaluation.close()

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        keys = chunk.keys
        if keys is None:
            raise InvariantViolated("windows need keyed elements, and these have no keys")
        if not chunk.values:
            return
        self.add_elements(keys, chunk.values, self._timestamps(chunk))
        self.flush(output)

    @abstractmethod
    def add_elements(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        """Put elements, at least one, into their windows.

        Parameters
        ----------
        timestamps : list of int
            Event times in ms since the epoch; -2**63 for elements without one.
        """

    def on_watermark(self, watermark_ms: int, output: Output) -> None:
        self.flush(output)

    def flush(self, output: Output) -> None:
        """Hand on results and late elements."""
        self.results.flush(output, self.late_tag_id)

    def evaluate(self, key: Any, namespace: Any, window: Any, contents_in: Any, moment_ms: int) -> None:
        """Add the results of a window, fired by an element or timer of a moment.

        Parameters
        ----------
        contents_in : object
            Namespace of the window's contents.

        Raises
        ------
        Exception
            The user's function raised it; a note names window and key.
        """
        try:
            contents = self.contents.get(key, contents_in)
            if contents is not None:
                self.enter(key, namespace)
                results = self.evaluation.results(key, window, contents)
                self.results.add_all(results, window.max_timestamp(), moment_ms)
        except Exception as error:
            raise noted(error, self.state.operator_name, f"{window} of key", key) from None

    def enter(self, key: Any, namespace: Any) -> None:
        """Let the user's function see the state of a key and window."""
        self.state.current_key = key
        self._window_state.set_namespace(namespace)

    def cleanup_ms(self, max_timestamp_ms: int) -> int:
        """When a window that ends at a time is forgotten."""
        return min(max_timestamp_ms + self.lateness_ms, MAX_WATERMARK_MS)

    def add_late(self, value: Any, timestamp_ms: int) -> None:
        """An element that belongs to no window there still is."""
        if timestamp_ms + self.lateness_ms > self.context.current_watermark_ms:
            return  # not late: its assigner gave it no window
        if self.late_tag_id is None:
            self.late_dropped.inc()
        else:
            self.results.add_late(value, timestamp_ms)

    def _timestamps(self, chunk: Chunk) -> list[int]:
        timestamps = chunk.timestamps
        if timestamps is not None and None not in timestamps:
            return timestamps  # type: ignore[return-value]
        if not self.is_event_time:
            if timestamps is None:
                return [MIN_WATERMARK_MS] * len(chunk.values)
            return [MIN_WATERMARK_MS if time is None else time for time in timestamps]
        value = chunk.values[0 if timestamps is None else timestamps.index(None)]
        raise TimestampsMissing(
            f"operator '{self.state.operator_name}': {type(self.assigner).__name__} needs elements with a "
            f"timestamp, and {value!r} has none; call assign_timestamps_and_watermarks() on the stream before"
        )
