"""Busy, back-pressured and idle: how a vertex spends its time, where work is done in micro-batches.

Pure.  *Busy* is the share of the time in which tasks of the vertex ran.  Of operators on elements, workers
measure it for each subtask.  Of native operators Spark's stages tell it: if the batches of a query have as
many stages as the query has vertices, each vertex has its stage's time, else all have the query's.
*Back-pressured* is a source whose input had to wait for the batch before it: with an interval between
batches, the share of the last batch by which it was longer than that; without one, how much of a batch there
was left to be read behind it.  *Idle* is the rest.  ``docs/metrics.md`` says the same to users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from yarnflow.core.ids import VertexId
from yarnflow.core.messages import QueryProgress
from yarnflow.spark.metrics.status_store import StageRun

PER_SECOND: Final = 1000


@dataclass(frozen=True, slots=True)
class TimeShares:
    """Milliseconds per second; together 1000."""

    busy: float
    back_pressured: float

    @property
    def idle(self) -> float:
        """The rest."""
        return PER_SECOND - self.busy - self.back_pressured

    @classmethod
    def of(cls, busy: float, back_pressured: float) -> TimeShares:
        """From shares between 0 and 1; what was busy did not wait."""
        worked = min(1.0, max(0.0, busy))
        return cls(worked * PER_SECOND, min(1.0 - worked, max(0.0, back_pressured)) * PER_SECOND)


def back_pressure(progress: QueryProgress, interval_ms: int) -> float:
    """Share of the time in which input of a query's sources had to wait, from 0 to 1.

    Parameters
    ----------
    interval_ms : int
        Between the starts of two batches; 0 = none, or not known.
    """
    if interval_ms > 0:
        late_ms = progress.batch_duration_ms - interval_ms
        return late_ms / progress.batch_duration_ms if late_ms > 0 else 0.0
    return min(1.0, pending_records(progress) / max(1, progress.input_rows))


def pending_records(progress: QueryProgress) -> int:
    """Messages that a query's sources have not read; 0 also where that is not known."""
    return sum(sum(source.behind.values()) for source in progress.sources)


def stage_shares(
    stages: Sequence[StageRun],
    query_id: str,
    vertices: Sequence[VertexId],
    parallelism: Mapping[VertexId, int],
    from_ms: int,
    to_ms: int,
) -> dict[VertexId, float]:
    """Share of the time in which tasks of a query ran, for each of its vertices.

    Parameters
    ----------
    stages : sequence of StageRun
        The last ones of all queries, the oldest first.
    vertices : sequence of VertexId
        Of the query, upstream first.
    from_ms : int
        Stages that ended before do not count.
    """
    window_ms = to_ms - from_ms
    if window_ms <= 0 or not vertices:
        return {}
    own = [stage for stage in stages if stage.query_id == query_id and stage.completed_ms > from_ms]
    batches: dict[int, list[StageRun]] = {}
    for stage in own:
        batches.setdefault(stage.batch_id, []).append(stage)
    if batches and all(len(batch) == len(vertices) for batch in batches.values()):
        return {
            vertex: _share((batch[rank] for batch in batches.values()), window_ms, parallelism[vertex])
            for rank, vertex in enumerate(vertices)
        }
    widest = max(parallelism[vertex] for vertex in vertices)
    return dict.fromkeys(vertices, _share(own, window_ms, widest))


def _share(stages: Iterable[StageRun], window_ms: int, subtasks: int) -> float:
    return min(1.0, sum(stage.run_time_ms for stage in stages) / (window_ms * max(1, subtasks)))
