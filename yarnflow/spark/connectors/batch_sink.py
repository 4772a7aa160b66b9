"""What every sink is made of, and what it does with the micro-batches of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from yarnflow.graph.job_graph import StreamNode
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.checkpoints.job import Fence


class BatchSink(ABC):
    """Takes the batches of one sink; one object for each attempt of the job."""

    #: :meth:`open` must be called before the query starts
    claims = False

    def open(self, planned: int) -> None:
        """Claim the sink for this attempt, if it :attr:`claims` it.

        Parameters
        ----------
        planned : int
            No later batch can have been written by an earlier attempt.
        """

    @abstractmethod
    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Write one batch; returns its rows, -1 if that is not known."""

    def finish(self) -> None:
        """Every batch is committed; none will come again."""

    def close(self) -> None:
        """The attempt is over, however it has ended: let go of what this process holds."""


@dataclass(frozen=True, slots=True)
class SinkPlace:
    """Where a sink stands, and what it may use."""

    spark: SparkSession
    node: StreamNode
    #: records have columns: whether a record is the bare value of one; None = they are elements, prepared for
    #: this sink by :mod:`yarnflow.spark.elements`
    scalar: bool | None
    #: identity of the query's checkpoint: the same after a restart, another for another job
    query_id: str
    #: the attempt of the job
    token: RunToken
    #: raises when this driver may not write, or was told to stop
    fence: Fence
    #: for batches that are not written completely; part of the job's checkpoint directory
    directory: str
    #: for elements that the program itself reads
    parts_directory: str
    #: seals those
    part_key: bytes = field(default=b"", repr=False)
    #: of the sink in the query's checkpoint (:mod:`yarnflow.graph.state.sinks`); empty = the operator's hash
    key: str = ""

    @property
    def shown(self) -> str:
        """The sink and its line in the program, for messages."""
        return f"'{self.node.name}' ({self.node.origin})"

    @property
    def short_id(self) -> str:
        """Tells the sink's files from those of other sinks and jobs."""
        return short_id(self.query_id, self.sink_key)

    @property
    def full_id(self) -> str:
        """Tells the sink from all others where nothing else does."""
        return f"{self.query_id}/{self.sink_key}"

    @property
    def sink_key(self) -> str:
        """The same in all programs that go on from the query's state."""
        return self.key or self.node.operator_hash


def short_id(query_id: str, sink_key: str) -> str:
    """See :attr:`SinkPlace.short_id`."""
    return f"{query_id[:8]}-{sink_key[:8]}"
