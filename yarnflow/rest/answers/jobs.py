"""Jobs in the shapes of Flink's REST answers.

No option of a job or cluster appears, so none of their secrets can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType, field

from yarnflow.core.checkpoint.messages import JobStop
from yarnflow.core.job.description import JobDescription, PlanNode
from yarnflow.core.messages import FailureInfo, JobDetails, QueryProgress
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.rest.answers.java_throwable import serialized_throwable
from yarnflow.rest.answers.metrics import IoMetrics
from yarnflow.rest.answers.shapes import Camel, Kebab, Snake, duration_ms, lower_state_counts, state_counts
from yarnflow.rest.answers.vertices import VertexSummary, vertex_summary

#: the status of an application that has ended, as Flink tells it
_APPLICATION_STATUS: Final = {
    JobStatus.FINISHED: "SUCCEEDED", JobStatus.CANCELED: "CANCELED", JobStatus.FAILED: "FAILED"
}  # fmt: skip
#: Flink's names of its schedulers
_SCHEDULERS: Final = {"default": "Default", "adaptive": "Adaptive"}


class JobIdWithStatus(msgspec.Struct):
    """One job."""

    id: str
    status: str


class JobIds(msgspec.Struct):
    """``GET /jobs``."""

    jobs: list[JobIdWithStatus]


class JobSummary(Kebab, kw_only=True):
    """One job of ``GET /jobs/overview``."""

    jid: str
    name: str
    job_type: str | UnsetType = field(name="jobType", default=UNSET)
    scheduler_type: str | UnsetType = field(name="schedulerType", default=UNSET)
    start_time: int
    end_time: int
    duration: int
    state: str
    last_modification: int
    tasks: dict[str, int]
    pending_operators: int
    #: left out where it waits for nothing: Flink's history server takes no key that it does not know
    waiting_for: str | UnsetType = UNSET


class JobsOverview(msgspec.Struct):
    """``GET /jobs/overview``."""

    jobs: list[JobSummary]


class PlanEdge(Snake):
    """An input of a vertex."""

    id: str
    num: int
    exchange: str
    ship_strategy: str


class PlanVertex(Snake):
    """One vertex of a plan."""

    id: str
    operator: str
    parallelism: int
    operator_strategy: str
    #: one operator per line of HTML, with signs of HTML escaped, as Flink has it
    description: str
    optimizer_properties: dict[str, Any]
    inputs: list[PlanEdge] | UnsetType = UNSET


class Plan(msgspec.Struct):
    """What a job does, from sinks to sources."""

    jid: str
    name: str
    nodes: list[PlanVertex]
    type: str | UnsetType = UNSET


class PlanAnswer(msgspec.Struct):
    """``GET /jobs/:jobid/plan``."""

    plan: Plan


class Source(Kebab):
    """Where a source of a query stands."""

    description: str
    #: in the last batch
    input_rows: int
    behind: dict[str, int]


class StatefulOperator(Kebab):
    """What a query keeps for one of its operators, as of the last batch."""

    name: str
    rows: int
    bytes: int
    rows_updated: int
    rows_removed: int
    partitions: int


class Query(Kebab):
    """What a streaming query last said of itself."""

    name: str
    batch_id: int
    batch_duration: int
    input_rows: int
    output_rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    state_rows: int
    state_bytes: int
    watermark: int
    durations: dict[str, int]
    sources: list[Source]
    operators: list[StatefulOperator]


class Stop(Kebab):
    """How a job was stopped."""

    #: its path; empty = it could not be recorded
    savepoint: str
    request_id: str
    drained: bool


class Job(Kebab, kw_only=True):
    """``GET /jobs/:jobid``."""

    jid: str
    #: each job is an application of its own
    application_id: str
    name: str
    is_stoppable: bool = field(name="isStoppable")
    state: str
    job_type: str | UnsetType = UNSET
    scheduler_type: str | UnsetType = field(name="schedulerType", default=UNSET)
    start_time: int
    end_time: int
    duration: int
    max_parallelism: int = field(name="maxParallelism")
    now: int
    timestamps: dict[str, int]
    vertices: list[VertexSummary]
    status_counts: dict[str, int]
    plan: Plan
    pending_operators: int
    waiting_for: str
    restarts: int
    #: of a job that was stopped
    stop: Stop | UnsetType = UNSET
    slots_allocated: int
    slots_required: int
    milestones: dict[str, int]
    queries: list[Query]


class Status(msgspec.Struct):
    """``GET /jobs/:jobid/status``."""

    status: str


class ExecutionConfiguration(Kebab):
    """How a job is run."""

    restart_strategy: str
    job_parallelism: int
    object_reuse_mode: bool
    user_config: dict[str, str]


class JobConfiguration(Kebab):
    """``GET /jobs/:jobid/config``."""

    jid: str
    name: str
    execution_config: ExecutionConfiguration


class RaisedException(Camel):
    """One entry of the exception history."""

    exception_name: str
    stacktrace: str
    timestamp: int
    failure_labels: dict[str, str]
    task_name: str | None
    endpoint: str | None
    task_manager_id: str | None
    concurrent_exceptions: list[dict[str, Any]]


class ExceptionHistory(msgspec.Struct):
    """Newest first."""

    entries: list[RaisedException]
    truncated: bool


class Exceptions(Camel):
    """``GET /jobs/:jobid/exceptions``."""

    exception_history: ExceptionHistory


class Accumulators(Kebab):
    """``GET /jobs/:jobid/accumulators``: jobs of yarnflow have none."""

    job_accumulators: list[str]
    user_task_accumulators: list[str]
    serialized_user_task_accumulators: dict[str, str]


class OperationStatus(msgspec.Struct):
    """``IN_PROGRESS`` or ``COMPLETED``."""

    id: str


class FailureCause(Kebab):
    """Why a job, or an operation, failed."""

    class_: str = field(name="class")
    stack_trace: str
    #: for Flink's own client
    serialized_throwable: str


class ExecutionResult(Kebab):
    """How a job ended."""

    id: str
    application_id: str
    application_status: str
    accumulator_results: dict[str, str]
    net_runtime: int
    name: str
    start_time: int
    end_time: int
    failure_cause: FailureCause | UnsetType = UNSET


class ExecutionResultAnswer(Kebab):
    """``GET /jobs/:jobid/execution-result``."""

    status: OperationStatus
    job_execution_result: ExecutionResult | UnsetType = UNSET


class ParallelismBounds(Camel):
    """How many subtasks a vertex may have."""

    lower_bound: int
    upper_bound: int


class VertexRequirements(msgspec.Struct):
    """What one vertex needs."""

    parallelism: ParallelismBounds


def job_ids(jobs: Iterable[JobDetails]) -> JobIds:
    """``GET /jobs``."""
    return JobIds([JobIdWithStatus(d.overview.job_id, d.overview.status.in_flink.name) for d in jobs])


def jobs_overview(
    jobs: Sequence[JobDetails], descriptions: Mapping[str, JobDescription | None], now_ms: int
) -> JobsOverview:
    """``GET /jobs/overview``; the newest job comes first."""
    return JobsOverview(
        [
            _job_summary(details, descriptions.get(details.overview.job_id), now_ms)
            for details in reversed(jobs)
        ]
    )


def job(
    details: JobDetails,
    description: JobDescription | None,
    metrics: Sequence[IoMetrics],
    now_ms: int,
) -> Job:
    """``GET /jobs/:jobid``.

    Parameters
    ----------
    metrics : sequence of IoMetrics
        One per vertex.
    """
    head = details.overview
    vertices = [
        vertex_summary(vertex, io, now_ms) for vertex, io in zip(details.vertices, metrics, strict=True)
    ]
    return Job(
        jid=head.job_id,
        application_id=head.job_id,
        name=head.name,
        # as in Flink, where it is of an older way to stop
        is_stoppable=False,
        state=head.status.in_flink.name,
        job_type=_type(description),
        scheduler_type=_scheduler(description),
        start_time=head.start_time_ms,
        end_time=head.end_time_ms,
        duration=duration_ms(head.start_time_ms, head.end_time_ms, now_ms),
        max_parallelism=-1 if description is None else description.max_parallelism,
        now=now_ms,
        timestamps={
            status.name: details.timestamps_ms.get(status.name, 0)
            for status in JobStatus
            if status.in_flink is status
        },
        vertices=vertices,
        status_counts=state_counts(ExecutionState[vertex.status] for vertex in vertices),
        plan=plan(details, description),
        pending_operators=0,
        waiting_for=details.waiting_for,
        restarts=details.restarts,
        stop=UNSET if details.stop is None else stop(details.stop),
        slots_allocated=head.slots_allocated,
        slots_required=head.slots_required,
        milestones=details.milestones_ms,
        queries=[query_progress(query) for query in details.queries],
    )


def stop(made: JobStop) -> Stop:
    """How a job was stopped."""
    return Stop(savepoint=made.savepoint, request_id=made.request_id, drained=made.drained)


def query_progress(query: QueryProgress) -> Query:
    """What a streaming query last said of itself."""
    return Query(
        name=query.query,
        batch_id=query.batch_id,
        batch_duration=query.batch_duration_ms,
        input_rows=query.total_input_rows,
        output_rows=query.total_output_rows,
        input_rows_per_second=query.input_rows_per_second,
        processed_rows_per_second=query.processed_rows_per_second,
        state_rows=query.state_rows,
        state_bytes=query.state_bytes,
        watermark=query.watermark_ms,
        durations=query.durations_ms,
        sources=[
            Source(description=source.description, input_rows=source.input_rows, behind=source.behind)
            for source in query.sources
        ],
        operators=[
            StatefulOperator(
                name=operator.name,
                rows=operator.rows,
                bytes=operator.bytes,
                rows_updated=operator.rows_updated,
                rows_removed=operator.rows_removed,
                partitions=operator.partitions,
            )
            for operator in query.operators
        ],
    )


def plan(details: JobDetails, description: JobDescription | None) -> Plan:
    """Of a job; empty when nobody knows it any more."""
    head = details.overview
    return Plan(head.job_id, head.name, []) if description is None else plan_of(description)


def plan_of(description: JobDescription) -> Plan:
    """Of a job that somebody knows."""
    nodes = [_plan_vertex(node) for node in description.nodes]
    return Plan(description.job_id, description.name, nodes, _type(description))


def job_configuration(description: JobDescription) -> JobConfiguration:
    """``GET /jobs/:jobid/config``."""
    return JobConfiguration(
        jid=description.job_id,
        name=description.name,
        execution_config=ExecutionConfiguration(
            restart_strategy=description.restart_strategy,
            job_parallelism=description.parallelism,
            # an element that is changed after it was emitted stays as it was for others
            object_reuse_mode=False,
            user_config=dict(description.job_parameters),
        ),
    )


def exceptions(
    details: JobDetails, most: int | None = None, labels: Sequence[tuple[str, str]] = ()
) -> Exceptions:
    """``GET /jobs/:jobid/exceptions``; the newest comes first.

    Parameters
    ----------
    most : int, optional
        Entries; None = all there are.
    labels : sequence of (str, str)
        Only entries with all of these labels.
    """
    entries = [_exception(failure) for failure in reversed(details.failures)]
    wanted = [
        entry for entry in entries if all(entry.failure_labels.get(name) == value for name, value in labels)
    ]
    shown = wanted if most is None else wanted[:most]
    return Exceptions(exception_history=ExceptionHistory(shown, len(shown) < len(wanted)))


def execution_result(details: JobDetails) -> ExecutionResultAnswer:
    """``GET /jobs/:jobid/execution-result``."""
    head = details.overview
    if not head.status.globally_terminal:
        return ExecutionResultAnswer(status=OperationStatus("IN_PROGRESS"))
    cause: FailureCause | UnsetType = UNSET
    if details.error is not None:
        cause = failure_cause(details.error.code, details.error.message, details.error.details)
    return ExecutionResultAnswer(
        status=OperationStatus("COMPLETED"),
        job_execution_result=ExecutionResult(
            id=head.job_id,
            application_id=head.job_id,
            application_status=_APPLICATION_STATUS[head.status],
            accumulator_results={},
            net_runtime=duration_ms(head.start_time_ms, head.end_time_ms, head.end_time_ms),
            name=head.name,
            start_time=head.start_time_ms,
            end_time=head.end_time_ms,
            failure_cause=cause,
        ),
    )


def failure_cause(code: str, message: str, details: str = "") -> FailureCause:
    """An error of yarnflow in the place of a Java exception."""
    stack_trace = "\n".join(text for text in (message, details) if text)
    return FailureCause(
        class_=code,
        stack_trace=stack_trace,
        serialized_throwable=serialized_throwable(code, message, stack_trace),
    )


def resource_requirements(details: JobDetails, description: JobDescription) -> dict[str, VertexRequirements]:
    """``GET /jobs/:jobid/resource-requirements``: id of each vertex → what it needs."""
    return {
        vertex.vertex_id: VertexRequirements(
            ParallelismBounds(
                lower_bound=1 if description.adaptive else vertex.parallelism,
                upper_bound=vertex.parallelism,
            )
        )
        for vertex in details.vertices
    }


def _job_summary(details: JobDetails, description: JobDescription | None, now_ms: int) -> JobSummary:
    head = details.overview
    executions = [execution for vertex in details.vertices for execution in vertex.executions]
    changes = [time for execution in executions for time in execution.timestamps_ms.values()]
    counts = lower_state_counts(execution.state for execution in executions)
    return JobSummary(
        jid=head.job_id,
        name=head.name,
        job_type=_type(description),
        scheduler_type=_scheduler(description),
        start_time=head.start_time_ms,
        end_time=head.end_time_ms,
        duration=duration_ms(head.start_time_ms, head.end_time_ms, now_ms),
        state=head.status.in_flink.name,
        last_modification=max([head.start_time_ms, *details.timestamps_ms.values(), *changes]),
        tasks={"total": len(executions), **counts},
        pending_operators=0,
        waiting_for=UNSET if head.status.globally_terminal else details.waiting_for or UNSET,
    )


def _type(description: JobDescription | None) -> str | UnsetType:
    if description is None:
        return UNSET
    return "BATCH" if description.batch else "STREAMING"


def _scheduler(description: JobDescription | None) -> str | UnsetType:
    if description is None:
        return UNSET
    return _SCHEDULERS.get(description.scheduler.lower(), description.scheduler)


def _plan_vertex(node: PlanNode) -> PlanVertex:
    return PlanVertex(
        id=node.vertex_id,
        operator="",
        parallelism=node.parallelism,
        operator_strategy="",
        description="".join(f"{_as_html(text)}<br/>" for text in node.operators),
        optimizer_properties={},
        inputs=[
            PlanEdge(id=edge.vertex_id, num=number, exchange=edge.exchange, ship_strategy=edge.ship_strategy)
            for number, edge in enumerate(node.inputs)
        ]
        or UNSET,
    )


def _as_html(text: str) -> str:
    """As Flink's ``JsonPlanGenerator`` escapes names that are users' own."""
    return escape(text, quote=False).replace('"', "&quot;").replace("\n", "<br/>").replace("\\", "&#92;")


def _exception(failure: FailureInfo) -> RaisedException:
    error = failure.error
    return RaisedException(
        exception_name=error.code,
        stacktrace="\n".join(text for text in (error.message, error.details) if text),
        timestamp=failure.at_ms,
        failure_labels={"level": failure.level.name, "recovered": str(failure.recovered).lower()},
        task_name=None,
        endpoint=failure.location or None,
        # queries and drivers fail at a driver
        task_manager_id=(failure.location if failure.level is RestartLevel.TASKS else "") or None,
        concurrent_exceptions=[],
    )
