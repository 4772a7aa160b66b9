"""Vertices and their subtasks in the shapes of Flink's REST answers.

A subtask is partition *i* of the stages of a vertex; what is measured of it comes from its metrics.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import field

from yarnflow.core.messages import ExecutionInfo, VertexInfo
from yarnflow.core.states import ExecutionState
from yarnflow.rest.answers.metrics import IoMetrics, Metric, Values, io_metrics
from yarnflow.rest.answers.shapes import Camel, Kebab, Statistics, duration_ms, state_counts, statistics

#: the first of these that some execution is in is the vertex's
_TELLING: Final = (
    ExecutionState.FAILED,
    ExecutionState.CANCELING,
    ExecutionState.CANCELED,
    ExecutionState.INITIALIZING,
    ExecutionState.RUNNING,
)
#: states with a duration, in their order
_LASTING: Final = tuple(
    ExecutionState[name] for name in ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
)
#: Flink's limits of the ratio of time under back-pressure
_HIGH, _LOW = 0.5, 0.1
NO_TASK_MANAGER: Final = "(unassigned)"


class VertexSummary(Kebab):
    """One vertex of ``GET /jobs/:jobid``."""

    id: str
    slot_sharing_group_id: str = field(name="slotSharingGroupId")
    name: str
    max_parallelism: int = field(name="maxParallelism")
    parallelism: int
    status: str
    start_time: int
    end_time: int
    duration: int
    tasks: dict[str, int]
    metrics: IoMetrics


class Subtask(Kebab):
    """The current attempt of one subtask."""

    subtask: int
    status: str
    attempt: int
    endpoint: str
    start_time: int
    end_time: int
    duration: int
    metrics: IoMetrics
    taskmanager_id: str
    status_duration: dict[str, int]
    #: as in Flink, for its older clients
    start_time_again: int = field(name="start_time")


class Aggregated(Kebab):
    """Of several subtasks."""

    metrics: dict[str, Statistics]
    status_duration: dict[str, Statistics]


class Vertex(Kebab):
    """``GET /jobs/:jobid/vertices/:vertexid``."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int = field(name="maxParallelism")
    now: int
    subtasks: list[Subtask]
    aggregated: Aggregated


class SubtaskTimes(Kebab):
    """When a subtask entered its states."""

    subtask: int
    endpoint: str
    duration: int
    timestamps: dict[str, int]


class VertexTimes(Kebab):
    """``GET /jobs/:jobid/vertices/:vertexid/subtasktimes``."""

    id: str
    name: str
    now: int
    subtasks: list[SubtaskTimes]


class OnTaskManager(Kebab):
    """The subtasks of a vertex on one TaskManager."""

    endpoint: str
    status: str
    start_time: int
    end_time: int
    duration: int
    metrics: IoMetrics
    status_counts: dict[str, int]
    taskmanager_id: str
    aggregated: Aggregated


class VertexTaskManagers(Kebab):
    """``GET /jobs/:jobid/vertices/:vertexid/taskmanagers``."""

    id: str
    name: str
    now: int
    taskmanagers: list[OnTaskManager]


class SubtaskBackPressure(Camel):
    """How the time of a subtask was divided, measured lately."""

    subtask: int
    backpressure_level: str
    ratio: float
    idle_ratio: float
    busy_ratio: float
    #: as in Flink, for its older clients
    level: str = field(name="backpressure-level")


class BackPressure(Camel):
    """``GET /jobs/:jobid/vertices/:vertexid/backpressure``; ``deprecated`` is Flink's word for: not known."""

    status: str
    backpressure_level: str | None = None
    end_timestamp: int | None = field(name="end-timestamp", default=None)
    subtasks: list[SubtaskBackPressure] | None = None
    #: as in Flink, for its older clients
    level: str | None = field(name="backpressure-level", default=None)


class VertexAccumulators(Kebab):
    """``GET /jobs/:jobid/vertices/:vertexid/accumulators``: there are none."""

    id: str
    user_accumulators: list[str]


class SubtaskAccumulators(Kebab):
    """Of one attempt: there are none."""

    subtask: int
    attempt: int
    id: str
    user_accumulators: list[str]


class SubtasksAccumulators(msgspec.Struct):
    """``GET …/subtasks/accumulators``: there are none."""

    id: str
    parallelism: int
    subtasks: list[SubtaskAccumulators]


def vertex_status(vertex: VertexInfo) -> ExecutionState:
    """One state for all subtasks of a vertex, as Flink sums them up."""
    return _status_of(vertex.executions)


def vertex_summary(vertex: VertexInfo, metrics: IoMetrics, now_ms: int) -> VertexSummary:
    """One vertex of a job."""
    start_ms, end_ms = _times(vertex.executions)
    return VertexSummary(
        id=vertex.vertex_id,
        slot_sharing_group_id=vertex.slot_sharing_group,
        name=vertex.name,
        max_parallelism=vertex.max_parallelism,
        parallelism=vertex.parallelism,
        status=vertex_status(vertex).name,
        start_time=start_ms,
        end_time=end_ms,
        duration=duration_ms(start_ms, end_ms, now_ms),
        tasks=state_counts(execution.state for execution in vertex.executions),
        metrics=metrics,
    )


def subtask(execution: ExecutionInfo, values: Values, hosts: Mapping[str, str], now_ms: int) -> Subtask:
    """The current attempt of one subtask.

    Parameters
    ----------
    values : mapping
        Its metrics.
    hosts : mapping
        Id of each TaskManager there is → its address.
    """
    start_ms = _started_ms(execution)
    end_ms = _ended_ms(execution)
    return Subtask(
        subtask=execution.subtask_index,
        status=execution.state.name,
        attempt=execution.attempt,
        endpoint=_endpoint(execution, hosts),
        start_time=start_ms,
        end_time=end_ms,
        duration=duration_ms(start_ms, end_ms, now_ms),
        metrics=io_metrics([values]),
        taskmanager_id=execution.task_manager_id or NO_TASK_MANAGER,
        status_duration=_status_durations(execution, now_ms),
        start_time_again=start_ms,
    )


def vertex(vertex: VertexInfo, values: Sequence[Values], hosts: Mapping[str, str], now_ms: int) -> Vertex:
    """``GET /jobs/:jobid/vertices/:vertexid``; ``values`` has the metrics of each subtask."""
    subtasks = [
        subtask(execution, each, hosts, now_ms)
        for execution, each in zip(vertex.executions, values, strict=True)
    ]
    return Vertex(
        id=vertex.vertex_id,
        name=vertex.name,
        parallelism=vertex.parallelism,
        max_parallelism=vertex.max_parallelism,
        now=now_ms,
        subtasks=subtasks,
        aggregated=_aggregated(subtasks),
    )


def subtask_times(vertex: VertexInfo, hosts: Mapping[str, str], now_ms: int) -> VertexTimes:
    """``GET /jobs/:jobid/vertices/:vertexid/subtasktimes``."""
    return VertexTimes(
        id=vertex.vertex_id,
        name=vertex.name,
        now=now_ms,
        subtasks=[
            SubtaskTimes(
                subtask=execution.subtask_index,
                endpoint=_endpoint(execution, hosts),
                duration=duration_ms(
                    execution.timestamps_ms.get(ExecutionState.SCHEDULED.name, -1),
                    _ended_ms(execution),
                    now_ms,
                ),
                timestamps={
                    state.name: execution.timestamps_ms.get(state.name, 0) for state in ExecutionState
                },
            )
            for execution in vertex.executions
        ],
    )


def task_managers(
    vertex: VertexInfo, values: Sequence[Values], hosts: Mapping[str, str], now_ms: int
) -> VertexTaskManagers:
    """``GET /jobs/:jobid/vertices/:vertexid/taskmanagers``; ``values`` has the metrics of each subtask."""
    by_manager: dict[str, list[tuple[ExecutionInfo, Values]]] = defaultdict(list)
    for execution, each in zip(vertex.executions, values, strict=True):
        by_manager[execution.task_manager_id].append((execution, each))
    found = []
    for task_manager_id, there in by_manager.items():
        executions = [execution for execution, _ in there]
        start_ms, end_ms = _times(executions)
        found.append(
            OnTaskManager(
                endpoint=_endpoint(executions[0], hosts),
                status=_status_of(executions).name,
                start_time=start_ms,
                end_time=end_ms,
                duration=duration_ms(start_ms, end_ms, now_ms),
                metrics=io_metrics([each for _, each in there]),
                status_counts=state_counts(execution.state for execution in executions),
                taskmanager_id=task_manager_id or NO_TASK_MANAGER,
                aggregated=_aggregated(
                    [subtask(execution, each, hosts, now_ms) for execution, each in there]
                ),
            )
        )
    return VertexTaskManagers(id=vertex.vertex_id, name=vertex.name, now=now_ms, taskmanagers=found)


def back_pressure(values: Sequence[Values], now_ms: int) -> BackPressure:
    """``GET /jobs/:jobid/vertices/:vertexid/backpressure``; ``values`` has the metrics of each subtask."""
    subtasks = []
    for index, each in enumerate(values):
        pressed = each.get("backPressuredTimeMsPerSecond")
        if not isinstance(pressed, (int, float)):
            continue
        level = _level(pressed / 1000)
        subtasks.append(
            SubtaskBackPressure(
                subtask=index,
                backpressure_level=level,
                ratio=pressed / 1000,
                idle_ratio=_ratio(each, "idleTimeMsPerSecond"),
                busy_ratio=_ratio(each, "busyTimeMsPerSecond"),
                level=level,
            )
        )
    if not subtasks:
        return BackPressure(status="deprecated")
    worst = _level(max(each.ratio for each in subtasks))
    return BackPressure(
        status="ok", backpressure_level=worst, end_timestamp=now_ms, subtasks=subtasks, level=worst
    )


def watermarks(values: Sequence[Values], whole: Values) -> list[Metric]:
    """``GET /jobs/:jobid/vertices/:vertexid/watermarks``.

    Parameters
    ----------
    values : sequence of mapping
        Metrics of each subtask.
    whole : mapping
        Of the vertex: native operators have Spark's watermark of the query, which all subtasks go by.
    """
    name = "currentInputWatermark"
    found = ((index, each.get(name, whole.get(name))) for index, each in enumerate(values))
    return [Metric(f"{index}.{name}", str(value)) for index, value in found if value is not None]


def accumulators(vertex: VertexInfo) -> VertexAccumulators:
    """Of a vertex."""
    return VertexAccumulators(id=vertex.vertex_id, user_accumulators=[])


def _status_of(executions: Sequence[ExecutionInfo]) -> ExecutionState:
    states = Counter(execution.state for execution in executions)
    for state in _TELLING:
        if states[state]:
            return state
    if states[ExecutionState.FINISHED]:
        whole = states[ExecutionState.FINISHED] == len(executions)
        return ExecutionState.FINISHED if whole else ExecutionState.RUNNING
    return ExecutionState.CREATED


def _times(executions: Sequence[ExecutionInfo]) -> tuple[int, int]:
    """Start of the first and end of the last; -1 = not yet."""
    starts = [start for execution in executions if (start := _started_ms(execution)) > 0]
    ends = [end for execution in executions if (end := _ended_ms(execution)) >= 0]
    return min(starts, default=-1), max(ends, default=-1) if len(ends) == len(executions) else -1


def _started_ms(execution: ExecutionInfo) -> int:
    return execution.timestamps_ms.get(ExecutionState.DEPLOYING.name, -1)


def _ended_ms(execution: ExecutionInfo) -> int:
    return max(execution.timestamps_ms.values(), default=-1) if execution.state.terminal else -1


def _endpoint(execution: ExecutionInfo, hosts: Mapping[str, str]) -> str:
    return hosts.get(execution.task_manager_id, execution.task_manager_id or NO_TASK_MANAGER)


def _status_durations(execution: ExecutionInfo, now_ms: int) -> dict[str, int]:
    """How long it was in each of the lasting states; -1 = it never was."""
    times = sorted(execution.timestamps_ms.items(), key=lambda entry: entry[1])
    order = {name: number for number, (name, _) in enumerate(times)}
    durations = {}
    for state in _LASTING:
        number = order.get(state.name)
        if number is None:
            durations[state.name] = -1
        elif number + 1 < len(times):
            durations[state.name] = times[number + 1][1] - times[number][1]
        else:
            durations[state.name] = max(0, now_ms - times[number][1])
    return durations


def _aggregated(subtasks: Sequence[Subtask]) -> Aggregated:
    metrics: dict[str, list[float]] = defaultdict(list)
    durations: dict[str, list[float]] = defaultdict(list)
    for each in subtasks:
        io = each.metrics
        for name, value, known in (
            ("read-bytes", io.read_bytes, io.read_bytes_complete),
            ("write-bytes", io.write_bytes, io.write_bytes_complete),
            ("read-records", io.read_records, io.read_records_complete),
            ("write-records", io.write_records, io.write_records_complete),
            ("accumulated-backpressured-time", io.accumulated_backpressured_time, True),
            ("accumulated-idle-time", io.accumulated_idle_time, True),
            ("accumulated-busy-time", io.accumulated_busy_time, True),
        ):
            # a name that is missing ends Flink's dashboard
            numbers = metrics[name]
            if known and not isinstance(value, str):
                numbers.append(value)
        for name, value in each.status_duration.items():
            durations[name].append(value)
    return Aggregated(
        metrics={name: statistics(values) for name, values in metrics.items()},
        status_duration={name: statistics(values) for name, values in durations.items()},
    )


def _level(ratio: float) -> str:
    return "high" if ratio > _HIGH else "low" if ratio > _LOW else "ok"


def _ratio(values: Values, name: str) -> float:
    value = values.get(name)
    return value / 1000 if isinstance(value, (int, float)) else 0.0
