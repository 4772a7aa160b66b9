"""Sources that a job receives in its driver: which there are, and how far its queries have read them.

A source is received once, however many queries of the job read it; a part is done when all of them have
committed the batch that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession

from yarnflow.core.checkpoint.query_files import OFFSETS
from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.graph.job_graph import StreamNode
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.checkpoints.positions import committed_batch, planned_batch
from yarnflow.spark.connectors.feeds.data_source import FORMAT, FeedDataSource, part_of
from yarnflow.spark.connectors.feeds.server import FeedServer
from yarnflow.spark.connectors.rabbitmq.receiver import Receiver
from yarnflow.spark.connectors.rabbitmq.source import queue_receiver
from yarnflow.spark.hadoop_files import HadoopFiles

#: in Spark's log of offsets: the version, what holds for all sources, and a line for each source
_LINES_BEFORE_SOURCES: Final = 2


class Reader(Protocol):
    """A query."""

    #: its checkpoint directory
    directory: str

    def reads(self, node_id: int) -> bool:
        """Whether a source is one of its."""


class ReceivedSources:
    """Those of one attempt of a job.

    Parameters
    ----------
    spark : SparkSession
    directory : str
        For what is kept of sources; part of the job's checkpoint directory.
    fence : callable
        Raises when this driver may not write.
    """

    def __init__(self, spark: SparkSession, directory: str, fence: Fence) -> None:
        self._spark = spark
        self._directory = directory
        self._fence = fence
        self._files = HadoopFiles(spark)
        self._server: FeedServer | None = None
        self._nodes: dict[int, StreamNode] = {}
        self._receivers: list[Receiver] = []

    def frame(self, node: StreamNode, source: RabbitMqSource) -> DataFrame:
        """The source's messages and their places as a streaming DataFrame."""
        if self._server is None:
            self._server = FeedServer()
            self._server.start()
            self._spark.dataSource.register(FeedDataSource)
        self._nodes[node.node_id] = node
        return (
            self._spark.readStream.format(FORMAT)
            .option("feed", node.operator_hash)
            .option("queue", source.queue)
            .option("port", self._server.port)
            .option("secret", self._server.secret)
            .load()
        )

    def open(self, queries: Sequence[Reader]) -> None:
        """Connect and begin to receive, before the queries start.

        Raises
        ------
        ServerUnavailable
            A broker does not answer.
        ServerError
            It refuses what it is asked for.
        EnvironmentUnusable
            A client is not installed.
        """
        for node in self._nodes.values():
            source = node.operator
            assert isinstance(source, RabbitMqSource), "others are not received here"
            directories = [query.directory for query in queries if query.reads(node.node_id)]
            committed = self._progress(node.operator_hash, directories, committed_batch, min)
            planned = self._progress(node.operator_hash, directories, planned_batch, max)
            receiver = queue_receiver(
                source,
                self._files,
                f"{self._directory}/{node.operator_hash}",
                committed,
                self._fence,
            )
            self._receivers.append(receiver)
            receiver.open(planned())
            assert self._server is not None, "there is a frame"
            self._server.add(node.operator_hash, receiver)

    def check(self) -> None:
        """Raises what has ended the receiving of a source."""
        for receiver in self._receivers:
            receiver.check()

    @contextmanager
    def held(self) -> Iterator[None]:
        """While the job's files are copied none of them is removed."""
        receivers = list(self._receivers)
        for receiver in receivers:
            receiver.hold()
        try:
            yield
        finally:
            for receiver in receivers:
                receiver.release()

    def close(self) -> None:
        """Acknowledge what is committed and disconnect; never raises."""
        for receiver in self._receivers:
            with suppress(Exception):
                receiver.close()
        if self._server is not None:
            self._server.close()

    def _progress(
        self,
        feed: str,
        directories: Sequence[str],
        batch: Callable[[HadoopFiles, str], int],
        of_all: Callable[[Iterable[int]], int],
    ) -> Callable[[], int]:
        """The part up to which the queries have got with their last batches, all (``min``) or one of them."""
        files = self._files
        #: by directory: a batch and its part
        known: dict[str, tuple[int, int]] = {}

        def part(directory: str) -> int:
            last = batch(files, directory)
            if last < 0:
                return 0
            if directory not in known or known[directory][0] != last:
                lines = files.read(f"{directory}/{OFFSETS}/{last}").decode().splitlines()
                known[directory] = last, part_of(lines[_LINES_BEFORE_SOURCES:], feed, of_all)
            return known[directory][1]

        return lambda: of_all(map(part, directories))
