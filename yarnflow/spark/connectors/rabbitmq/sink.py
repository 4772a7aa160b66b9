"""Messages to a queue, by workers.  At-least-once.

Messages go in transactions of some thousand: they are in the queue, and on the broker's disk if the queue is
durable, before the micro-batch is committed.  RabbitMQ has no place where a batch could be noted together
with its messages, so a batch, or a task, that is done again sends them again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, cast

import pyarrow as pa
from pyspark.sql import DataFrame

from yarnflow.errors import EnvironmentUnusable
from yarnflow.graph.connectors.rabbitmq import RabbitMqServer, RabbitMqSink
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.connectors.retries import tried_again
from yarnflow.spark.connectors.rows_of_columns import sink_rows

logger = logging.getLogger(__name__)

_COUNT_DDL: Final = "count bigint"
#: messages, and bytes, of a transaction
_CHUNK_MESSAGES: Final = 5_000
_CHUNK_BYTES: Final = 8 * 1024 * 1024
#: how often a worker tries again while the broker is away; then the task fails, and Spark tries that again
_TRIES: Final = 3


class Outbox(Protocol):
    """A publisher; see :class:`~yarnflow.spark.connectors.rabbitmq.broker.Publisher`."""

    def publish(self, bodies: list[bytes]) -> None: ...

    def close(self) -> None: ...


class RabbitMqWriter(BatchSink):
    """Messages of a queue.

    Parameters
    ----------
    sink : RabbitMqSink
    scalar : bool or None
        Batches have columns: whether a record is the bare value of one; None = they have messages.
    fence : callable
        Raises when this driver may not write.

    Raises
    ------
    EnvironmentUnusable
        The client is not installed.
    """

    def __init__(self, sink: RabbitMqSink, scalar: bool | None, fence: Fence) -> None:
        check_client()
        self._sink = sink
        self._scalar = scalar
        self._fence = fence

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Send a batch's messages."""
        rows = sink_rows(frame, self._sink, self._scalar)
        self._fence()
        task = Publish(self._sink.server, self._sink.queue)
        counts = rows.mapInArrow(cast(Any, task), _COUNT_DDL).collect()
        return sum(int(count) for (count,) in counts)


class Publish:
    """Sends the messages of a partition; for ``mapInArrow``.

    Parameters
    ----------
    server : RabbitMqServer
    queue : str
    wait : callable
        Waits so many seconds.
    """

    def __init__(
        self, server: RabbitMqServer, queue: str, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._server = server
        self._queue = queue
        self._wait = wait
        self._outbox: Outbox | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = 0
        try:
            for bodies in chunks(batches):
                self._publish(bodies)
                count += len(bodies)
        finally:
            self._close()
        yield pa.RecordBatch.from_pydict({"count": pa.array([count], pa.int64())})

    def _publish(self, bodies: list[bytes]) -> None:
        """Whether a transaction that was broken off has come through is not known: it is sent again."""

        def attempt() -> None:
            try:
                if self._outbox is None:
                    self._outbox = self._open()
                self._outbox.publish(bodies)
            except BaseException:
                self._close()
                raise

        tries = _TRIES if self._server.automatic_recovery else 0
        tried_again(attempt, [self._server.recovery_interval_ms / 1000] * tries, self._wait)

    def _open(self) -> Outbox:
        from yarnflow.spark.connectors.rabbitmq.broker import Publisher

        return Publisher(self._server, self._queue)

    def _close(self) -> None:
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None


def chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[list[bytes]]:
    """The messages of a partition in pieces of limited size."""
    bodies: list[bytes] = []
    size = 0
    for batch in batches:
        for body in batch.column("value").to_pylist():
            bodies.append(body)
            size += len(body)
            if len(bodies) >= _CHUNK_MESSAGES or size >= _CHUNK_BYTES:
                yield bodies
                bodies, size = [], 0
    if bodies:
        yield bodies


def check_client() -> None:
    """Raises EnvironmentUnusable where RabbitMQ's client is not installed."""
    try:
        from yarnflow.spark.connectors.rabbitmq import broker  # noqa: F401
    except ImportError as error:
        raise EnvironmentUnusable(
            f"RabbitMQ needs the Python package pika, which cannot be imported here ({error}); add it to the "
            "job's environment: pip install 'yarnflow[rabbitmq]'"
        ) from None
