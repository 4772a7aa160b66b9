"""Records of native operators' vertices, from the stages of a query's batches.

Spark counts what a stage reads and what it hands to the next one.  That is a vertex's only if the vertices
of a query stand in a row and each has one stage in every batch; else, and once Spark has forgotten a stage
before it was seen, nothing is told of the query any more.  What is counted is what travels: an aggregation
hands on partial results, fewer than the records that it got.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from yarnflow.core.ids import VertexId
from yarnflow.spark.metrics.status_store import StageRun
from yarnflow.spark.metrics.vertices import JobPlaces, QueryVertices

#: ``spark.ui.retainedStages`` of the session
RETAINED_STAGES: Final = 50
#: stages that wait for the end of their batch; a batch has few
_MAX_WAITING: Final = 200


@dataclass(slots=True)
class NativeRecords:
    """Of one attempt.

    Parameters
    ----------
    places : JobPlaces
    began_ms : int
        When the attempt began; stages that ended before are an earlier one's.
    """

    places: JobPlaces
    began_ms: int = 0
    _last_stage: int = -1
    #: query → stages of batches that have not ended
    _waiting: dict[str, list[StageRun]] = field(default_factory=dict)
    #: vertex → what its stages have read, and handed on
    _counts: dict[VertexId, tuple[int, int]] = field(default_factory=dict)
    #: queries of which something is not known
    _lost: set[str] = field(default_factory=set)

    def add(self, stages: Sequence[StageRun], names: Mapping[str, str], ended: Mapping[str, int]) -> None:
        """Take over what has happened since the last call.

        Parameters
        ----------
        stages : sequence of StageRun
            The last ones of all queries, the oldest first.
        names : mapping
            Spark's id of a query → its name.
        ended : mapping
            Query → its last batch that has ended.
        """
        news = [
            stage
            for stage in stages
            if stage.stage_id > self._last_stage and stage.completed_ms > self.began_ms
        ]
        if len(news) == len(stages) >= RETAINED_STAGES:
            # there may have been more
            self._lost |= set(self.places.queries)
        for stage in news:
            self._last_stage = stage.stage_id
            query = names.get(stage.query_id, "")
            if query in self.places.queries and query not in self._lost:
                self._waiting.setdefault(query, []).append(stage)
        for query, waiting in list(self._waiting.items()):
            last = ended.get(query, -1)
            done = [stage for stage in waiting if stage.batch_id <= last]
            self._waiting[query] = [stage for stage in waiting if stage.batch_id > last][-_MAX_WAITING:]
            self._count(self.places.queries[query], done)

    def counts(self, query: QueryVertices) -> Mapping[VertexId, tuple[int, int]]:
        """Vertex → records that its stages have read and handed on; empty = not known."""
        if query.query in self._lost or not query.in_a_row:
            return {}
        return {key: self._counts[key] for key in query.vertices if key in self._counts}

    def _count(self, query: QueryVertices, done: Sequence[StageRun]) -> None:
        batches: dict[int, dict[int, list[StageRun]]] = {}
        for stage in done:
            batches.setdefault(stage.batch_id, {}).setdefault(stage.stage_id, []).append(stage)
        for batch in batches.values():
            if len(batch) != len(query.vertices):
                self._lost.add(query.query)
                return
            for vertex_id, number in zip(query.vertices, sorted(batch)):
                read, handed_on = self._counts.get(vertex_id, (0, 0))
                self._counts[vertex_id] = (
                    read + sum(run.records_in for run in batch[number]),
                    handed_on + sum(run.records_out for run in batch[number]),
                )
