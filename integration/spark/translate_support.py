"""Small graphs built by hand, and a session to run them in."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ProgramKind
from yarnflow.graph.closures import make_closure
from yarnflow.graph.connectors.sinks import FileSink, ForeachBatchSink, PrintSink
from yarnflow.graph.connectors.sources import CollectionSource
from yarnflow.graph.job_graph import JobEdge, JobGraph, JobVertex, ShipStrategy, StreamNode
from yarnflow.graph.operators import AssignTimestamps, Key, Operator, PythonKind, PythonOperator
from yarnflow.graph.schema import Field, Schema
from yarnflow.spark.launch.jvm import DRIVER_JVM_FLAGS
from yarnflow.spark.run.graph_program import GraphProgram

HOUR_MS = 3_600_000
EPOCH = dt.datetime(2013, 1, 1)


def make_session(master: str = "local[2]", jars: str = "") -> SparkSession:
    """A local session, of two task threads unless said otherwise; ``jars``: a list with commas."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(master)
        .config("spark.jars", jars)
        .appName("translate")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        # one JVM runs the hundreds of queries of all tests of a worker
        .config("spark.driver.memory", "2g")
        # as a driver's: without them the second compiler takes more time than all tests save by its code
        .config("spark.driver.extraJavaOptions", " ".join(DRIVER_JVM_FLAGS))
        # as on TaskManagers: with Spark's own, each Python worker takes most of a second for its imports
        .config("spark.python.daemon.module", "yarnflow.spark.launch.worker_daemon")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        # by default an idle query lists its files a hundred times a second
        .config("spark.sql.streaming.pollingDelay", "50ms")
        .config("spark.sql.streaming.metricsEnabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def schema(text: str) -> Schema:
    """``word string, n bigint``; one bare type = a scalar stream."""
    if " " not in text:
        return Schema((Field("value", text),), scalar=True)
    return Schema(tuple(Field(*part.strip().split(" ", 1)) for part in text.split(", ")))


def key(*names: str) -> Key:
    """Keyed by fields."""
    return Key(names, names)


@dataclass
class Graph:
    """Builds a JobGraph; everything forward is one vertex unless ``new_vertex``."""

    nodes: list[StreamNode] = field(default_factory=list)
    vertex: dict[int, int] = field(default_factory=dict)
    edges: list[JobEdge] = field(default_factory=list)
    #: it runs as a batch
    batch: bool = False

    def add(
        self,
        operator: Operator,
        output: Schema,
        *inputs: int,
        uid: str = "",
        new_vertex: bool = False,
        rebalance: bool = False,
        parallelism: int = 2,
    ) -> int:
        """Add an operator; returns its id."""
        node_id = len(self.nodes) + 1
        name = type(operator).__name__
        self.nodes.append(
            StreamNode(
                node_id,
                name,
                f"{node_id:032x}",
                operator,
                inputs,
                output,
                parallelism,
                128,
                "default",
                uid,
                f"job.py:{node_id}",
            )
        )
        fresh = new_vertex or rebalance or len(inputs) != 1
        self.vertex[node_id] = node_id if fresh else self.vertex[inputs[0]]
        if rebalance:
            self.edges.append(
                JobEdge(_vertex_id(self.vertex[inputs[0]]), _vertex_id(node_id), ShipStrategy.REBALANCE)
            )
        return node_id

    def collection(self, rows: Sequence[Any], output: Schema) -> int:
        """A bounded source of rows (tuples, or bare values of a scalar stream)."""
        columns = [list(rows)] if output.scalar else [list(c) for c in zip(*rows, strict=True)]
        if not rows:
            columns = [[] for _ in output.fields]
        table = pa.table(dict(zip(output.names, columns, strict=True)))
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
        return self.add(CollectionSource(output, out.getvalue().to_pybytes()), output)

    def python(self, kind: PythonKind, function: Any, output: Schema, source: int, **options: Any) -> int:
        """A Python function."""
        return self.add(PythonOperator(kind, make_closure(function, "job.py:7")), output, source, **options)

    def output(self, node_id: int) -> Schema:
        """What a node puts out."""
        return self.nodes[node_id - 1].output_schema

    def sink(self, operator: Operator, source: int, **options: Any) -> int:
        """A sink."""
        return self.add(operator, self.output(source), source, **options)

    def files(self, path: Path, source: int, fmt: str = "parquet", **options: Any) -> int:
        """A file sink."""
        return self.sink(FileSink(str(path), fmt, **options), source)

    def print(self, source: int, identifier: str = "") -> int:
        """A print sink."""
        return self.sink(PrintSink(identifier), source)

    def each_batch(self, function: Callable[[DataFrame, int], None], source: int) -> int:
        """A function over batches."""
        return self.sink(ForeachBatchSink(make_closure(function, "job.py:9")), source)

    def job(self) -> JobGraph:
        """The graph."""
        chains: dict[int, list[int]] = {}
        for node_id, vertex in self.vertex.items():
            chains.setdefault(vertex, []).append(node_id)
        vertices = tuple(
            JobVertex(_vertex_id(v), f"v{v}", tuple(c), 2, 128, "default") for v, c in chains.items()
        )
        nodes, edges = tuple(self.nodes), tuple(self.edges)
        return JobGraph(
            JobId("0" * 32), "test", ProgramKind.GRAPH, nodes, vertices, edges, batch=self.batch
        )


def _vertex_id(number: int) -> Any:
    return f"{number:032x}"


def program(spark: SparkSession, graph: Graph, directory: Path) -> GraphProgram:
    """The graph, ready to start."""
    return GraphProgram(spark, graph.job(), Configuration.empty(), str(directory / "checkpoint"))


def run(spark: SparkSession, graph: Graph, directory: Path) -> None:
    """Run a bounded graph to its end."""
    made = program(spark, graph, directory)
    made.prepare()
    made.start()
    made.await_end()


def rows(path: Path) -> list[tuple[Any, ...]]:
    """What any reader finds in a directory of Parquet files, sorted."""
    if not path.exists():
        return []
    table = pq.read_table(path)
    return sorted((tuple(r.values()) for r in table.to_pylist()), key=repr)


def at(minutes: int) -> dt.datetime:
    """That long after ``EPOCH``."""
    return EPOCH + dt.timedelta(minutes=minutes)


def ms(time: dt.datetime) -> int:
    """Of a time without zone, as UTC."""
    return int((time - dt.datetime(1970, 1, 1)).total_seconds() * 1000)


def plain(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Times without their zone."""
    return [tuple(v.replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in row) for row in found]


EVENTS = [(f"k{n % 3}", at(n * 7), n) for n in range(60)]
EVENT_SCHEMA = schema("k string, ts timestamp, n bigint")


def event_source(g: Graph) -> int:
    """``EVENTS`` with a watermark a minute behind."""
    node = g.collection(EVENTS, EVENT_SCHEMA)
    return g.add(AssignTimestamps("ts", 60_000), EVENT_SCHEMA, node)
