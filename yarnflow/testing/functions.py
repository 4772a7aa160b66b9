"""Runs users' functions by hand, for their tests: process functions and all others of streams.

Nothing moves but what a test moves: elements, the watermark, the clock::

    harness = KeyedProcessHarness(CountPerUser(), key_selector=lambda event: event["user"])
    harness.process_element({"user": "a"}, timestamp=1_000)
    harness.process_watermark(60_000)
    assert harness.take_output() == [(("a", 1), 60_000)]

Flink counterpart: ``ProcessFunctionTestHarnesses``.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any

from yarnflow.operators.elements import Chunk
from yarnflow.operators.functions.base import method_of, open_function
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.runtime_context import TaskInfo, TaskRuntimeContext
from yarnflow.operators.process.broadcast import BroadcastProcessDefinition, KeyedBroadcastProcessDefinition
from yarnflow.operators.process.operator import AsyncCalls, OperatorContext, OperatorDefinition
from yarnflow.operators.process.process_elements import KeyedProcessDefinition, ProcessDefinition
from yarnflow.operators.process.two_inputs import CoProcessDefinition, KeyedCoProcessDefinition
from yarnflow.operators.state.entries import entries_of
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.store import GroupStore, Snapshot

Selector = Callable[[Any], Any]


class CollectedElements:
    """What an operator emitted.

    Attributes
    ----------
    main : list of tuple
        ``(value, timestamp)`` in order; timestamps in ms since the epoch, None = none.
    sides : dict
        The same by the id of the side output.
    """

    def __init__(self) -> None:
        self.main: list[tuple[Any, int | None]] = []
        self.sides: dict[str, list[tuple[Any, int | None]]] = {}

    def emit(self, chunk: Chunk) -> None:
        self.main.extend(_pairs(chunk))

    def emit_side(self, tag_id: str, chunk: Chunk) -> None:
        self.sides.setdefault(tag_id, []).extend(_pairs(chunk))


class OperatorHarness:
    """One operator with a clock and a watermark of the test's; base of the others.

    Parameters
    ----------
    definition : OperatorDefinition
        What to run.
    key_selectors : sequence of callables or KeySelectors
        One per keyed input, in order; None for one that is not keyed.  Empty: no input is.
    name : str, optional
        What messages call the operator.
    job_parameters : dict of str, optional
        ``RuntimeContext.get_job_parameter``.
    async_calls : AsyncCalls, optional
        For asynchronous functions.
    """

    def __init__(
        self,
        definition: OperatorDefinition,
        key_selectors: Iterable[Any] = (),
        *,
        name: str = "harness",
        job_parameters: dict[str, str] | None = None,
        async_calls: AsyncCalls | None = None,
    ) -> None:
        self._definition = definition
        self._selectors = [
            None if selector is None else (selector, method_of(selector, "get_key"))
            for selector in key_selectors
        ]
        self._info = TaskInfo(name, job_parameters=job_parameters or {})
        self._async_calls = async_calls
        self._output = CollectedElements()
        self._start(GroupStore())

    def _start(self, store: GroupStore) -> None:
        self._store = store
        self._state = KeyedState(self._info.task_name)
        self._state.bind(store)
        keyed = any(selector is not None for selector in self._selectors)
        self.runtime_context = TaskRuntimeContext(self._info, self._state if keyed else None)
        self._context = OperatorContext(self.runtime_context, self._state, self._async_calls)
        for selector in self._selectors:
            if selector is not None:
                open_function(selector[0], self.runtime_context)
        self._operator = self._definition.build()
        self._operator.open(self._context)

    # --- what the test moves -------------------------------------------------------------

    def process_element(self, value: Any, timestamp: int | None = None, input_index: int = 0) -> None:
        """One element, with its event time in ms since the epoch."""
        self.process_elements([(value, timestamp)], input_index)

    def process_elements(self, elements: Iterable[tuple[Any, int | None]], input_index: int = 0) -> None:
        """Elements that arrive together, as ``(value, timestamp)``."""
        pairs = list(elements)
        values = [value for value, _ in pairs]
        times: list[int | None] | None = [time for _, time in pairs]
        if all(time is None for _, time in pairs):
            times = None
        selector = self._selectors[input_index] if input_index < len(self._selectors) else None
        keys = None if selector is None else [selector[1](value) for value in values]
        self._operator.process(input_index, Chunk(values, times, keys), self._output)

    def process_watermark(self, watermark_ms: int) -> None:
        """No element with an earlier time is to be expected; one behind the last watermark is ignored."""
        if watermark_ms <= self._context.current_watermark_ms:
            return
        self._context.current_watermark_ms = watermark_ms
        for timer in self._state.timers.due_event_time(watermark_ms):
            self._operator.on_event_timer(*timer, self._output)
        self._operator.on_watermark(watermark_ms, self._output)

    def set_processing_time(self, now_ms: int) -> None:
        """The clock shows a time, in ms since the epoch; 0 at first."""
        self._context.processing_time_ms = now_ms
        self._state.set_processing_time(now_ms)
        for timer in self._state.timers.due_processing_time(now_ms):
            self._operator.on_processing_timer(*timer, self._output)

    # --- what the test looks at ----------------------------------------------------------

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

    def event_time_timers(self) -> list[tuple[int, Any]]:
        """``(time, key)`` of the timers the watermark will make due, earliest first."""
        return [(time, key) for timers in self._timers() for time, key, _ in timers.event]

    def processing_time_timers(self) -> list[tuple[int, Any]]:
        """``(time, key)`` of the timers the clock will make due, earliest first."""
        return [(time, key) for timers in self._timers() for time, key, _ in timers.processing]

    def _timers(self) -> Iterable[Any]:
        return self._store.snapshot().timers.values()

    def state_of(self, name: str, key: Any) -> Any:
        """What a state holds for a key: a value, a list, a dict, or None.

        What has expired is removed first, as at the end of a micro-batch: maps with all of their entries.
        """
        self._state.clean_up()
        for entry in entries_of(self._store.snapshot()):
            if entry.state == name and entry.key == key and entry.namespace is None:
                return entry.value
        return None

    def state_entries(self) -> int:
        """Entries in state, of all states and keys; 0 where nothing was left behind.

        What has expired is removed first, as at the end of a micro-batch.
        """
        self._state.clean_up()
        return sum(len(table.plain) + len(table.spaced) for table in self._store.snapshot().tables.values())

    def metrics(self) -> dict[str, Any]:
        """Metrics of the function by name."""
        return self.runtime_context.metrics.read()

    # --- life ----------------------------------------------------------------------------

    def restart(self) -> None:
        """Go on in another worker with the state as it was stored; the function is opened again."""
        watermark_ms, now_ms = self._context.current_watermark_ms, self._context.processing_time_ms
        snapshot: Snapshot = pickle.loads(pickle.dumps(self._store.snapshot()))
        self._operator.close()
        self._start(GroupStore.load(snapshot))
        self._context.current_watermark_ms, self._context.processing_time_ms = watermark_ms, now_ms
        self._state.set_processing_time(now_ms)

    def close(self) -> None:
        """Close the user's function."""
        self._operator.close()


class ProcessHarness(OperatorHarness):
    """Runs a ProcessFunction."""

    def __init__(self, function: Any, **options: Any) -> None:
        super().__init__(ProcessDefinition(function, True), **options)


class KeyedProcessHarness(OperatorHarness):
    """Runs a KeyedProcessFunction."""

    def __init__(self, function: Any, key_selector: Any, **options: Any) -> None:
        super().__init__(KeyedProcessDefinition(function, True), (key_selector,), **options)


class TwoInputHarness(OperatorHarness):
    """An operator of two streams."""

    def process_element1(self, value: Any, timestamp: int | None = None) -> None:
        """One element of the first stream."""
        self.process_element(value, timestamp, 0)

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """One element of the second stream."""
        self.process_element(value, timestamp, 1)


class CoProcessHarness(TwoInputHarness):
    """Runs a CoProcessFunction."""

    def __init__(self, function: Any, **options: Any) -> None:
        super().__init__(CoProcessDefinition(function, True), **options)


class KeyedCoProcessHarness(TwoInputHarness):
    """Runs a KeyedCoProcessFunction."""

    def __init__(self, function: Any, key_selector1: Any, key_selector2: Any, **options: Any) -> None:
        definition = KeyedCoProcessDefinition(function, True)
        super().__init__(definition, (key_selector1, key_selector2), **options)


class BroadcastHarness(TwoInputHarness):
    """Runs a BroadcastProcessFunction, or with a key selector a KeyedBroadcastProcessFunction."""

    def __init__(self, function: Any, key_selector: Any = None, **options: Any) -> None:
        keyed = key_selector is not None
        make = KeyedBroadcastProcessDefinition if keyed else BroadcastProcessDefinition
        super().__init__(make(function, True), (key_selector, None), **options)

    def process_broadcast_element(self, value: Any, timestamp: int | None = None) -> None:
        """One element of the broadcast stream."""
        self.process_element(value, timestamp, 1)


def _pairs(chunk: Chunk) -> list[tuple[Any, int | None]]:
    if chunk.timestamps is None:
        return [(value, None) for value in chunk.values]
    return list(zip(chunk.values, chunk.timestamps, strict=True))
