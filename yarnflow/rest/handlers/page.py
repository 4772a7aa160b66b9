"""The overview as one HTML page: jobs, what they wait for, checkpoints, exceptions, TaskManagers.

Works without JavaScript and with relative links only, because YARN's proxy serves it below a
path of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointInfo, JobCheckpoints
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, FailureInfo, JobDetails
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.core.states import ExecutionState

REFRESH_S: Final = 5
#: of each job
CHECKPOINTS_SHOWN: Final = 5
_JOB_HEADER: Final = (
    "Job", "State", "Started", "Ended", "Tasks", "Slots", "Restarts", "Checkpoints", "Waits for"
)  # fmt: skip
_STYLE: Final = """
body { font-family: sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; margin-bottom: 1.5em; }
th, td { border-bottom: 1px solid #ccc; padding: .3em .8em; text-align: left; vertical-align: top; }
pre { white-space: pre-wrap; margin: .3em 0; }
.RUNNING, .FINISHED, .COMPLETED { color: #186a18; } .FAILED, .FAILING { color: #a01818; }
"""


def overview_page(
    cluster: ClusterOverview,
    jobs: Sequence[JobDetails],
    task_managers: Sequence[TaskManagerInfo],
    now_ms: int,
    checkpoints: Mapping[JobId, JobCheckpoints],
) -> str:
    """The whole page; ``checkpoints`` of the jobs for which they are known."""
    return "".join(
        (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>yarnflow</title>',
            f'<meta http-equiv="refresh" content="{REFRESH_S}"><style>{_STYLE}</style></head><body>',
            f"<h1>yarnflow {escape(cluster.version)}</h1>",
            f"<p>{cluster.task_managers} TaskManagers, {cluster.slots_available} of "
            f"{cluster.slots_total} slots free; jobs: {cluster.jobs_running} live, "
            f"{cluster.jobs_finished} finished, {cluster.jobs_canceled} canceled, "
            f"{cluster.jobs_failed} failed; {_time(now_ms)}.</p>",
            "<h2>Jobs</h2>",
            _table(
                _JOB_HEADER,
                (_job_row(details, checkpoints) for details in reversed(jobs)),
            ),
            "<h2>Checkpoints</h2>",
            _table(
                ("Job", "Checkpoint", "Kind", "Status", "Began", "Took", "State", "Path or failure"),
                _checkpoint_rows(jobs, checkpoints),
            ),
            "<h2>Exceptions</h2>",
            _table(("Time", "Job", "Where", "Went on", "Exception"), _exception_rows(jobs)),
            "<h2>TaskManagers</h2>",
            _table(
                ("TaskManager", "Address", "Slots", "Free", "Memory", "Last heartbeat"),
                (_task_manager_row(info) for info in task_managers),
            ),
            '<p>JSON: <a href="overview">overview</a>, <a href="jobs/overview">jobs</a>, '
            '<a href="taskmanagers">TaskManagers</a></p></body></html>\n',
        )
    )


def _job_row(details: JobDetails, checkpoints: Mapping[JobId, JobCheckpoints]) -> tuple[str, ...]:
    head = details.overview
    states = [execution.state for vertex in details.vertices for execution in vertex.executions]
    counts = [f"{states.count(state)} {state.name}" for state in ExecutionState if states.count(state)]
    link = f"jobs/{escape(head.job_id, quote=True)}"
    return (
        f'<a href="{link}">{escape(head.name)}</a><br>{escape(head.job_id)}',
        f'<span class="{head.status.name}">{head.status.name}</span>',
        _time(head.start_time_ms),
        _time(head.end_time_ms),
        "<br>".join(counts),
        f"{head.slots_allocated} of {head.slots_required}",
        f'{details.restarts} (<a href="{link}/exceptions">exceptions</a>)',
        _checkpoint_counts(checkpoints.get(head.job_id), link),
        escape(details.waiting_for),
    )


def _checkpoint_counts(checkpoints: JobCheckpoints | None, link: str) -> str:
    if checkpoints is None:
        return ""
    failed = f", {checkpoints.failed} failed" if checkpoints.failed else ""
    return f'<a href="{link}/checkpoints">{checkpoints.completed} completed</a>{failed}'


def _checkpoint_rows(
    jobs: Sequence[JobDetails], checkpoints: Mapping[JobId, JobCheckpoints]
) -> list[tuple[str, ...]]:
    """The newest of each job; the newest job comes first."""
    return [
        (
            escape(details.overview.name),
            str(info.checkpoint_id) if info.checkpoint_id > 0 else "",
            info.kind.name,
            f'<span class="{info.status.name}">{info.status.name}</span>',
            _time(info.trigger_ms),
            f"{info.end_ms - info.trigger_ms} ms" if info.end_ms >= 0 else "",
            _state_size(info),
            "discarded" if info.discarded else escape(info.failure or info.external_path),
        )
        for details in reversed(jobs)
        if (known := checkpoints.get(details.overview.job_id)) is not None
        for info in known.history[:CHECKPOINTS_SHOWN]
    ]


def _state_size(info: CheckpointInfo) -> str:
    rows = sum(position.state_rows for position in info.positions)
    size_bytes = sum(position.state_bytes for position in info.positions)
    return f"{rows:,} rows, {size_bytes:,} B"


def _exception_rows(jobs: Iterable[JobDetails]) -> list[tuple[str, ...]]:
    found = [(failure, details) for details in jobs for failure in details.failures]
    found.sort(key=lambda entry: entry[0].at_ms, reverse=True)
    return [
        (
            _time(failure.at_ms),
            escape(details.overview.name),
            escape(failure.location),
            f"yes ({failure.level.name})" if failure.recovered else "no",
            _exception(failure),
        )
        for failure, details in found
    ]


def _exception(failure: FailureInfo) -> str:
    message = escape(f"{failure.error.code}: {failure.error.message}")
    if not failure.error.details:
        return message
    return f"<details><summary>{message}</summary><pre>{escape(failure.error.details)}</pre></details>"


def _task_manager_row(info: TaskManagerInfo) -> tuple[str, ...]:
    registration = info.registration
    return (
        escape(registration.task_manager_id),
        escape(registration.address),
        str(info.slots),
        str(info.free_slots),
        f"{registration.process_memory_mib} MiB",
        _time(info.last_heartbeat_ms),
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells of ``rows`` are HTML already."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>" if body else "<p>none</p>"


def _time(at_ms: int) -> str:
    if at_ms < 0:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
