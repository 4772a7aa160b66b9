"""Documents of a micro-batch, by workers.  At-least-once, and each replaces itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from yarnflow.errors import EnvironmentUnusable
from yarnflow.graph.connectors.elasticsearch import ElasticsearchServer, ElasticsearchSink
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.connectors.elasticsearch.bulk import Document, chunks, waits_s, write_documents
from yarnflow.spark.connectors.rows_of_columns import sink_rows

_COUNT_DDL: Final = "count bigint"


class OpenCluster(Protocol):
    """See :class:`~yarnflow.spark.connectors.elasticsearch.client.Cluster`."""

    def send(self, lines: bytes) -> Sequence[Mapping[str, Any]]: ...

    def close(self) -> None: ...


class ElasticsearchWriter(BatchSink):
    """Documents of one sink.

    Parameters
    ----------
    sink : ElasticsearchSink
    scalar : bool or None
        Batches have columns: whether a record is the bare value of one; None = they have documents.
    writer_id : str
        Begins the ids of documents that have none; the same after a restart.
    fence : callable
        Raises when this driver may not write.

    Raises
    ------
    EnvironmentUnusable
        The client is not installed.
    """

    def __init__(
        self, sink: ElasticsearchSink, scalar: bool | None, writer_id: str, fence: Fence
    ) -> None:
        try:
            from yarnflow.spark.connectors.elasticsearch import client  # noqa: F401
        except ImportError as error:
            raise EnvironmentUnusable(
                "the Elasticsearch sink needs the Python package opensearch-py, which cannot be imported "
                f"here ({error}); add it to the job's environment: pip install 'yarnflow[elasticsearch]'"
            ) from None
        self._sink = sink
        self._scalar = scalar
        self._id = writer_id
        self._fence = fence

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Send a batch's documents."""
        rows = sink_rows(frame, self._sink, self._scalar)
        self._fence()
        task = SendDocuments(self._sink, f"{self._id}-{batch_id}")
        counts = rows.mapInArrow(cast(Any, task), _COUNT_DDL).collect()
        return sum(int(count) for (count,) in counts)


class SendDocuments:
    """Sends the documents of a partition; for ``mapInArrow``.

    Parameters
    ----------
    sink : ElasticsearchSink
    batch : str
        Begins the ids of documents that have none.
    wait : callable
        Waits so many seconds.
    connect : callable, optional
    """

    def __init__(
        self,
        sink: ElasticsearchSink,
        batch: str,
        wait: Callable[[float], None] = time.sleep,
        connect: Callable[[ElasticsearchServer], OpenCluster] | None = None,
    ) -> None:
        self._sink = sink
        self._batch = batch
        self._wait = wait
        self._connect = connect or _connect

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sink, count = self._sink, 0
        cluster: OpenCluster | None = None
        waits = waits_s(sink.backoff, sink.max_retries, sink.delay_ms)
        try:
            for some in chunks(self._documents(batches), sink.max_actions, sink.max_bytes):
                cluster = cluster or self._connect(sink.server)
                write_documents(some, cluster.send, waits, self._wait)
                count += len(some)
        finally:
            if cluster is not None:
                cluster.close()
        yield pa.RecordBatch.from_pydict({"count": pa.array([count], pa.int64())})

    def _documents(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Document]:
        context = TaskContext.get()
        place = f"{self._batch}-{0 if context is None else context.partitionId()}"
        number = 0
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("index", "id", "source"))
            for index, key, source in zip(*columns, strict=True):
                yield Document(index, f"{place}-{number}" if key is None else key, source, key is not None)
                number += 1


def _connect(server: ElasticsearchServer) -> OpenCluster:
    from yarnflow.spark.connectors.elasticsearch.client import Cluster

    return Cluster(server)
