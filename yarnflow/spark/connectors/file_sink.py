"""Files, exactly once.

Decides by a redo log: a batch is staged in a hidden directory, a manifest of the moves is written,
then the files are moved to names made of the query's id and the batch number; a batch done again
finds its manifest, finishes the moves and writes no row again.  Decides as well which of two
drivers wins: a writer renames what an earlier one left to a staging directory of its own, so that
the earlier one, should it come back to life, finds nothing to move.  The owner's file says which attempt
it is of, so an earlier attempt takes nothing from a later one, whatever it believes of its lease.  Flink
counterpart: ``FileSink`` with its committer.

::

    <sink>/.yarnflow-staging/<writer id>.<incarnation>/owner           the attempt of the incarnation
                                                       <batch>/        staged files
                                                       <batch>.json    the moves
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from yarnflow.core.json_codec import from_json, to_json
from yarnflow.errors import InvalidExpression, LeaseLost, RpcProtocolError, StorageError
from yarnflow.graph.connectors.sinks import FileSink
from yarnflow.operators.databases.tokens import RunToken, is_later
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.connectors.file_rows import bucket_directory, written
from yarnflow.spark.connectors.file_stager import FileStager
from yarnflow.spark.hadoop_files import HadoopFiles, java_cause
from yarnflow.spark.run.user_errors import map_spark_error

STAGING: Final = ".yarnflow-staging"
_OWNER: Final = "owner"


def has_manifest(files: HadoopFiles, path: str, writer_id: str, batch_id: int) -> bool:
    """Whether a writer has begun to bring files of a batch to their places, and knows of no commit of it."""
    staging = f"{path.rstrip('/')}/{STAGING}"
    return any(
        files.exists(f"{staging}/{name}/{batch_id}.json") and files.exists(f"{staging}/{name}/{_OWNER}")
        for name in files.children(staging)
        if name.startswith(f"{writer_id}.")
    )


def _run_token(text: str) -> RunToken:
    try:
        return from_json(RunToken, text)
    except RpcProtocolError as error:
        raise ValueError(str(error)) from error


class FileWriter(BatchSink):
    """Files of one sink, exactly once.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    sink : FileSink
        Path, format, options, partition fields.
    writer_id : str
        In every file's name; the same after a restart.
    fence : callable
        Raises when this driver may not write.
    now_ms : callable
        Since the epoch; names directories of the time of writing.
    run : RunToken, optional
        The attempt of the job; None = not known.
    """

    def __init__(
        self,
        spark: SparkSession,
        sink: FileSink,
        writer_id: str,
        fence: Fence = no_fence,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        run: RunToken | None = None,
    ) -> None:
        self._spark = spark
        self._sink = sink
        self._id = writer_id
        self._files = HadoopFiles(spark)
        self._path = self._files.named(sink.path).rstrip("/") or "/"
        self._fence = fence
        self._parent = f"{self._path}/{STAGING}"
        self._staging = f"{self._parent}/{writer_id}.{uuid.uuid4().hex[:12]}"
        self._stager = FileStager(sink)
        self._now_ms = now_ms
        self._run = run
        self._owns = False

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Write a batch, or finish what a crash left of it."""
        if not self._owns:
            self._take_over()
        manifest = f"{self._staging}/{batch_id}.json"
        if self._files.exists(manifest):
            rows = self._move(manifest, batch_id, redo=True)
            # Spark takes a batch whose state stores were not written in this run for one that was not
            # processed, and fails the query
            frame.write.format("noop").mode("overwrite").save()
            return rows
        data = f"{self._staging}/{batch_id}"
        self._files.delete(data)
        rows = self._staged(frame, data)
        if rows:
            moves = self._moves(data, batch_id)
            if not moves:
                raise StorageError(
                    f"batch {batch_id} of file sink {self._path} has {rows} rows, but no file of them is in "
                    f"{data}; nothing was committed"
                )
            self._fence()
            if not self._files.exists(f"{self._staging}/{_OWNER}"):
                raise self._lost()
            self._files.write(manifest, json.dumps({"rows": rows, "moves": moves}).encode())
            self._move(manifest, batch_id, redo=False)
        self._files.delete(data)
        self._forget_before(batch_id)
        return rows

    def _staged(self, frame: DataFrame, data: str) -> int:
        try:
            return self._stager.stage(written(frame, self._sink), data)
        except Exception as error:  # PySpark's, or py4j's for what PySpark does not convert
            mapped = map_spark_error(error)
            if isinstance(mapped, StorageError):
                raise type(mapped)(f"file sink {self._path}: {mapped.message}") from error
            raise

    def finish(self) -> None:
        """Remove the staging directories of this and of earlier incarnations."""
        for name in self._incarnations():
            self._files.delete(f"{self._parent}/{name}")
        if not self._files.children(self._parent):
            self._files.delete(self._parent)

    def _incarnations(self) -> list[str]:
        return [name for name in self._files.children(self._parent) if name.startswith(f"{self._id}.")]

    def _take_over(self) -> None:
        """Make what earlier incarnations left this one's.

        Looks again once it has said that it is there: of two that come at the same time, one sees the other.
        """
        self._take_from(self._others())
        self._fence()
        owner = b"" if self._run is None else to_json(self._run).encode()
        self._files.write(f"{self._staging}/{_OWNER}", owner)
        self._take_from(self._others())
        self._owns = True

    def _others(self) -> list[str]:
        return [one for name in self._incarnations() if (one := f"{self._parent}/{name}") != self._staging]

    def _take_from(self, others: list[str]) -> None:
        for other in others:
            self._check_not_later(f"{other}/{_OWNER}")
        for earlier in others:
            self._fence()
            if not self._files.exists(f"{earlier}/{_OWNER}"):
                # made by a task or driver that did not know yet that it was replaced
                self._files.delete(earlier)
            elif not self._files.exists(self._staging):
                self._files.rename(earlier, self._staging)
            else:
                self._merge(earlier)

    def _check_not_later(self, owner: str) -> None:
        if self._run is None or not self._files.exists(owner):
            return
        run = self._run
        # empty: of an attempt that is not known
        other = self._files.parsed(
            owner,
            lambda text: _run_token(text) if text else run,
            f"it says which attempt writes to {self._path}: empty it if no other driver of the job runs",
        )
        if is_later(other, run):
            raise LeaseLost(
                f"attempt {self._run.attempt} (epoch {self._run.epoch}) of the job may not write to "
                f"{self._path} any more: attempt {other.attempt} (epoch {other.epoch}) does; if there is "
                f"none, empty the file {owner}"
            )

    def _merge(self, earlier: str) -> None:
        """Bring what one of several incarnations left that had taken over at the same time."""
        for name in self._files.children(earlier):
            if not name.endswith(".json"):
                continue
            batch = name.removesuffix(".json")
            if self._files.exists(f"{self._staging}/{name}"):
                raise StorageError(
                    f"{self._staging}/{name} and {earlier}/{name} both say how batch {batch} goes to "
                    f"{self._path}: two drivers have written it; look at its files there and delete the one "
                    "manifest that is not of them"
                )
            self._fence()
            # rows first: without a manifest they count for nothing
            if self._files.exists(f"{earlier}/{batch}"):
                self._files.delete(f"{self._staging}/{batch}")
                self._files.rename(f"{earlier}/{batch}", f"{self._staging}/{batch}")
            self._files.rename(f"{earlier}/{name}", f"{self._staging}/{name}")
        self._files.delete(earlier)

    def _lost(self) -> LeaseLost:
        return LeaseLost(
            f"another driver of this job has taken over the output in {self._path}; this one writes no more"
        )

    def _moves(self, data: str, batch_id: int) -> list[tuple[str, str]]:
        """Staged file → final file, both relative; empty files stay behind."""
        moves: list[tuple[str, str]] = []
        staged = [name for name, size in self._files.files_below(data) if size]
        below = self._bucket_of_now()
        for name in staged:
            if len(staged) > 1 and self._is_empty_parquet(f"{data}/{name}"):
                continue
            path = PurePosixPath(name)
            # part-00000-<uuid>-c000.snappy.parquet → .snappy.parquet
            suffix = self._sink.suffix or "".join(path.suffixes)
            final = f"{self._sink.prefix}-{self._id}-{batch_id}-{len(moves)}{suffix}"
            directory = str(path.parent)
            if self._sink.bucket_expression:
                directory = bucket_directory(directory)
            moves.append((name, str(PurePosixPath(below, directory, final))))
        return moves

    def _bucket_of_now(self) -> str:
        """The directory of the batch's time; empty = the sink's own."""
        if not self._sink.bucket_pattern:
            return ""
        java_class = self._files.java_class
        try:
            name = self._sink.bucket_zone
            zones = java_class("java.time.ZoneId")
            zone = zones.of(name) if name else zones.systemDefault()
            formats = java_class("java.time.format.DateTimeFormatter")
            now = java_class("java.time.Instant").ofEpochMilli(self._now_ms())
            return str(formats.ofPattern(self._sink.bucket_pattern).withZone(zone).format(now))
        except Exception as error:  # of Java
            raise InvalidExpression(f"file sink {self._path}: {java_cause(error)}") from error

    def _is_empty_parquet(self, path: str) -> bool:
        # only the first partition's task writes a file when it has no rows
        if self._sink.format != "parquet" or self._sink.partition_by or "/part-00000-" not in path:
            return False
        hadoop = self._spark.sparkContext._jsc.hadoopConfiguration()
        inputs = self._files.java_class("org.apache.parquet.hadoop.util.HadoopInputFile")
        readers = self._files.java_class("org.apache.parquet.hadoop.ParquetFileReader")
        reader = readers.open(inputs.fromPath(self._files.path(path), hadoop))
        try:
            return int(reader.getRecordCount()) == 0
        finally:
            reader.close()

    def _move(self, manifest: str, batch_id: int, redo: bool) -> int:
        log = self._files.parsed(
            manifest,
            lambda text: {key: json.loads(text)[key] for key in ("rows", "moves")},
            f"it says which files batch {batch_id} brings to {self._path}: delete it and what there is of "
            f"{self._sink.prefix}-{self._id}-{batch_id}-* below {self._path}, and start the job again, which "
            "writes the batch anew",
        )
        data = f"{self._staging}/{batch_id}"
        made: set[str] = set()
        for staged, final in log["moves"]:
            directory = str(PurePosixPath(final).parent)
            if directory not in made:
                self._files.make_directory(f"{self._path}/{directory}" if directory != "." else self._path)
                made.add(directory)
            self._fence()
            if self._files.exists(f"{data}/{staged}"):
                self._rename(f"{data}/{staged}", f"{self._path}/{final}")
            elif not redo or not self._files.exists(f"{self._staging}/{_OWNER}"):
                raise self._lost()
            # else it was moved before the crash
        self._files.delete(data)
        return int(log["rows"])

    def _rename(self, staged: str, final: str) -> None:
        if self._files.exists(final):
            # a local file system would write over it
            raise StorageError(
                f"{final} exists already: another job that started from the same checkpoint writes here too; "
                "start from a savepoint, or write to another directory"
            )
        self._files.rename(staged, final)

    def _forget_before(self, batch_id: int) -> None:
        """Manifests of earlier batches: Spark committed those before it began this one."""
        for name in self._files.children(self._staging):
            number = name.partition(".")[0]
            if number.isdigit() and int(number) < batch_id:
                self._files.delete(f"{self._staging}/{name}")
