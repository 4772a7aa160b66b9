"""Sinks, one micro-batch at a time.

Decides how a batch leaves the job.  Files are exactly-once by a redo log: the batch is staged
in a hidden directory, a manifest of the moves is written, then the files are moved to names
made of the query's id and the batch number; a batch done again finds its manifest, finishes the
moves and computes nothing.  Printing is at-least-once.  Never decides when a batch runs.
Flink counterparts: ``PrintSink``, ``FileSink``.
"""

from __future__ import annotations

import json
import sys
from pathlib import PurePosixPath
from typing import Any, Final, Protocol, TextIO

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from yarnflow.errors import InvalidExpression, UserCodeError
from yarnflow.graph.closures import load_closure
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.operators import Closure, FileSink, ForeachBatchSink, PrintSink
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.schemas import quoted
from yarnflow.spark.user_errors import user_traceback_of

STAGING: Final = ".yarnflow-staging"
_UNKNOWN_ROWS: Final = -1


class BatchSink(Protocol):
    """Takes the batches of one sink."""

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Write one batch; returns its rows, -1 if that is not known."""

    def finish(self) -> None:
        """Every batch is committed; none will come again."""


def batch_sink(spark: SparkSession, node: StreamNode, scalar: bool, query_id: str) -> BatchSink:
    """The writer of a sink node.

    Parameters
    ----------
    query_id : str
        Identity of the query's checkpoint: the same after a restart, another for another job.
    """
    operator = node.operator
    if isinstance(operator, PrintSink):
        return PrintWriter(operator.identifier, scalar)
    if isinstance(operator, FileSink):
        return FileWriter(spark, operator, f"{query_id[:8]}-{node.operator_hash[:8]}")
    assert isinstance(operator, ForeachBatchSink)
    return ForeachBatchWriter(operator.closure)


class PrintWriter:
    """Records on standard output, ``identifier> +I[a, 1]``.

    Parameters
    ----------
    identifier : str
        Prefix; none if empty.
    scalar : bool
        Print the bare value.
    out : text file, optional
        Default the driver's standard output.
    """

    def __init__(self, identifier: str, scalar: bool, out: TextIO | None = None) -> None:
        self._prefix = f"{identifier}> " if identifier else ""
        self._scalar = scalar
        self._out = out

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Print a batch; no more than two partitions of it are in memory."""
        out = self._out or sys.stdout
        rows = 0
        for row in frame.select(_printed(frame, self._scalar)).toLocalIterator(prefetchPartitions=True):
            out.write(f"{self._prefix}{row[0]}\n")
            rows += 1
        out.flush()
        return rows

    def finish(self) -> None:
        """Nothing to do."""


def _printed(frame: DataFrame, scalar: bool) -> Any:
    """The record as text, formatted by Spark: time zones and nested values as in its SQL."""
    texts = [_text(F.col(quoted(f.name)), f.dataType) for f in frame.schema.fields]
    if scalar and len(texts) == 1:
        return texts[0]
    # concat_ws skips nulls, which _text never gives
    return F.concat(F.lit("+I["), F.concat_ws(", ", *texts), F.lit("]"))


def _text(column: Any, kind: DataType) -> Any:
    if isinstance(kind, BinaryType):
        return F.coalesce(F.hex(column), F.lit("null"))
    if isinstance(kind, (ArrayType, MapType, StructType)):
        return F.coalesce(F.to_json(column), F.lit("null")) if _holds_binary(kind) else _cast(column)
    return _cast(column)


def _cast(column: Any) -> Any:
    return F.coalesce(column.cast("string"), F.lit("null"))


def _holds_binary(kind: DataType) -> bool:
    return "binary" in kind.simpleString()


class FileWriter:
    """Files of one sink, exactly once.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    sink : FileSink
        Path, format, options, partition fields.
    writer_id : str
        In every file's name; the same after a restart.
    """

    def __init__(self, spark: SparkSession, sink: FileSink, writer_id: str) -> None:
        self._spark = spark
        self._sink = sink
        self._id = writer_id
        self._files = HadoopFiles(spark)
        self._path = sink.path.rstrip("/") or "/"
        self._staging = f"{self._path}/{STAGING}/{writer_id}"

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Write a batch, or finish what a crash left of it."""
        manifest = f"{self._staging}/{batch_id}.json"
        if self._files.exists(manifest):
            return self._move(manifest, batch_id)
        data = f"{self._staging}/{batch_id}"
        self._files.delete(data)
        unknown = [name for name in self._sink.partition_by if name not in frame.columns]
        if unknown:
            raise InvalidExpression(f"file sink {self._path}: no field '{unknown[0]}' to partition by")
        observed = Observation()
        writer = frame.observe(observed, F.count(F.lit(1)).alias("rows")).write.format(self._sink.format)
        writer = writer.options(**self._sink.options)
        if self._sink.partition_by:
            writer = writer.partitionBy(*self._sink.partition_by)
        writer.save(data)
        rows = int(observed.get["rows"])
        if rows:
            moves = self._moves(data, batch_id)
            self._files.write(manifest, json.dumps({"rows": rows, "moves": moves}).encode())
            self._move(manifest, batch_id)
        self._files.delete(data)
        self._forget_before(batch_id)
        return rows

    def finish(self) -> None:
        """Remove the staging directory."""
        self._files.delete(self._staging)
        parent = f"{self._path}/{STAGING}"
        if not self._files.children(parent):
            self._files.delete(parent)

    def _moves(self, data: str, batch_id: int) -> list[tuple[str, str]]:
        """Staged file → final file, both relative; empty files stay behind."""
        moves: list[tuple[str, str]] = []
        staged = [name for name, size in self._files.files_below(data) if size]
        for name in staged:
            if len(staged) > 1 and self._is_empty_parquet(f"{data}/{name}"):
                continue
            path = PurePosixPath(name)
            # part-00000-<uuid>-c000.snappy.parquet → .snappy.parquet
            suffixes = "".join(path.suffixes)
            moves.append((name, str(path.parent / f"part-{self._id}-{batch_id}-{len(moves)}{suffixes}")))
        return moves

    def _is_empty_parquet(self, path: str) -> bool:
        # only the first partition's task writes a file when it has no rows
        if self._sink.format != "parquet" or self._sink.partition_by or "/part-00000-" not in path:
            return False
        jvm: Any = self._spark.sparkContext._jvm
        hadoop = self._spark.sparkContext._jsc.hadoopConfiguration()
        parquet = jvm.org.apache.parquet.hadoop
        reader = parquet.ParquetFileReader.open(
            parquet.util.HadoopInputFile.fromPath(self._files.path(path), hadoop)
        )
        try:
            return int(reader.getRecordCount()) == 0
        finally:
            reader.close()

    def _move(self, manifest: str, batch_id: int) -> int:
        log = json.loads(self._files.read(manifest))
        data = f"{self._staging}/{batch_id}"
        made: set[str] = set()
        for staged, final in log["moves"]:
            directory = str(PurePosixPath(final).parent)
            if directory not in made:
                self._files.make_directory(f"{self._path}/{directory}" if directory != "." else self._path)
                made.add(directory)
            # what is not staged any more was moved before the crash
            if self._files.exists(f"{data}/{staged}"):
                self._files.rename(f"{data}/{staged}", f"{self._path}/{final}")
        self._files.delete(data)
        return int(log["rows"])

    def _forget_before(self, batch_id: int) -> None:
        """Manifests of earlier batches: Spark committed those before it began this one."""
        for name in self._files.children(self._staging):
            number = name.partition(".")[0]
            if number.isdigit() and int(number) < batch_id:
                self._files.delete(f"{self._staging}/{name}")


class ForeachBatchWriter:
    """Calls the user's function in the driver.

    Parameters
    ----------
    closure : Closure
        ``f(dataframe, batch_id)``.
    """

    def __init__(self, closure: Closure) -> None:
        self._closure = closure
        self._function = load_closure(closure)

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Call the function."""
        try:
            self._function(frame, batch_id)
        except PySparkException:
            raise
        except Exception as error:
            found = user_traceback_of(error)
            raise UserCodeError(
                f"{found.summary} (batch {batch_id}, {self._closure.origin})", found.text
            ) from error
        return _UNKNOWN_ROWS

    def finish(self) -> None:
        """Nothing to do."""
