"""Commands to Redis, exactly once.

A micro-batch is one transaction of one worker, with a note that it is there (see
:mod:`yarnflow.spark.connectors.redis.store`), for the reasons that :mod:`yarnflow.spark.connectors.jdbc.sink`
gives.  Redis runs nothing else meanwhile, and keeps the commands in memory until it has them all.

Redis may lose the note, where a database does not: it may evict any key.  So the job's checkpoint says that
there was one (:class:`ClaimMark`), and no new one is made.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, cast

import pyarrow as pa
from pyspark.sql import DataFrame

from yarnflow.errors import EnvironmentUnusable
from yarnflow.graph.connectors.redis import RedisSink
from yarnflow.operators.databases.tokens import BatchToken, RunToken, StoredBatch
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.connectors.retries import tried_again
from yarnflow.spark.connectors.rows_of_columns import sink_rows

logger = logging.getLogger(__name__)

_FOUND_DDL: Final = "rows bigint, written bigint"
#: before a further try, times the number of those before
_RETRY_S: Final = 1.0


class Store(Protocol):
    """See :class:`~yarnflow.spark.connectors.redis.store.RedisStore`."""

    def claim(self, token: BatchToken, noted: bool) -> StoredBatch: ...

    def write(self, token: BatchToken, commands: list[list[bytes]]) -> int: ...


class MarkFiles(Protocol):
    """Of :class:`~yarnflow.spark.hadoop_files.HadoopFiles`, what a mark needs."""

    def exists(self, path: str) -> bool: ...

    def write(self, path: str, content: bytes) -> None: ...


class ClaimMark:
    """A file that says that the sink was claimed; a part of the job's checkpoints.

    Parameters
    ----------
    files : MarkFiles
    path : str
        Of this sink alone (a URI).
    fence : callable
        Raises when this driver may not write.
    """

    def __init__(self, files: MarkFiles, path: str, fence: Fence) -> None:
        self._files = files
        self._path = path
        self._fence = fence

    def is_set(self) -> bool:
        """Whether this attempt, or an earlier one, has set it."""
        return self._files.exists(self._path)

    def set(self) -> None:
        """Before anything is written."""
        if not self.is_set():
            self._fence()
            self._files.write(self._path, b"claimed\n")


class RedisWriter(BatchSink):
    """Commands of one sink.

    Parameters
    ----------
    sink : RedisSink
    scalar : bool or None
        Batches have columns: whether a record is the bare value of one; None = they have commands.
    writer_id : str
        The sink's name in Redis; the same after a restart.
    run : RunToken
        The attempt of the job that writes.
    mark : ClaimMark

    Raises
    ------
    EnvironmentUnusable
        The client is not installed.
    """

    claims = True

    def __init__(
        self, sink: RedisSink, scalar: bool | None, writer_id: str, run: RunToken, mark: ClaimMark
    ) -> None:
        try:
            from yarnflow.spark.connectors.redis.store import RedisStore
        except ImportError as error:
            raise EnvironmentUnusable(
                f"the Redis sink needs the Python package redis, which cannot be imported here ({error}); "
                "add it to the job's environment: pip install 'yarnflow[redis]'"
            ) from None
        self._sink = sink
        self._scalar = scalar
        self._id = writer_id
        self._run = run
        self._mark = mark
        self._store: Store = RedisStore(sink.server)

    def open(self, planned: int) -> None:
        """Claim the sink for this attempt.

        Parameters
        ----------
        planned : int
            No later batch can have been written.

        Raises
        ------
        SinkTaken
            A later attempt of the job has it.
        ServerError
            Redis refuses, or has lost the sink's note, or another job has gone on from the same checkpoint.
        """
        before = self._store.claim(self._run.batch(self._id, planned), self._mark.is_set())
        self._mark.set()
        logger.info("Sink %s has written batches up to %d.", self._id, before.batch_id)

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Write a batch that is not there yet; it is computed all the same, for its state."""
        rows = sink_rows(frame, self._sink, self._scalar)
        task = RunCommands(self._store, self._run.batch(self._id, batch_id), self._sink.max_retries)
        found = rows.repartition(1).mapInArrow(cast(Any, task), _FOUND_DDL).collect()
        # Spark runs no task where it knows that there are no rows
        count, written = (int(found[0][0]), int(found[0][1])) if found else (0, -1)
        if written not in (-1, count):
            logger.warning(
                "Batch %d of sink %s was written with %d commands and has %d now that it is done again: a "
                "function, or a timer of processing time, does not give the same twice.",
                batch_id, self._id, written, count,
            )  # fmt: skip
        return count


class RunCommands:
    """Runs all commands of a batch, in a worker.

    Gives one row: how many there are, and how many were run before; -1 = none were.

    Parameters
    ----------
    store : Store
    token : BatchToken
    max_retries : int
        How often a server that does not answer is asked again.
    wait : callable
        Waits so many seconds.
    """

    def __init__(
        self, store: Store, token: BatchToken, max_retries: int, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._store = store
        self._token = token
        self._max_retries = max_retries
        self._wait = wait

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        commands = [command for batch in batches for command in batch.column("arguments").to_pylist()]
        written = -1
        if commands:
            waits = [_RETRY_S * (tried + 1) for tried in range(self._max_retries)]
            written = tried_again(lambda: self._store.write(self._token, commands), waits, self._wait)
        yield pa.RecordBatch.from_pydict({"rows": [len(commands)], "written": [written]})
