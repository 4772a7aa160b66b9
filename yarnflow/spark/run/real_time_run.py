"""One query in real time: all its stages run at once and hand each record on as it comes.

A *trigger* of Spark's lasts from one commit to the next, minutes of records instead of a micro-batch of them.
So nothing here sees single batches: what was written since the last commit is written again after a failure.
Tasks are not done again one by one; a lost executor ends the query, and the job's restart strategy decides.
Flink counterpart: a ``StreamTask`` with checkpoints.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from yarnflow.config.configuration import Configuration
from yarnflow.config.options.cluster import SLOT_REQUEST_TIMEOUT_MS
from yarnflow.config.options.job import CHECKPOINT_INTERVAL_MS, EXECUTION_MODE, TASK_THREADS_PER_SLOT
from yarnflow.core.checkpoint.query_files import COMMITS
from yarnflow.errors import SlotUnavailable, UnsupportedGraph
from yarnflow.graph.job_graph import JobGraph, StreamNode
from yarnflow.graph.modes.real_time import MICRO_BATCH, REAL_TIME, chosen_mode, obstacles
from yarnflow.graph.operators import RunningAggregate, Source
from yarnflow.spark.connectors.sources import Sources, tasks_at_once
from yarnflow.spark.elements.worker_runs import WorkerSettings
from yarnflow.spark.run.query_run import QueryRun
from yarnflow.spark.run.real_time_sinks import real_time_writer
from yarnflow.spark.run.sink_writers import AttemptOutput
from yarnflow.spark.translate.native_messages import native_columns
from yarnflow.spark.translate.query_groups import GraphIndex, QueryGroup

logger = logging.getLogger(__name__)

#: Spark's shortest time between two commits
_SHORTEST_TRIGGER_MS: Final = 5_000
_DEFAULT_TRIGGER_MS: Final = 10_000
#: the first line of commits with :data:`_SESSION`
_COMMIT_FORMAT: Final = "v2"
_LOOK_SECONDS: Final = 0.1
#: what a query in real time needs of its session
_SESSION: Final = {
    # a trigger that failed is done again over state of which a part was written
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}


@dataclass(frozen=True, slots=True)
class RealTimeSettings:
    """What a job's options say of it."""

    #: from one commit to the next
    trigger_ms: int
    #: task threads that have to be there at once
    needed_threads: int
    #: how long they may take to come
    timeout_ms: int


def needed_threads(spark: SparkSession, graph: JobGraph) -> int:
    """Tasks that run at the same time: one for each partition of each topic, and those behind shuffles.

    Raises
    ------
    SourceNotFound
        Brokers or topics are not there.
    """
    behind_shuffle = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    operators = [node.operator for node in graph.nodes]
    return sum(tasks_at_once(spark, one) for one in operators if isinstance(one, Source)) + sum(
        behind_shuffle for one in operators if isinstance(one, RunningAggregate)
    )


def real_time_settings(
    spark: SparkSession, graph: JobGraph, configuration: Configuration
) -> RealTimeSettings | None:
    """Of a job that runs in real time; None = it runs by micro-batches.

    Raises
    ------
    UnsupportedGraph
        It is to run in real time, and cannot.
    SourceNotFound
        Brokers or topics are not there.
    """
    mode = configuration.get(EXECUTION_MODE)
    if chosen_mode(graph, mode) == MICRO_BATCH:
        if mode != MICRO_BATCH:
            logger.info("The job runs by micro-batches: %s.", obstacles(graph)[0])
        return None
    needed = needed_threads(spark, graph)
    if reason := too_few_threads(needed, graph.required_slots(), configuration.get(TASK_THREADS_PER_SLOT)):
        if mode == REAL_TIME:
            raise UnsupportedGraph(reason)
        logger.info("The job runs by micro-batches: %s.", reason)
        return None
    interval_ms = configuration.get(CHECKPOINT_INTERVAL_MS) or _DEFAULT_TRIGGER_MS
    return RealTimeSettings(
        max(interval_ms, _SHORTEST_TRIGGER_MS), needed, configuration.get(SLOT_REQUEST_TIMEOUT_MS)
    )


def too_few_threads(needed: int, slots: int, threads_per_slot: int) -> str:
    """Why a job's slots cannot run it in real time; empty = they can."""
    found = slots * max(threads_per_slot, 1)
    if needed <= found:
        return ""
    return (
        f"real-time mode runs {needed} tasks of it at the same time (one for each partition of its topics, "
        f"and those behind a shuffle), and its slots ({slots}) have {found} task threads; raise "
        f"{TASK_THREADS_PER_SLOT.key} or the parallelism"
    )


def task_threads(spark: SparkSession) -> int:
    """Of all executors that are registered."""
    backend: Any = spark.sparkContext._jsc.sc().schedulerBackend()
    try:
        return int(backend.totalCoreCount())
    except Exception:  # Spark's local mode, in tests, names it otherwise
        return int(backend.totalCores())


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """A query keeps what holds while it starts; what the session runs next does not."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


class RealTimeRun(QueryRun):
    """A :class:`QueryRun` whose query runs in real time.

    Parameters
    ----------
    real_time : RealTimeSettings
    spark, index, group, interval_ms, settings, sources, output
        Of a :class:`QueryRun`.
    """

    def __init__(
        self,
        real_time: RealTimeSettings,
        spark: SparkSession,
        index: GraphIndex,
        group: QueryGroup,
        interval_ms: int,
        settings: WorkerSettings,
        sources: Sources,
        output: AttemptOutput,
    ) -> None:
        self._told_to_stop = threading.Event()
        self._real_time = real_time
        super().__init__(spark, index, group, interval_ms, settings, sources, output)

    @property
    def _does_again(self) -> bool:
        """No batch is ever the same."""
        return False

    def read_messages(self, node: StreamNode, frame: DataFrame) -> DataFrame:
        """The same by Spark's expressions: no record goes through Python."""
        return native_columns(node, frame)

    def look_back(self) -> None:
        """Refuse state that micro-batches have begun; no sink knows of batches.

        Raises
        ------
        UnsupportedGraph
            There is such state: Spark keeps its form, in which a trigger cannot be done again.
        """
        last = self.committed()
        if last < 0 or not any(isinstance(node.operator, RunningAggregate) for node in self._plan.nodes()):
            return
        commit = self._files.read(f"{self.directory}/{COMMITS}/{last}").decode()
        if commit.splitlines()[0] != _COMMIT_FORMAT:
            raise UnsupportedGraph(
                f"the state of query {self.name} was made by micro-batches, and real-time mode cannot go on "
                "from it; set pipeline.execution-mode to micro-batch, or start without state (--restore none)"
            )

    def finish(self) -> None:
        """It never ends by itself."""

    def stop(self) -> None:
        # the lock of the run is held by whoever waits for task threads
        self._told_to_stop.set()
        super().stop()

    def _start(self) -> None:
        self._failure = None
        if not self._await_threads():
            return
        self._fence()
        node = self._index.nodes[self._group.sinks[0]]
        before = self._index.nodes[node.inputs[0]].output_schema
        # pyspark's types do not know the trigger
        writer: Any = real_time_writer(node, self._plan.frame, before.scalar)
        writer = writer.queryName(self.name).outputMode("update")
        writer = writer.option("checkpointLocation", self.directory)
        with _settings(self._spark, _SESSION):
            self._query = writer.trigger(realTime=f"{self._real_time.trigger_ms} milliseconds").start()
        logger.info(
            "Query %s runs in real time, with a commit every %d ms.", self.name, self._real_time.trigger_ms
        )

    def _await_threads(self) -> bool:
        """Else Spark would refuse the query, or have part of its stages wait for the others for ever.

        Returns
        -------
        bool
            They are there; false = told to stop.
        """
        needed, until = self._real_time.needed_threads, time.monotonic() + self._real_time.timeout_ms / 1000
        while (found := task_threads(self._spark)) < needed:
            if time.monotonic() > until:
                raise SlotUnavailable(
                    f"query {self.name} runs {needed} tasks at the same time in real-time mode, and the "
                    f"executors have {found} task threads; give the job more slots, or set "
                    "pipeline.execution-mode to micro-batch"
                )
            if self._told_to_stop.wait(_LOOK_SECONDS):
                return False
        return not self._told_to_stop.is_set()

    def await_committed(self, batch_id: int, check: Callable[[], None]) -> None:
        """Wait until Spark committed a batch, or any: no batch is let in here that could be waited for."""
        super().await_committed(max(batch_id, 0), check)

    def suspend(self, check: Callable[[], None]) -> None:
        """Stop right behind a commit, so that little is written again."""
        query = self._query
        if query is not None and query.isActive:
            self.await_committed(self.committed() + 1, check)
            query.stop()
