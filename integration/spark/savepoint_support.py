"""A job in this process that is checkpointed, stopped and started again, and the graphs it runs."""

from __future__ import annotations

import datetime as dt
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.translate_support import Graph, key, schema
from tests.patience import PATIENCE
from yarnflow.config.configuration import Configuration
from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointMetadata, from_bytes, to_bytes
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointKind,
    CheckpointOrder,
    CheckpointOutcome,
    QueryPosition,
    RestoreSettings,
)
from yarnflow.core.checkpoint.query_files import query_directory
from yarnflow.graph.connectors.sources import FileSource
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.operators import (
    AssignTimestamps,
    PythonKind,
    RunningAggregate,
    Window,
    WindowAggregate,
    WindowKind,
)
from yarnflow.graph.state.shape import shape_of
from yarnflow.spark.checkpoints.restoring.restore import restore
from yarnflow.spark.run.graph_program import GraphProgram, query_sinks, state_layouts

_STATE_STORE: Final = "spark.sql.streaming.stateStore"
_PROVIDERS: Final = {
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "hashmap": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}
BACKENDS: Final = tuple(_PROVIDERS)
_AN_HOUR_S: Final = 3600
CONTINUE, STOP, DRAIN = AfterSavepoint.CONTINUE, AfterSavepoint.STOP, AfterSavepoint.DRAIN
RECORD: Final = schema("n bigint, k bigint, at timestamp")
EPOCH: Final = dt.datetime(2013, 1, 1)
_TIME: Final = pa.timestamp("us", "UTC")


def use_backend(spark: SparkSession, backend: str = "rocksdb") -> None:
    """Keep the state of queries started from now on as ``state.backend.type`` says."""
    spark.conf.set(f"{_STATE_STORE}.providerClass", _PROVIDERS[backend])
    spark.conf.set(f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled", "true")


class Input:
    """A watched directory of numbered records, ten to a file, one second of event time each."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.written = 0
        self.oldest_s = int(time.time()) - _AN_HOUR_S
        directory.mkdir()
        self.add(1)

    def add(self, files: int) -> None:
        for _ in range(files):
            numbers = list(range(self.written, self.written + 10))
            table = pa.table(
                {
                    "n": numbers,
                    "k": [n % 3 for n in numbers],
                    "at": pa.array([EPOCH + dt.timedelta(seconds=n) for n in numbers], _TIME),
                }
            )
            hidden = self.directory / f".{self.written:06d}"
            pq.write_table(table, hidden)
            # Spark reads files by age, in whole milliseconds: files of the same one would come in any order
            age_s = self.oldest_s + self.written
            os.utime(hidden, (age_s, age_s))
            hidden.rename(self.directory / f"{self.written:06d}.parquet")
            self.written += 10

    def source(self) -> FileSource:
        return FileSource(str(self.directory), "parquet", RECORD, bounded=False, max_files_per_trigger=1)


class HasJob(Protocol):
    """Something with a job graph."""

    def job(self) -> JobGraph:
        """The graph."""


class Job:
    """One attempt of a job in a thread, as a driver runs it."""

    def __init__(
        self,
        spark: SparkSession,
        graph: HasJob,
        directory: Path,
        conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.directory = directory
        config = Configuration.from_dict(conf or {}, "test")
        self.program = GraphProgram(spark, graph.job(), config, str(directory / "checkpoint"), **options)
        self.failure: Exception | None = None
        self.program.prepare()
        self.program.start()
        self.thread = threading.Thread(target=self._main, daemon=True)
        self.thread.start()

    def _main(self) -> None:
        try:
            self.program.await_end()
        except Exception as error:
            self.failure = error

    def wait_until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait while the job runs; raises what it failed by."""

        def reached() -> Any:
            if self.failure is not None:
                raise self.failure
            return condition()

        wait_until(reached, what)

    def hold(self, query: str) -> int:
        """Let no further batch of a query in; returns the last one that was."""
        gate = next(run.gate for run in self.program._runs if run.name == query)
        last = gate.entered
        gate.hold_above(last)
        # a batch may have been let in between the two
        return last if gate.entered == last else self.hold(query)

    def order(self, target: Path | None = None, after: AfterSavepoint = CONTINUE) -> CheckpointOutcome:
        kind = CheckpointKind.CHECKPOINT if target is None else CheckpointKind.SAVEPOINT
        return self.program.take_checkpoint(CheckpointOrder(7, kind, after, str(target or "")))

    def savepoint(self, target: Path, after: AfterSavepoint = CONTINUE) -> SavepointMetadata:
        outcome = self.order(target, after)
        assert not outcome.failure, outcome.failure
        manifest = read_manifest(target)
        assert manifest.positions == outcome.positions
        assert manifest.total_bytes == outcome.copied_bytes > 0
        return manifest

    def ended(self) -> None:
        self.thread.join(PATIENCE.condition_s)
        assert not self.thread.is_alive(), "the job does not end"
        if self.failure is not None:
            raise self.failure

    def cancel(self) -> None:
        self.program.stop()
        self.ended()


def read_manifest(directory: Path) -> SavepointMetadata:
    return from_bytes((directory / METADATA_FILE).read_bytes(), str(directory))


def retained_checkpoint(graph: JobGraph, directory: Path, batch_id: int) -> Path:
    """The first retained checkpoint of a job's directory, as of a batch of its queries."""
    program = shape_of(graph)
    manifest = SavepointMetadata(
        1, CheckpointKind.CHECKPOINT, graph.job_id, graph.name, "", 0, "", program,
        tuple(
            QueryPosition(query.name, batch_id, str(directory / query_directory(query.name)))
            for query in program.queries
        ), (),
    )  # fmt: skip
    (directory / "chk-1").mkdir()
    (directory / "chk-1" / METADATA_FILE).write_bytes(to_bytes(manifest))
    return directory / "chk-1"


def restored(
    spark: SparkSession,
    graph: HasJob,
    savepoint: Path,
    directory: Path,
    conf: Mapping[str, str] | None = None,
    allow_non_restored: bool = False,
    **options: Any,
) -> Job:
    """A new job that starts from a savepoint."""
    job_graph = graph.job()
    state = restore(
        spark,
        RestoreSettings(str(savepoint), **options),
        str(directory / "checkpoint"),
        shape_of(job_graph),
        allow_non_restored=allow_non_restored,
        layouts=state_layouts(job_graph),
        sinks=query_sinks(job_graph),
    )
    assert state is not None and state.path == str(savepoint)
    return Job(spark, graph, directory, conf)


def numbers(out: Path, last_batch: int | None = None) -> Counter[int]:
    """Every number in the output → how often; of batches up to one."""
    found: Counter[int] = Counter()
    for file in out.glob("part-*"):
        batch = int(re.fullmatch(r"part-\w{8}-\w{8}-(\d+)-\d+\..*", file.name)[1])  # type: ignore[index]
        if last_batch is None or batch <= last_batch:
            found.update(pq.ParquetFile(file).read().column("n").to_pylist())
    return found


def numbers_of(file: Path) -> Counter[int]:
    return Counter(pq.ParquetFile(file).read().column("n").to_pylist())


def rows(out: Path) -> list[tuple[Any, ...]]:
    return sorted(
        tuple(row.values()) for file in out.glob("part-*") for row in pq.ParquetFile(file).read().to_pylist()
    )


def copying(source: Input, out: Path) -> Graph:
    g = Graph()
    g.files(out, g.add(source.source(), RECORD, uid="numbers"))
    return g


def counting(
    source: Input, out: Path, aggregates: tuple[str, ...] = ("count(*) AS c", "sum(n) AS s")
) -> Graph:
    g = Graph()
    node = g.add(source.source(), RECORD)
    types = ", ".join(f"{text.split()[-1]} bigint" for text in aggregates)
    node = g.add(RunningAggregate(key("k"), aggregates), schema(f"k bigint, {types}"), node, uid="counts")
    g.files(out, node)
    return g


def windowed(source: Input, out: Path) -> Graph:
    g = Graph()
    node = g.add(source.source(), RECORD)
    node = g.add(AssignTimestamps("at", 0), RECORD, node)
    window = Window(WindowKind.TUMBLING, size_ms=20_000)
    output = schema("window_start timestamp, window_end timestamp, c bigint")
    node = g.add(WindowAggregate(key(), window, ("count(*) AS c",)), output, node, uid="windows")
    node = g.python(
        PythonKind.MAP,
        lambda r: {"second": r.window_start.minute * 60 + r.window_start.second, "c": r.c},
        schema("second bigint, c bigint"),
        node,
    )
    g.files(out, node)
    return g


def totals(out: Path) -> dict[int, tuple[int, int]]:
    """The largest count per key with its sum: the newest of a running aggregate."""
    best: dict[int, tuple[int, int]] = {}
    for k, c, s in rows(out):
        best[k] = max(best.get(k, (0, 0)), (c, s))
    return best


def expected_totals(written: int) -> dict[int, tuple[int, int]]:
    return {k: (len(range(k, written, 3)), sum(range(k, written, 3))) for k in range(3)}
