"""A JobGraph running as streaming queries.

Decides how many queries there are, where their checkpoints lie, how each is triggered, and how
a bounded one ends: read everything there is, then write the end-of-input sentinel and run once
more, so that every window fires.  Never decides about restarts.  Flink counterparts:
``JobVertex`` deployment and ``Task`` with its end-of-input handling.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from enum import Enum
from typing import Final, cast

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from yarnflow.config.configuration import Configuration
from yarnflow.config.options.job import MICRO_BATCH_INTERVAL_MS
from yarnflow.errors import InternalError, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.operators import KeyedReduce, RateSource, SqlOperator
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.query_groups import GraphIndex, QueryGroup, query_groups
from yarnflow.spark.sinks import BatchSink, batch_sink
from yarnflow.spark.sources import Sources, rate_seconds
from yarnflow.spark.stateful import use_rocksdb
from yarnflow.spark.translate import Sentinels, Translator
from yarnflow.spark.user_errors import map_spark_error

logger = logging.getLogger(__name__)

#: how long one look at a query waits for its end
_POLL_SECONDS: Final = 0.2


class _Stopped(Exception):
    """The attempt was told to stop; nothing more is written."""


class _Phase(Enum):
    #: a counted rate source has not made all its rows
    PACED = "PACED"
    #: reading what there is (or, unbounded, for ever)
    INPUT = "INPUT"
    #: the sentinel is there: firing windows
    FLUSH = "FLUSH"
    ENDED = "ENDED"


class GraphProgram:
    """The queries of one job graph.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    graph : JobGraph
        The job.
    configuration : Configuration
        The job's options over the cluster's.
    checkpoint_dir : str
        The job's checkpoint directory (a URI); one directory per query below it.
    """

    def __init__(
        self, spark: SparkSession, graph: JobGraph, configuration: Configuration, checkpoint_dir: str
    ) -> None:
        self._interval_ms = configuration.get(MICRO_BATCH_INTERVAL_MS)
        self._spark = spark
        self._graph = graph
        self._directory = checkpoint_dir.rstrip("/")
        self._stopped = threading.Event()
        self._stop_lock = threading.Lock()
        self._runs: list[_QueryRun] = []

    def start(self) -> None:
        """Translate the whole graph, then start every query; none after :meth:`stop`.

        Raises
        ------
        YarnflowError
            Nothing was started, or what was started is stopped again.
        """
        try:
            if any(isinstance(node.operator, KeyedReduce) for node in self._graph.nodes):
                use_rocksdb(self._spark)
            index = GraphIndex(self._graph)
            runs = [
                _QueryRun(self._spark, index, group, self._directory, self._interval_ms)
                for group in query_groups(self._graph)
            ]
            self._runs = runs
            for run in runs:
                # a stop that came before there were runs is known to nobody else
                if not self._stopped.is_set():
                    run.start()
        except Exception as error:
            self.stop()
            raise _mapped(error) from error

    def await_end(self) -> None:
        """Block until every query ended, by itself or by :meth:`stop`.

        Raises
        ------
        YarnflowError
            A query failed; the others are stopped.
        """
        try:
            running = list(self._runs)
            while running and not self._stopped.is_set():
                running = [run for run in running if not run.advance(_POLL_SECONDS / len(running))]
            if not self._stopped.is_set():
                for run in self._runs:
                    run.finish()
                return
        except Exception as error:
            if not self._stopped.is_set():
                self.stop()
                raise _mapped(error) from error
        # whoever comes next must not meet a query that is still on its way out
        self.stop()

    def stop(self) -> None:
        """Stop every query, in the middle of a batch if need be, and wait until they ended; any thread."""
        self._stopped.set()
        with self._stop_lock:
            for run in self._runs:
                run.stop()

    def output_rows(self) -> dict[str, int]:
        """Query name → rows its sinks wrote in the last batch; -1 where that is not known."""
        return {run.name: run.output_rows for run in self._runs}

    @property
    def query_names(self) -> tuple[str, ...]:
        """Names of the streaming queries, in order of their start."""
        return tuple(run.name for run in self._runs)


class _QueryRun:
    """One query through its phases."""

    def __init__(
        self, spark: SparkSession, index: GraphIndex, group: QueryGroup, directory: str, interval_ms: int
    ) -> None:
        self.name = group.name
        self.output_rows = -1
        self._spark = spark
        self._index = index
        self._group = group
        self._interval_ms = interval_ms
        self._directory = f"{directory}/query-{group.name}"
        self._files = HadoopFiles(spark)
        self._sentinels = Sentinels(spark, f"{self._directory}/end-of-input") if group.bounded else None
        self._translator = Translator(spark, index, Sources(spark, directory), self._sentinels)
        self._frame = self._plan()
        self._writers: dict[int, BatchSink] = {}
        self._query: StreamingQuery | None = None
        self._batch: _BatchThread | None = None
        self._failure: Exception | None = None
        self._lock = threading.Lock()
        self._stopping = False
        self._seconds = max(
            (
                rate_seconds(n.operator)
                for n in index.upstream(group.base)
                if isinstance(n.operator, RateSource)
            ),
            default=0,
        )
        self._phase = _Phase.PACED if group.bounded and self._seconds else _Phase.INPUT

    def _plan(self) -> DataFrame:
        base = self._translator.frame(self._group.base)
        if len(self._group.sinks) == 1:
            return self._translator.sink_input(self._group.sinks[0])
        # the tails are translated for each batch; doing it once here finds their errors before the start
        for sink in self._group.sinks:
            self._translator.sink_input(sink)
        return base

    def start(self) -> None:
        """Begin the current phase, unless told to stop."""
        with self._lock:
            if not self._stopping:
                self._start()

    def _start(self) -> None:
        # a batch cut off at the end of the last phase is done again in this one
        self._failure = None
        if not self._frame.isStreaming:
            self._batch = _BatchThread(self)
            self._batch.start()
            return
        writer = (
            self._frame.writeStream.queryName(self.name)
            .outputMode(self._output_mode())
            .option("checkpointLocation", self._directory)
            .foreachBatch(self.on_batch)
        )
        if self._group.bounded and self._phase is not _Phase.PACED:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{self._interval_ms} milliseconds")
        self._query = writer.start()

    def _output_mode(self) -> str:
        queries = [n for n in self._index.upstream(self._group.base) if isinstance(n.operator, SqlOperator)]
        if queries and _aggregates(self._frame):
            return "update"
        return self._group.output_mode

    def advance(self, timeout_seconds: float) -> bool:
        """Wait a little and go on to the next phase if this one is over; whether all are."""
        if self._batch is not None:
            return self._batch.ended(timeout_seconds)
        assert self._query is not None, "advance() before start()"
        ended, failure = False, None
        try:
            ended = bool(self._query.awaitTermination(cast(int, max(timeout_seconds, 0.01))))
        except Exception as error:
            failure = self._failure or error
        if self._stopping:
            # a query that was stopped has not read its input to the end: no sentinel
            return True
        if failure is not None:
            # outside the handler: Spark's text of it must not become its context
            raise failure
        if self._phase is _Phase.PACED and not ended and self._paced_out():
            self._query.stop()
            ended = True
        if not ended:
            return False
        self._phase = self._next_phase()
        if self._phase is _Phase.ENDED:
            return True
        self.start()
        return self._stopping

    def _next_phase(self) -> _Phase:
        if self._phase is _Phase.PACED:
            return _Phase.INPUT
        if self._phase is _Phase.INPUT and self._sentinels is not None and self._sentinels.write():
            return _Phase.FLUSH
        return _Phase.ENDED

    def _paced_out(self) -> bool:
        """Whether every counted rate source has made its last row."""
        progress = self._query.lastProgress if self._query is not None else None
        if progress is None:
            return False
        ends = [
            json.loads(source["endOffset"]) if isinstance(source["endOffset"], str) else source["endOffset"]
            for source in json.loads(progress.json)["sources"]
            if source["description"].startswith("Rate")
        ]
        return bool(ends) and all(end is not None and int(end) >= self._seconds for end in ends)

    def on_batch(self, frame: DataFrame, batch_id: int) -> None:
        """What Spark calls for every micro-batch."""
        try:
            self._write(frame, batch_id)
        except Exception as error:
            # Spark would hand it back as text, and overflows its stack on texts with long Java traces
            self._failure = error
            raise RuntimeError(f"batch {batch_id} of query {self.name}: {type(error).__name__}") from None

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        sinks = self._group.sinks
        if len(sinks) == 1:
            self.output_rows = self._write_sink(sinks[0], frame, batch_id)
            return
        frame.persist()
        try:
            tails = Translator(self._spark, self._index, None, frames={self._group.base: frame})
            rows = [self._write_sink(sink, tails.sink_input(sink), batch_id) for sink in sinks]
            self.output_rows = -1 if -1 in rows else sum(rows)
        finally:
            frame.unpersist()

    def _write_sink(self, sink: int, frame: DataFrame, batch_id: int) -> int:
        if self._stopping:
            raise _Stopped
        return self._writer(sink).write(frame, batch_id)

    def _writer(self, sink: int) -> BatchSink:
        if sink not in self._writers:
            node = self._index.nodes[sink]
            scalar = self._index.nodes[node.inputs[0]].output_schema.scalar
            self._writers[sink] = batch_sink(self._spark, node, scalar, self._query_id())
        return self._writers[sink]

    def _query_id(self) -> str:
        """The id Spark gave the query's checkpoint; a batch program gets one of the same form."""
        path = f"{self._directory}/metadata"
        if not self._files.exists(path):
            self._files.write(path, json.dumps({"id": str(uuid.uuid4())}).encode())
        return str(json.loads(self._files.read(path))["id"])

    def run_batch(self) -> None:
        """Write a frame that does not stream, as batch 0, unless that was done before.

        Spark commits no such batch, and :meth:`finish` removes what the sinks remember of it.
        """
        done = f"{self._directory}/done"
        if self._files.exists(done):
            logger.info("Query %s was done before.", self.name)
            for sink in self._group.sinks:
                # the crash may have come before they tidied up
                self._writer(sink)
            return
        self._write(self._frame, 0)
        self._files.write(done, b"")

    def finish(self) -> None:
        """Let the sinks tidy up."""
        for writer in self._writers.values():
            writer.finish()

    def stop(self) -> None:
        """Stop what runs and wait until it ended; nothing starts any more."""
        with self._lock:
            self._stopping = True
        if self._query is not None:
            self._query.stop()
        if self._batch is not None:
            self._batch.cancel()


class _BatchThread:
    """A program without a streaming source: one batch in a thread."""

    def __init__(self, run: _QueryRun) -> None:
        self._run = run
        self._context = run._spark.sparkContext
        self._tag = f"yarnflow-{run.name}"
        self._failure: Exception | None = None
        self._thread = InheritableThread(target=self._main, daemon=True, name=f"batch-{run.name}")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ended(self, timeout_seconds: float) -> bool:
        """Whether it is over; raises what it raised."""
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def cancel(self) -> None:
        """Cancel its Spark jobs until it ends."""
        while self._thread.is_alive():
            try:
                self._context.cancelJobsWithTag(self._tag)
            except Exception as error:  # a JVM that is gone ends the thread as well
                logger.info("Spark's jobs could not be canceled: %s", type(error).__name__)
            # it may have been between two jobs
            self._thread.join(_POLL_SECONDS)

    def _main(self) -> None:
        self._context.addJobTag(self._tag)
        try:
            self._run.run_batch()
        except Exception as error:
            self._failure = error


def _aggregates(frame: DataFrame) -> bool:
    """Whether a streaming SQL query aggregates, so that its results change."""
    plan = str(frame._jdf.queryExecution().analyzed().toString())
    return frame.isStreaming and any(
        line.lstrip(" :+-~").startswith("Aggregate ") for line in plan.splitlines()
    )


def _mapped(error: Exception) -> YarnflowError:
    if isinstance(error, YarnflowError):
        return error
    mapped = map_spark_error(error)
    return mapped if isinstance(mapped, YarnflowError) else InternalError(str(error))
