"""``yarnflow checkpoints JOB``: history of a job's checkpoints, as on Flink's page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import click

from yarnflow.cli.common import checked_job_id, cluster_options, existing_cluster, job_argument
from yarnflow.cli.output import Shown, Verb
from yarnflow.config.configuration import Configuration
from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointStatus, JobCheckpoints

_HEADER: Final = ("ID", "Kind", "Status", "Why", "Began", "Took", "Rows", "Size", "Path")
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


@click.command("checkpoints", cls=Verb, answer=JobCheckpoints)
@job_argument()
@cluster_options
def command(job: str, configuration: Configuration) -> Shown:
    """List the checkpoints and savepoints of a job, the newest first."""
    job_id = checked_job_id(job)
    with existing_cluster(configuration, job_id) as connection:
        checkpoints = connection.cluster_of(job_id).gateway().job_checkpoints(job_id)
    return Shown(checkpoints, format_checkpoints(checkpoints))


def format_checkpoints(checkpoints: JobCheckpoints) -> str:
    """The history as text."""
    running = sum(info.status is CheckpointStatus.IN_PROGRESS for info in checkpoints.history)
    lines = [
        f"Checkpoints of job {checkpoints.job_id}: {checkpoints.completed} completed, {running} in progress, "
        f"{checkpoints.failed} failed; interval {_interval(checkpoints)}, "
        f"{checkpoints.retained} retained, {checkpoints.retention}"
    ]
    if checkpoints.restored is not None:
        restored = checkpoints.restored
        # of a savepoint the number may not be known: only its driver has read the manifest
        number = f" {restored.checkpoint_id}" if restored.checkpoint_id > 0 else ""
        lines.append(
            f"Started from {restored.kind.value.lower()}{number} ({restored.claim_mode}), {restored.path}"
        )
    if checkpoints.history:
        lines += _table([_HEADER, *map(_cells, checkpoints.history)])
    return "\n".join(lines)


def _interval(checkpoints: JobCheckpoints) -> str:
    if checkpoints.interval_ms < 0:
        return "not known"
    return duration_text(checkpoints.interval_ms) if checkpoints.interval_ms else "every batch"


def _cells(info: CheckpointInfo) -> tuple[str, ...]:
    positions = info.positions
    size = info.copied_bytes or sum(position.state_bytes for position in positions)
    where = info.failure if info.status is CheckpointStatus.FAILED else info.external_path
    if info.discarded:
        where = "(discarded)"
    done = info.status is not CheckpointStatus.IN_PROGRESS
    return (
        str(info.checkpoint_id) if info.checkpoint_id > 0 else "-",
        info.kind.value.capitalize(),
        info.status.value,
        info.trigger.value.lower(),
        datetime.fromtimestamp(info.trigger_ms / 1000).strftime("%d.%m.%Y %H:%M:%S"),
        duration_text(info.end_ms - info.trigger_ms) if done else "-",
        f"{sum(position.state_rows for position in positions):,}",
        size_text(size),
        " ".join(where.split()),
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return ["  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in rows]


def duration_text(duration_ms: int) -> str:
    """``850 ms``, ``3.2 s``, ``12 min 5 s``."""
    if duration_ms < 1000:
        return f"{max(0, duration_ms)} ms"
    if duration_ms < 60_000:
        return f"{duration_ms / 1000:.1f} s"
    return f"{duration_ms // 60_000} min {duration_ms % 60_000 // 1000} s"


def size_text(size_bytes: int) -> str:
    """``17 B``, ``1.5 MiB``."""
    size = float(size_bytes)
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
