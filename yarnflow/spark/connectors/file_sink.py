"""Files, exactly once.

Decides by a redo log: a batch is staged in a hidden directory, a manifest of the moves is written,
then the files are moved to names made of the query's id and the batch number; a batch done again
finds its manifest, finishes the moves and writes no row again.  Decides as well which of two
drivers wins: a writer renames what an earlier one left to a staging directory of its own, so that
the earlier one, should it come back to life, finds nothing to move.  Flink counterpart:
``FileSink`` with its committer.

::

    <sink>/.yarnflow-staging/<writer id>.<incarnation>/owner           made by the incarnation
                                                       <batch>/        staged files
                                                       <batch>.json    the moves
"""

from __future__ import annotations

import json
import uuid
from pathlib import PurePosixPath
from typing import Any, Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from yarnflow.errors import InvalidExpression, LeaseLost, StorageError
from yarnflow.graph.operators import FileSink
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.hadoop_files import HadoopFiles

STAGING: Final = ".yarnflow-staging"
_OWNER: Final = "owner"


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
    fence : callable
        Raises when this driver may not write.
    """

    def __init__(
        self, spark: SparkSession, sink: FileSink, writer_id: str, fence: Fence = no_fence
    ) -> None:
        self._spark = spark
        self._sink = sink
        self._id = writer_id
        self._files = HadoopFiles(spark)
        self._path = sink.path.rstrip("/") or "/"
        self._fence = fence
        self._parent = f"{self._path}/{STAGING}"
        self._staging = f"{self._parent}/{writer_id}.{uuid.uuid4().hex[:12]}"
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

    def finish(self) -> None:
        """Remove the staging directories of this and of earlier incarnations."""
        for name in self._incarnations():
            self._files.delete(f"{self._parent}/{name}")
        if not self._files.children(self._parent):
            self._files.delete(self._parent)

    def _incarnations(self) -> list[str]:
        return [name for name in self._files.children(self._parent) if name.startswith(f"{self._id}.")]

    def _take_over(self) -> None:
        """Make what earlier incarnations left this one's."""
        for name in self._incarnations():
            earlier = f"{self._parent}/{name}"
            self._fence()
            if not self._files.exists(f"{earlier}/{_OWNER}"):
                # made by a task or driver that did not know yet that it was replaced
                self._files.delete(earlier)
            elif not self._files.exists(self._staging):
                self._files.rename(earlier, self._staging)
            else:
                self._merge(earlier)
        if not self._files.exists(f"{self._staging}/{_OWNER}"):
            self._fence()
            self._files.write(f"{self._staging}/{_OWNER}", b"")
        self._owns = True

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

    def _move(self, manifest: str, batch_id: int, redo: bool) -> int:
        log = json.loads(self._files.read(manifest))
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
