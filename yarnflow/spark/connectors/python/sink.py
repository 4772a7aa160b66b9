"""Batches to a user's data source.

Decides the order of a batch: tasks write, the driver makes sure that it may still commit, the user's code
commits with the number of the batch.  A batch that is done again comes with the same number, which is all
that makes it exactly-once; a writer of batches (not of streams) is not told any.  Spark counterpart:
``WriteToMicroBatchDataSource``.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType, _create_row

from yarnflow.errors import LeaseLost, UserCodeError, YarnflowError
from yarnflow.graph.closures import dumps_with_classes
from yarnflow.graph.connectors.python import PythonSink
from yarnflow.operators.databases.commits import current_batch
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.connectors.python.definition import load_data_source
from yarnflow.spark.run.user_errors import user_traceback_of

logger = logging.getLogger(__name__)

_MESSAGES: Final = "rows bigint, message binary"
_ARROW: Final = (DataSourceArrowWriter, DataSourceStreamArrowWriter)

_Writer = DataSourceWriter | DataSourceStreamWriter


class PythonWriter(BatchSink):
    """Batches of one sink.

    Parameters
    ----------
    sink : PythonSink
    writer_id : str
        Names the sink in the token that the user's code can ask for; the same after a restart.
    token : RunToken
        The attempt of the job.
    fence : callable
        Raises when this driver may not write.
    """

    def __init__(self, sink: PythonSink, writer_id: str, token: RunToken, fence: Fence) -> None:
        self._sink = sink
        self._id = writer_id
        self._token = token
        self._fence = fence
        self._writer: _Writer | None = None
        self._payload = b""

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Have a batch written and committed.

        Raises
        ------
        UserCodeError
            The user's code raised in the driver.
        """
        writer = self._made(frame.schema)
        tasks = WriteTask(self._payload, frame.schema)
        try:
            done = frame.mapInArrow(cast(Any, tasks), _MESSAGES).collect()
            messages = [cast(WriterCommitMessage, pickle.loads(row.message)) for row in done]  # noqa: S301
            # a task may have taken long; whoever took over meanwhile has written the batch
            self._fence()
            self._call(writer, "commit", messages, batch_id)
        except LeaseLost:
            # the batch is another driver's, and so is what is to be done about it
            raise
        except Exception:
            # of what tasks have written before one failed, nothing is known
            self._abort(writer, batch_id)
            raise
        return sum(row.rows for row in done)

    def _made(self, struct: StructType) -> _Writer:
        if self._writer is None:
            source = load_data_source(self._sink.data_source, self._sink.options)
            try:
                self._writer = _writer_of(source, struct)
                # before it commits anything, which may give it what cannot be pickled
                self._payload = dumps_with_classes(self._writer)
            except Exception as error:
                raise self._user_error(error) from error
        return self._writer

    def _call(
        self, writer: _Writer, method: str, messages: list[WriterCommitMessage], batch_id: int
    ) -> None:
        numbered = (batch_id,) if isinstance(writer, DataSourceStreamWriter) else ()
        try:
            with current_batch(self._token.batch(self._id, batch_id)):
                getattr(writer, method)(messages, *numbered)
        except LeaseLost:
            raise
        except Exception as error:
            raise self._user_error(error, f"batch {batch_id}, ") from error

    def _abort(self, writer: _Writer, batch_id: int) -> None:
        try:
            self._call(writer, "abort", [], batch_id)
        except YarnflowError as error:
            # what failed before is what the job is to fail with
            logger.warning("abort() of batch %d failed: %s", batch_id, error)

    def _user_error(self, error: Exception, where: str = "") -> YarnflowError:
        if isinstance(error, YarnflowError):
            return error
        found = user_traceback_of(error)
        name = self._sink.data_source.name
        return UserCodeError(f"{found.summary} ({where}data source {name})", found.text)


def _writer_of(source: DataSource, struct: StructType) -> _Writer:
    if type(source).streamWriter is not DataSource.streamWriter:
        made: Any = source.streamWriter(struct, overwrite=False)
        expected: type = DataSourceStreamWriter
    else:
        made, expected = source.writer(struct, overwrite=False), DataSourceWriter
    if not isinstance(made, expected):
        raise TypeError(f"{type(source).__name__} gave the writer {made!r}, which is no {expected.__name__}")
    return cast(_Writer, made)


class WriteTask:
    """Has the rows of one partition written, in a worker; gives the commit message.

    Parameters
    ----------
    writer : bytes
        Pickled.
    struct : StructType
        Fields of the rows.
    """

    def __init__(self, writer: bytes, struct: StructType) -> None:
        self._writer = writer
        self._struct = struct

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # part of the program, as its functions are
        writer = pickle.loads(self._writer)  # noqa: S301
        counted = _Counted(batches)
        rows = iter(counted) if isinstance(writer, _ARROW) else _rows(counted, self._struct)
        message = writer.write(rows)
        if not isinstance(message, WriterCommitMessage):
            raise TypeError(
                f"write() of {type(writer).__name__} gave {message!r}, which is no WriterCommitMessage"
            )
        columns = [pa.array([counted.rows], pa.int64()), pa.array([dumps_with_classes(message)])]
        yield pa.record_batch(columns, names=["rows", "message"])


class _Counted:
    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _rows(batches: Iterable[pa.RecordBatch], struct: StructType) -> Iterator[Any]:
    convert = [ArrowTableToRowsConversion._create_converter(field.dataType) for field in struct.fields]
    names = struct.fieldNames()
    for batch in batches:
        columns = [
            [make(value) for value in column.to_pylist()]
            for make, column in zip(convert, batch.columns, strict=True)
        ]
        for values in zip(*columns, strict=True):
            yield _create_row(names, values)
