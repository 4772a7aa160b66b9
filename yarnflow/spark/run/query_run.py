"""One streaming query of a job graph through its phases.

Decides how the query is triggered, how a bounded one ends (read everything there is, then write
the end-of-input sentinel and run once more), and how it is held still for a savepoint.  Nothing
is written before the driver's right to do so was checked.  Flink counterpart: ``StreamTask``.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import weakref
from collections.abc import Callable, Collection
from enum import Enum
from typing import Final, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from yarnflow.core.checkpoint.messages import QueryPosition
from yarnflow.core.checkpoint.query_files import DONE_FILE, query_directory
from yarnflow.core.json_codec import to_json
from yarnflow.errors import CheckpointFailed, StateDrained
from yarnflow.graph.job_graph import StreamNode
from yarnflow.operators.databases.tokens import NO_BATCH
from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.operators.task.state_layout import LAYOUT_FILE
from yarnflow.spark.checkpoints.damage.going_back import Again, mend, written_batch
from yarnflow.spark.checkpoints.positions import (
    committed_batch,
    is_drained,
    plan_end_batch,
    plan_final_batch,
    planned_batch,
    read_position,
)
from yarnflow.spark.connectors.sources import Sources
from yarnflow.spark.elements.told_batch import tell_batch
from yarnflow.spark.elements.worker_runs import WorkerSettings
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.batch_gate import BatchGate, GateClosed
from yarnflow.spark.run.batch_thread import BatchThread
from yarnflow.spark.run.batch_times import BatchTimes
from yarnflow.spark.run.query_plan import QueryPlan
from yarnflow.spark.run.sink_writers import AttemptOutput, SinkWriters
from yarnflow.spark.translate.message_columns import message_columns
from yarnflow.spark.translate.query_groups import GraphIndex, QueryGroup

logger = logging.getLogger(__name__)

#: how often to look whether a batch was committed
_COMMIT_POLL_SECONDS: Final = 0.02
_ADAPTIVE: Final = "spark.sql.adaptive.streaming.stateless.enabled"
_AVAILABLE_NOW_FOR_ALL: Final = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


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


class QueryRun:
    """One query.

    Parameters
    ----------
    spark : SparkSession
    index : GraphIndex
        The job's graph.
    group : QueryGroup
        What the query consists of.
    interval_ms : int
        Shortest time between the starts of two batches.
    settings : WorkerSettings
        For workers of programs on elements.
    sources : Sources
        Of the attempt, as ``output`` is.
    output : AttemptOutput
        Of the attempt.
    """

    def __init__(
        self,
        spark: SparkSession,
        index: GraphIndex,
        group: QueryGroup,
        interval_ms: int,
        settings: WorkerSettings,
        sources: Sources,
        output: AttemptOutput,
    ) -> None:
        self.name = group.name
        self.directory = f"{output.directory}/{query_directory(group.name)}"
        self.output_rows = -1
        self.gate = BatchGate()
        self._spark = spark
        self._index = index
        self._group = group
        self._interval_ms = interval_ms
        self._fence = output.fence
        self._files = HadoopFiles(spark)
        self._times = BatchTimes(self._files, self.directory)
        self._again = Again(self._files, self.directory)
        #: one batch is done that was planned before, and others wait behind it
        self._redoes = False
        #: the sinks have all batches up to this one, whatever is done again
        self._written = NO_BATCH
        self._plan = QueryPlan(
            spark, index, group, self.directory, settings, sources, output.token, self.read_messages
        )
        self._writers = SinkWriters(spark, index, group, output, self._check_not_stopped)
        self._query: StreamingQuery | None = None
        self._batch: BatchThread | None = None
        self._failure: Exception | None = None
        #: why it does not go on after :meth:`resume`
        self._not_resumed: Exception | None = None
        self._lock = threading.Lock()
        self._stopping = False
        #: a savepoint has stopped the query, maybe only for now
        self._suspended = threading.Event()
        self._phase = _Phase.PACED if group.bounded and self._plan.paced_seconds else _Phase.INPUT

    @property
    def streaming(self) -> bool:
        """Whether Spark runs it in micro-batches and commits each; false = one batch, and no state."""
        return bool(self._plan.frame.isStreaming)

    @property
    def redoes(self) -> bool:
        """Whether it does batches again that it had committed before its files were damaged."""
        return self._redoes

    @property
    def windowed(self) -> bool:
        """Whether windows may still be open."""
        return self._group.windowed

    def reads(self, node_id: int) -> bool:
        """Whether a source is one of the query's."""
        return any(node.node_id == node_id for node in self._plan.nodes())

    @property
    def plans_messages_that_return(self) -> bool:
        """Whether what is planned and not committed comes again, to whoever reads the queue next."""
        return self._plan.reads_messages_that_return

    def read_messages(self, node: StreamNode, frame: DataFrame) -> DataFrame:
        """From messages of a node to columns."""
        return message_columns(node, frame)

    # --- running ------------------------------------------------------------------

    @property
    def _does_again(self) -> bool:
        """Whether it can be started for a single batch that was planned before, and committed even."""
        return self._plan.input_stays

    def mend(self, all_state: bool = False, suspects: Collection[str] = ()) -> None:
        """While it does not run: see :func:`yarnflow.spark.checkpoints.damage.going_back.mend`."""
        if self.streaming:
            mend(
                self._files, self.directory, self.name, self._fence,
                does_again=self._does_again, all_state=all_state, suspects=suspects,
            )  # fmt: skip

    def look_back(self) -> None:
        """Before the first :meth:`start`: find what an earlier attempt left of the query.

        Raises
        ------
        StateDrained
            All its windows have fired; what it would read now would be too late for its own.
        DatabaseError
            A sink's database cannot be written to.
        """
        self._writers.claim(self._planned)
        if not self.streaming:
            return
        sentinels = self._plan.sentinels
        if self._plan.ends_with_first_batch and sentinels is not None:
            # no second one is needed for it
            self._fence()
            sentinels.write()
        if is_drained(self._files, self.directory) or self._again.is_drained():
            raise StateDrained(
                f"query {self.name} was drained, so all its windows have fired, but the job did not end "
                "with its savepoint; start it from a savepoint taken before, or empty with --restore none"
            )
        planned = self._planned()
        self._written = written_batch(self._files, self.directory)
        self.gate.begun(planned)
        if self._plan.elements is not None:
            self._fence()
            self._times.begin_run(planned, _now_ms())

    def _planned(self) -> int:
        if not self.streaming:
            return NO_BATCH
        return max(planned_batch(self._files, self.directory), self._again.last)

    def start(self) -> None:
        """Begin the current phase, unless told to stop."""
        with self._lock:
            if not self._stopping and not self._suspended.is_set():
                self._start()

    def _start(self) -> None:
        # a batch cut off at the end of the last phase is done again in this one
        self._failure = None
        if not self._plan.frame.isStreaming:
            self._batch = BatchThread(self._spark.sparkContext, self.name, self.run_batch)
            self._batch.start()
            return
        self._note_layout()
        self._redoes = self._again.next(self._fence)
        if self._plan.elements is not None:
            # else Spark runs levels of a query without state before :meth:`on_batch`: before it is sure that
            # this driver may write, and before their tasks are told of their batch
            self._spark.conf.set(_ADAPTIVE, "false")
        writer = (
            self._plan.frame.writeStream.queryName(self.name)
            .outputMode(self._group.output_mode)
            .option("checkpointLocation", self.directory)
            .foreachBatch(_batches_of(self))
        )
        if self._redoes:
            # Spark would plan the next one anew, and its sinks know it
            writer = writer.trigger(once=True)
        elif self._group.bounded and self._phase is not _Phase.PACED:
            # else one source that cannot tell its end, such as rate, makes Spark run a single batch, and the
            # windows that the sentinel closes would wait for a batch that never comes
            self._spark.conf.set(_AVAILABLE_NOW_FOR_ALL, "true")
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{self._interval_ms} milliseconds")
        self._query = writer.start()

    def _note_layout(self) -> None:
        """For whoever starts another program from the state."""
        if self._plan.layout is None:
            return
        path, content = f"{self.directory}/{LAYOUT_FILE}", to_json(self._plan.layout).encode()
        if not self._files.exists(path) or self._files.read(path) != content:
            self._fence()
            self._files.write(path, content)

    def advance(self, timeout_seconds: float) -> bool:
        """Wait a little and go on to the next phase if this one is over; whether all are."""
        if self._suspended.is_set():
            # whoever suspended it resumes or ends it
            time.sleep(timeout_seconds)
            return False
        if self._not_resumed is not None:
            raise self._not_resumed
        if self._batch is not None:
            return self._batch.ended(timeout_seconds)
        assert self._query is not None, "advance() before start()"
        query = self._query
        ended, failure = False, None
        try:
            ended = bool(query.awaitTermination(cast(int, max(timeout_seconds, 0.01))))
        except Exception as error:
            failure = self._failure or error
        if self._stopping:
            # a query that was stopped has not read its input to the end: no sentinel
            return True
        if self._suspended.is_set() or query is not self._query:
            # it ended because it was to be held still
            return False
        if failure is not None:
            # outside the handler: Spark's text of it must not become its context
            raise failure
        if self._phase is _Phase.PACED and not ended and not self._redoes and self._paced_out():
            query.stop()
            ended = True
        if not ended:
            return False
        if self._redoes:
            self.start()
            return self._stopping
        self._phase = self._next_phase()
        if self._phase is _Phase.ENDED:
            return True
        self.start()
        return self._stopping

    def _next_phase(self) -> _Phase:
        if self._phase is _Phase.PACED:
            return _Phase.INPUT
        sentinels = self._plan.sentinels
        if self._phase is _Phase.INPUT and sentinels is not None and sentinels.write():
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
        return bool(ends) and all(end is not None and int(end) >= self._plan.paced_seconds for end in ends)

    def stop(self) -> None:
        """Stop what runs and wait until it ended; nothing starts any more."""
        with self._lock:
            self._stopping = True
        self.gate.close()
        if self._query is not None:
            self._query.stop()
        if self._batch is not None:
            self._batch.cancel()
        self._writers.close()

    # --- batches ------------------------------------------------------------------

    def on_batch(self, frame: DataFrame, batch_id: int) -> None:
        """What Spark calls for every micro-batch."""
        try:
            self.gate.enter(batch_id)
            self._fence()
            if self._plan.elements is not None:
                tell_batch(self._spark.sparkContext, self._times.of(batch_id))
            self._write(frame, batch_id)
        except Exception as error:
            # Spark would hand it back as text, and overflows its stack on texts with long Java traces
            self._failure = error
            raise RuntimeError(f"batch {batch_id} of query {self.name}: {type(error).__name__}") from None

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        sinks, elements = self._group.sinks, self._plan.elements
        if batch_id <= self._written and self.streaming:
            # for its state alone
            frame.write.format("noop").mode("overwrite").save()
            self.output_rows = 0
            return
        if len(sinks) == 1 and elements is None:
            self.output_rows = self._write_sink(sinks[0], frame, batch_id)
            return
        frame.persist()
        try:
            if elements is None:
                tails = self._plan.tails(frame)
                rows = [self._write_sink(sink, tails.sink_input(sink), batch_id) for sink in sinks]
            else:
                # computed once, all partitions at a time, whatever the sinks do with it; an action of
                # PySpark's RDDs would want Python workers of its own, in the first batch a daemon for them
                frame.select(frame.columns[0]).write.format("noop").mode("overwrite").save()
                inputs = ((sink, elements.sink_input(self._index.nodes[sink], frame)) for sink in sinks)
                rows = [self._write_sink(sink, records, batch_id) for sink, records in inputs]
            self.output_rows = -1 if -1 in rows else sum(rows)
        finally:
            frame.unpersist()

    def _write_sink(self, sink: int, frame: DataFrame, batch_id: int) -> int:
        self._check_not_stopped()
        return self._writers.writer(sink).write(frame, batch_id)

    def _check_not_stopped(self) -> None:
        if self._stopping:
            raise _Stopped

    def run_batch(self) -> None:
        """Write a frame that does not stream, as batch 0, unless that was done before.

        Spark commits no such batch, and :meth:`finish` removes what the sinks remember of it.
        """
        done = f"{self.directory}/{DONE_FILE}"
        if self._files.exists(done):
            logger.info("Query %s was done before.", self.name)
            return
        self._fence()
        # a batch that is done again begins from nothing: no state has gone on with other times
        tell_batch(self._spark.sparkContext, MicroBatch(0, _now_ms(), whole=self._index.graph.batch))
        self._write(self._plan.frame, 0)
        self._fence()
        self._files.write(done, b"")

    def finish(self) -> None:
        """Let the sinks tidy up; waits until the program has all it collects."""
        self._writers.finish()

    # --- checkpoints --------------------------------------------------------------

    def committed(self) -> int:
        """The last batch Spark committed; -1 = none."""
        return committed_batch(self._files, self.directory)

    def position(self, batch_id: int) -> QueryPosition:
        """The query as of a committed batch."""
        progress = None
        if self._query is not None:
            progress = self._query._jsq.lastProgress()
        text = str(progress.json()) if progress is not None else ""
        return read_position(self._files, self.name, self.directory, batch_id, text)

    def await_committed(self, batch_id: int, check: Callable[[], None]) -> None:
        """Wait until Spark committed a batch that the gate has let in.

        Raises
        ------
        CheckpointFailed
            The query failed in that batch.
        """
        while self.committed() < batch_id:
            check()
            # looked at first: the commit may have come in between
            active = self._query is not None and self._query.isActive
            if not active and self.committed() < batch_id:
                raise CheckpointFailed(
                    f"query {self.name} ended in batch {batch_id}; see the job's exceptions"
                )
            time.sleep(_COMMIT_POLL_SECONDS)

    def close_gate(self) -> None:
        """No batch begins any more until :meth:`resume`; :meth:`suspend` is to follow."""
        with self._lock:
            self._suspended.set()
        self.gate.close()

    def suspend(self, check: Callable[[], None]) -> None:
        """Wait until the batch that runs now is committed, and stop the query before the next.

        Whatever comes of it, the query goes on only by :meth:`resume`.

        Raises
        ------
        CheckpointFailed
            That batch failed.
        """
        self.await_committed(self.gate.entered, check)
        if self._query is not None:
            self._query.stop()

    def resume(self) -> None:
        """Go on where :meth:`suspend` stopped.

        Never raises: a batch that failed meanwhile, or a query that cannot be started again, is
        raised by :meth:`advance`.
        """
        with self._lock:
            if self._stopping or not self._suspended.is_set():
                return
            failed = self._failure is not None and not isinstance(self._failure, GateClosed)
            try:
                if self._phase is not _Phase.ENDED and not failed:
                    if self._query is not None:
                        self._query.stop()
                    self.gate.open()
                    self._start()
            except Exception as error:
                self._not_resumed = error
            finally:
                self._suspended.clear()

    def drain(self, check: Callable[[], None]) -> None:
        """While suspended and after a commit: fire all windows, as at the end of input, reading nothing.

        Event timers fire as well.  Whatever comes of it, the query cannot go on.
        """
        if self._plan.elements is None:
            final = plan_final_batch(self._files, self.directory, self.committed())
        else:
            final = self._plan_end()
        self.gate.close(final)
        with self._lock:
            if self._stopping:
                return
            self._start()
        self.await_committed(final, check)
        assert self._query is not None, "started above"
        self._query.stop()

    def _plan_end(self) -> int:
        """Plan a batch in which the levels of elements are told that the input has ended."""
        new = self._plan.tell_end()
        assert self._plan.sentinels is not None, "it tells the end now"
        self._fence()
        self._plan.sentinels.write()
        end = self._plan.end_rows_file()
        return plan_end_batch(self._files, self.directory, self.committed(), end, new, _now_ms())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _batches_of(run: QueryRun) -> Callable[[DataFrame, int], None]:
    """What Spark calls for each batch of a run.

    It does not keep the run: the JVM's query keeps the function, and the run the query, so a driver that is
    kept for other jobs would keep both, which takes megabytes of the JVM's heap.
    """
    reference = weakref.ref(run)

    def on_batch(frame: DataFrame, batch_id: int) -> None:
        found = reference()
        if found is None:
            raise RuntimeError(f"batch {batch_id} of a query whose program is gone")
        found.on_batch(frame, batch_id)

    return on_batch
