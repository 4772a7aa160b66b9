"""Rows into a database, exactly once.

A micro-batch is one transaction of one task: its rows and the note that they are there (see
:mod:`yarnflow.operators.databases.batch_table`).  Decides so because nothing less holds for every job: tasks
that commit rows of their own would have to hold the same rows when the batch is done again, and they need not
(files are split by the number of cores there are, functions may answer otherwise).  Spark's JDBC writer
commits task by task and has no place for the note; prepared transactions are switched off in most databases.

A driver claims its sinks before it looks which batch comes next, so whatever an earlier driver still has on
its way is refused by the database.  Flink counterpart: ``JdbcSink.exactlyOnceSink``.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame

from yarnflow.errors import DatabaseUnavailable
from yarnflow.graph.connectors.sinks import JdbcSink
from yarnflow.operators.databases.batch_table import BatchTable
from yarnflow.operators.databases.jdbc_url import database_address
from yarnflow.operators.databases.statement import with_marks
from yarnflow.operators.databases.tokens import NO_BATCH, BatchToken, RunToken, is_written
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.connectors.jdbc.connections import Database
from yarnflow.spark.connectors.jdbc.kept_batches import KeptBatches
from yarnflow.spark.translate.arrow_values import column_values

logger = logging.getLogger(__name__)

_FOUND_DDL: Final = "rows bigint, written bigint"
#: between two tries, times the number of those before
_RETRY_S: Final = 1.0


class JdbcWriter(BatchSink):
    """Rows of a database, exactly once.

    Parameters
    ----------
    sink : JdbcSink
    writer_id : str
        The sink's name in the table of batches; the same after a restart.
    run : RunToken
        The attempt of the job that writes.
    place : str
        The sink and its line in the program, which errors begin with.
    """

    claims = True

    def __init__(self, sink: JdbcSink, writer_id: str, run: RunToken, place: str = "") -> None:
        self._sink = sink
        self._id = writer_id
        self._run = run
        self._database = Database(database_address(sink.url, sink.user, sink.password), place)

    def open(self, planned: int = NO_BATCH) -> None:
        """Claim the sink for this attempt.

        Parameters
        ----------
        planned : int
            No later batch can have been written.

        Raises
        ------
        SinkTaken
            A later attempt of the job has it.
        DatabaseError
            Another job has gone on from the same checkpoint, or the database cannot be written to.
        """
        with self._database.connection() as connection:
            before = BatchTable(connection).claim(self._run.batch(self._id, planned))
        logger.info("Sink %s has written batches up to %d.", self._id, before.batch_id)

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Write a batch that is not there yet.

        A batch that is there is computed all the same: state comes of it, and Spark fails a query whose state
        was not written.
        """
        task = WriteTask(
            self._database,
            with_marks(self._sink.statement, self._database.mark),
            self._sink.batch_rows,
            self._sink.max_retries,
            self._run.batch(self._id, batch_id),
        )
        found = frame.repartition(1).mapInArrow(cast(Any, task), _FOUND_DDL).collect()
        # Spark runs no task where it knows that there are no rows
        rows, written = (int(found[0][0]), int(found[0][1])) if found else (0, -1)
        if written >= 0:
            logger.info("Batch %d of sink %s was there, with %d rows.", batch_id, self._id, written)
            if rows != written:
                logger.warning(
                    "Batch %d of sink %s was written with %d rows and has %d now that it is done again: a "
                    "function, or a timer of processing time, does not give the same twice.",
                    batch_id, self._id, written, rows,
                )  # fmt: skip
        return rows

    def finish(self) -> None:
        """The row stays: it fences whoever believes that the job still runs."""


class WriteTask:
    """Writes all rows of a batch, in a worker.

    Gives one row: how many there are, and how many were there before; -1 = none was.

    Parameters
    ----------
    database : Database
    statement : str
        With the driver's marks.
    batch_rows : int
        Rows handed to the database at a time.
    max_retries : int
        How often a database that does not answer is asked again.
    token : BatchToken
    wait : callable
        Waits so many seconds.
    """

    def __init__(
        self,
        database: Database,
        statement: str,
        batch_rows: int,
        max_retries: int,
        token: BatchToken,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._database = database
        self._statement = statement
        self._batch_rows = batch_rows
        self._max_retries = max_retries
        self._token = token
        self._wait = wait

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, written = self._write_with_retries(batch for batch in batches if batch.num_rows)
        yield pa.RecordBatch.from_pydict({"rows": [rows], "written": [written]})

    def _write_with_retries(self, batches: Iterator[pa.RecordBatch]) -> tuple[int, int]:
        first = next(batches, None)
        if first is None:
            return 0, -1
        batches = itertools.chain((first,), batches)
        if not self._max_retries:
            return self._write(batches)
        kept = KeptBatches(batches)
        try:
            for tried in range(self._max_retries):
                try:
                    return self._write(kept)
                except DatabaseUnavailable as error:
                    # whether a commit that was broken off has come through is seen in the table
                    logger.warning("Trying again: %s", error)
                    self._wait(_RETRY_S * (tried + 1))
            return self._write(kept)
        finally:
            kept.close()

    def _write(self, batches: Iterable[pa.RecordBatch]) -> tuple[int, int]:
        with self._database.connection() as connection:
            table = BatchTable(connection)
            stored = table.check(self._token)
            if is_written(self._token, stored):
                return sum(batch.num_rows for batch in batches), stored.written_rows
            rows = 0
            cursor = connection.cursor()
            for batch in batches:
                values = list(zip(*map(column_values, batch.columns), strict=True))
                for start in range(0, len(values), self._batch_rows):
                    cursor.executemany(self._statement, values[start : start + self._batch_rows])
                rows += len(values)
            if not table.advance(self._token, rows):
                # a copy of this task was faster
                return rows, rows
            connection.commit()
            return rows, -1
