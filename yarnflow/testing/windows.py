"""Runs windows by hand, for tests of users' window functions, triggers and assigners.

Nothing moves but what a test moves: elements, the watermark, the clock::

    harness = WindowHarness(
        TumblingEventTimeWindows.of(Time.seconds(5)),
        combine=lambda a, b: (a[0], a[1] + b[1]),
        key_selector=lambda value: value[0],
    )
    harness.process_element(("a", 1), timestamp=1_000)
    harness.process_element(("a", 2), timestamp=4_000)
    harness.process_watermark(4_999)
    assert harness.take_output() == [(("a", 3), 4_999)]

Flink counterpart: ``KeyedOneInputStreamOperatorTestHarness``.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any

from yarnflow.operators.elements import Chunk
from yarnflow.operators.functions.elements import KeySelector
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.runtime_context import TaskInfo, TaskRuntimeContext
from yarnflow.operators.process.operator import OperatorContext
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.store import Changes, GroupStore, Snapshot
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.operator.base import LATE_DROPPED
from yarnflow.operators.windows.operator.definition import WindowDefinition
from yarnflow.operators.windows.operator.evaluation import AnyWindowFunction
from yarnflow.operators.windows.trigger import Trigger


class CollectedOutput:
    """What an operator put out.

    Attributes
    ----------
    main : list of tuple
        ``(value, timestamp)`` in order; timestamps in ms since the epoch, None = none.
    sides : dict
        The same by the id of the side output.
    chunks : int
        Chunks so far.
    """

    def __init__(self) -> None:
        self.main: list[tuple[Any, int | None]] = []
        self.sides: dict[str, list[tuple[Any, int | None]]] = {}
        self.chunks = 0

    def emit(self, chunk: Chunk) -> None:
        self.chunks += 1
        self.main.extend(_pairs(chunk))

    def emit_side(self, tag_id: str, chunk: Chunk) -> None:
        self.sides.setdefault(tag_id, []).extend(_pairs(chunk))


class WindowHarness:
    """Windows with a clock and a watermark of the test's.

    Parameters
    ----------
    assigner, function, combine, trigger, allowed_lateness_ms, late_tag
        As for :class:`~yarnflow.operators.windows.operator.definition.WindowDefinition`: ``combine`` is a
        reduce or aggregate function, ``function`` a window function.
    key_selector : KeySelector or callable, optional
        The key of a value; None: all values have one key, as with ``window_all``.

    Raises
    ------
    GraphError
        These windows cannot be.
    """

    def __init__(
        self,
        assigner: WindowAssigner[Any, Any],
        function: AnyWindowFunction | None = None,
        combine: Any = None,
        trigger: Trigger[Any, Any] | None = None,
        allowed_lateness_ms: int = 0,
        late_tag: OutputTag | None = None,
        key_selector: KeySelector | Callable[[Any], Any] | None = None,
    ) -> None:
        self._definition = WindowDefinition(
            assigner, function, combine, trigger, allowed_lateness_ms, late_tag, side_outputs=True
        )
        self._key_selector = key_selector or (lambda value: 0)
        self._output = CollectedOutput()
        self._saved: list[bytes] = []
        self._start(GroupStore())

    def _start(self, store: GroupStore) -> None:
        self._store = store
        self._state = KeyedState("windows", self._definition.name)
        self._state.bind(store)
        runtime_context = TaskRuntimeContext(TaskInfo(self._definition.name), self._state)
        self._context = OperatorContext(runtime_context, self._state)
        self._operator = self._definition.build()
        self._operator.open(self._context)

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """One element, with its event time in ms since the epoch."""
        self.process_elements([(value, timestamp)])

    def process_elements(self, elements: Iterable[tuple[Any, int | None]]) -> None:
        """Elements that arrive together, as ``(value, timestamp)``."""
        pairs = list(elements)
        values = [value for value, _ in pairs]
        keys = [self._key_selector(value) for value in values]
        self._operator.process(0, Chunk(values, [time for _, time in pairs], keys), self._output)

    def process_watermark(self, watermark_ms: int) -> None:
        """No element with an earlier time is to be expected; one behind the last watermark is ignored."""
        context = self._context
        if watermark_ms <= context.current_watermark_ms:
            return
        context.current_watermark_ms = watermark_ms
        for timestamp_ms, key, namespace in self._state.timers.due_event_time(watermark_ms):
            self._state.current_key = key
            self._operator.on_event_timer(timestamp_ms, key, namespace, self._output)
        self._operator.on_watermark(watermark_ms, self._output)

    def set_processing_time(self, now_ms: int) -> None:
        """The clock shows a time, in ms since the epoch; 0 at first."""
        self._context.processing_time_ms = now_ms
        self._state.set_processing_time(now_ms)
        for timestamp_ms, key, namespace in self._state.timers.due_processing_time(now_ms):
            self._state.current_key = key
            self._operator.on_processing_timer(timestamp_ms, key, namespace, self._output)

    def take_output(self) -> list[tuple[Any, int | None]]:
        """Results since the last call, as ``(value, timestamp)``."""
        taken, self._output.main = self._output.main, []
        return taken

    def take_values(self) -> list[Any]:
        """Results since the last call, without timestamps."""
        return [value for value, _ in self.take_output()]

    def take_side_output(self, tag: OutputTag) -> list[tuple[Any, int | None]]:
        """Elements of a side output since the last call, as ``(value, timestamp)``."""
        return self._output.sides.pop(tag.tag_id, [])

    @property
    def late_dropped(self) -> int:
        """Elements dropped as late since the start, or the last restart."""
        return self._context.runtime_context.get_metrics_group().counter(LATE_DROPPED).get_count()

    def event_time_timers(self) -> list[int]:
        """Times of the timers the watermark will make due, in order."""
        return self._timers(0)

    def processing_time_timers(self) -> list[int]:
        """Times of the timers the clock will make due, in order."""
        return self._timers(1)

    def state_entries(self) -> int:
        """Entries in state, of all keys and windows; 0 where nothing was left behind."""
        tables = self._store.snapshot().tables.values()
        return sum(len(table.plain) + len(table.spaced) for table in tables)

    def restart(self, from_snapshot: bool = False) -> None:
        """Go on in another worker with the state as it was stored.

        Parameters
        ----------
        from_snapshot : bool
            Load the state as a whole, not the changes since the beginning.
        """
        watermark_ms, now_ms = self._context.current_watermark_ms, self._context.processing_time_ms
        self.commit()
        snapshot: Snapshot | None = None
        tail: list[Changes] = []
        if from_snapshot:
            snapshot = pickle.loads(pickle.dumps(self._store.snapshot()))
        else:
            tail = [pickle.loads(saved) for saved in self._saved]
        self._operator.close()
        self._start(GroupStore.load(snapshot, tail))
        self._context.current_watermark_ms = watermark_ms
        self._context.processing_time_ms = now_ms
        self._state.set_processing_time(now_ms)

    def commit(self) -> None:
        """Store what changed since the last commit, as at the end of a batch."""
        self._saved.append(pickle.dumps(self._store.changes()))

    def close(self) -> None:
        """Close the user's function."""
        self._operator.close()

    def _timers(self, domain: int) -> list[int]:
        snapshots = self._store.snapshot().timers.values()
        return sorted(
            timer[0] for timers in snapshots for timer in (timers.event, timers.processing)[domain]
        )


def _pairs(chunk: Chunk) -> list[tuple[Any, int | None]]:
    if chunk.timestamps is None:
        return [(value, None) for value in chunk.values]
    return list(zip(chunk.values, chunk.timestamps, strict=True))
