"""One operator in its level: what it emits goes on, what it was given and emitted is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from yarnflow.operators.elements import MAX_WATERMARK_MS, Chunk
from yarnflow.operators.functions.measures import OperatorMeasures, UserMetricsReader
from yarnflow.operators.functions.metrics import RecordedMetrics
from yarnflow.operators.functions.runtime_context import TaskInfo, TaskRuntimeContext
from yarnflow.operators.process.operator import (
    AsyncCalls,
    Operator,
    OperatorContext,
    OperatorDefinition,
    WatermarkOperator,
    WatermarkStatus,
)
from yarnflow.operators.process.user_code import placed
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.key_groups import subtask_of_group
from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.operators.task.plan import JobInfo, OperatorPlan

Deliver = Callable[[Chunk], None]

#: chunks emitted by timers that are put together before they go on
_TIMER_CHUNKS: Final = 5_000


class OperatorOutput:
    """Collects what an operator emits until it returns, so that small chunks become one."""

    __slots__ = ("chunks", "side_chunks")

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.side_chunks: dict[str, list[Chunk]] = {}

    def emit(self, chunk: Chunk) -> None:
        if chunk.values:
            self.chunks.append(chunk)

    def emit_side(self, tag_id: str, chunk: Chunk) -> None:
        if chunk.values:
            self.side_chunks.setdefault(tag_id, []).append(chunk)


class Node:
    """An operator with its context, state and routes.

    Attributes
    ----------
    plan : OperatorPlan
    status : WatermarkStatus
        Watermark of the operator, in the group bound at present.
    output_status : WatermarkStatus
        Watermark behind it.
    upstream : list of callables
        Each gives the watermark of one edge into the operator.
    elements_in, elements_out : int
        Since :meth:`bind`; side outputs count as well.
    """

    def __init__(
        self,
        plan: OperatorPlan,
        definition: OperatorDefinition,
        job: JobInfo,
        subtask: int,
        async_calls: AsyncCalls | None,
    ) -> None:
        self.plan = plan
        self.operator: Operator = definition.build()
        # asked once: the check looks at every method
        self.makes_watermarks = isinstance(self.operator, WatermarkOperator)
        self._info = TaskInfo(
            plan.name,
            plan.parallelism,
            plan.max_parallelism,
            # for open(); then it is that of the group
            subtask % plan.parallelism,
            attempt_number=job.attempt,
            job_parameters=dict(job.parameters),
        )
        self.metrics = RecordedMetrics()
        self._user_metrics = UserMetricsReader(self.metrics)
        self._state = KeyedState(plan.operator_id, plan.name, plan.origin)
        runtime_context = TaskRuntimeContext(self._info, self._state if plan.keyed else None, self.metrics)
        self.runtime_context = runtime_context
        self.context = OperatorContext(runtime_context, self._state, async_calls, plan.fixed_results)
        self._output = OperatorOutput()
        self.deliver: list[Deliver] = []
        self.deliver_side: dict[str, list[Deliver]] = {}
        self.upstream: list[Callable[[], WatermarkStatus]] = []
        self._store = GroupStore()
        self.status = self.output_status = WatermarkStatus()
        self.elements_in = self.elements_out = 0

    def open(self) -> None:
        """Open the operator."""
        with self._placing_errors():
            self.operator.open(self.context)

    def close(self) -> None:
        """Close it."""
        with self._placing_errors():
            try:
                self.operator.close()
            except Exception as error:
                error.add_note(f"operator '{self.plan.name}': close()")
                raise

    def bind(self, group: int, store: GroupStore, batch: MicroBatch) -> None:
        """Turn to a key group in a micro-batch."""
        self._store = store
        self._state.bind(store)
        self._output = OperatorOutput()
        plan = self.plan
        self._info.subtask_index = (
            subtask_of_group(group, plan.parallelism, plan.groups)
            if group < plan.groups
            # behind a source that has more partitions than the operator has subtasks
            else group % plan.parallelism
        )
        status, output_status = store.get_progress(("watermark", plan.operator_id), ((), ()))
        self.status, self.output_status = WatermarkStatus(*status), WatermarkStatus(*output_status)
        self.context.current_watermark_ms = self.status.watermark_ms
        self.elements_in = self.elements_out = 0
        self.context.processing_time_ms, self.context.run_ms = batch.time_ms, batch.run_ms
        self._state.set_processing_time(batch.time_ms)

    def take_measures(self, busy_ns: int) -> OperatorMeasures:
        """What was counted since the last :meth:`bind`; to be asked once before the next one."""
        measures = OperatorMeasures(self.elements_in, self.elements_out, busy_ns, self.status.watermark_ms)
        self._user_metrics.read_into(measures)
        return measures

    def subtask(self) -> int:
        """Number of the subtask that has the key group bound at present."""
        return self._info.subtask_index

    def receive(self, input_index: int, chunk: Chunk) -> None:
        """Process elements, and what comes out of it in the operators behind."""
        self.elements_in += len(chunk.values)
        if chunk.keys is not None:
            self._state.prefetch(chunk.keys)
        try:
            self.operator.process(input_index, chunk, self._output)
        except Exception as error:
            raise placed(error, self.plan.origin)
        self._send()

    def advance(self, status: WatermarkStatus) -> None:
        """Take over a watermark: fire what it makes due, then tell the operator."""
        advanced = status.watermark_ms > self.status.watermark_ms
        self.status = status
        if advanced:
            watermark_ms = self.context.current_watermark_ms = status.watermark_ms
            self._fire(self._state.timers.due_event_time(watermark_ms), self.operator.on_event_timer)
            with self._placing_errors():
                self.operator.on_watermark(watermark_ms, self._output)
            self._send()
        self.output_status = status
        if self.makes_watermarks:
            maker = cast("WatermarkOperator", self.operator)
            self.output_status = maker.output_watermark(status.watermark_ms)
        self._store.put_progress(
            ("watermark", self.plan.operator_id), (tuple(self.status), tuple(self.output_status))
        )

    def end(self) -> None:
        """All of a batch has come: fire every timer; those registered meanwhile never fire, as in Flink."""
        timers = self._state.timers
        timers.end()
        self.advance(WatermarkStatus(MAX_WATERMARK_MS))
        self._fire(timers.due_processing_time(MAX_WATERMARK_MS), self.operator.on_processing_timer)

    def fire_processing_timers(self) -> None:
        """Fire what is due by the clock."""
        due = self._state.timers.due_processing_time(self.context.processing_time_ms)
        self._fire(due, self.operator.on_processing_timer)

    def clean_up(self) -> None:
        """Remove state that has expired."""
        self._state.clean_up()

    def _fire(self, due: Iterable[tuple[int, Any, Any]], fire: Callable[..., None]) -> None:
        output = self._output
        prefetch = self._state.prefetch
        for timestamp_ms, key, namespace in due:
            prefetch((key,))
            try:
                fire(timestamp_ms, key, namespace, output)
            except Exception as error:
                raise placed(error, self.plan.origin)
            if len(output.chunks) >= _TIMER_CHUNKS:
                self._send()
        self._send()

    @contextmanager
    def _placing_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise placed(error, self.plan.origin)

    def _send(self) -> None:
        output = self._output
        if output.chunks:
            chunk = joined(output.chunks)
            output.chunks = []
            self.elements_out += len(chunk.values)
            for deliver in self.deliver:
                deliver(chunk)
        if output.side_chunks:
            side_chunks, output.side_chunks = output.side_chunks, {}
            for tag_id, chunks in side_chunks.items():
                chunk = joined(chunks)
                self.elements_out += len(chunk.values)
                for deliver in self.deliver_side.get(tag_id, ()):
                    deliver(chunk)


def joined(chunks: list[Chunk]) -> Chunk:
    """Chunks as one, in their order; all of them have keys, or none has."""
    if len(chunks) == 1:
        return chunks[0]
    values = [value for chunk in chunks for value in chunk.values]
    keys = None if chunks[0].keys is None else [key for chunk in chunks for key in chunk.keys or ()]
    if all(chunk.timestamps is None for chunk in chunks):
        return Chunk(values, None, keys)
    times: list[int | None] = []
    for chunk in chunks:
        times += [None] * len(chunk.values) if chunk.timestamps is None else chunk.timestamps
    return Chunk(values, times, keys)
