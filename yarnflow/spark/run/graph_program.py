"""A JobGraph running as streaming queries.

Decides how many queries there are and where their checkpoints lie, and passes orders for
checkpoints on.  Never decides about restarts.  Flink counterparts: ``JobVertex`` deployment and
``Task``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from yarnflow.config.configuration import Configuration
from yarnflow.config.options.job import MICRO_BATCH_INTERVAL_MS, STATE_BACKEND
from yarnflow.core.checkpoint.messages import CheckpointOrder, CheckpointOutcome
from yarnflow.core.messages import ProgramKind
from yarnflow.core.resources.memory import TaskManagerMemory
from yarnflow.errors import InternalError, YarnflowError
from yarnflow.graph.connectors.sources import FileSource
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.operators import ElementOperator, KeyedReduce
from yarnflow.graph.state.shape import shape_of
from yarnflow.graph.state.sinks import SinkEntry, entry_of
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.operators.task.state_layout import StateLayout
from yarnflow.spark.checkpoints.graph import GraphCheckpoints
from yarnflow.spark.checkpoints.job import Fence, JobIdentity, no_fence
from yarnflow.spark.checkpoints.savepoint_writer import SavepointWriter
from yarnflow.spark.connectors.sources import Sources, infers_schema
from yarnflow.spark.elements.worker_runs import MeasureSink, WorkerSettings
from yarnflow.spark.run.adaptive_batch import batch_settings
from yarnflow.spark.run.query_plan import state_layout
from yarnflow.spark.run.query_run import QueryRun
from yarnflow.spark.run.real_time_run import RealTimeRun, real_time_settings
from yarnflow.spark.run.sink_writers import AttemptOutput
from yarnflow.spark.run.state_errors import explained
from yarnflow.spark.run.user_errors import map_spark_error
from yarnflow.spark.translate.query_groups import GraphIndex, query_groups
from yarnflow.spark.translate.stateful import use_rocksdb

logger = logging.getLogger(__name__)

#: how long one look at a query waits for its end
_POLL_SECONDS: Final = 0.2


def state_layouts(graph: JobGraph) -> dict[str, StateLayout]:
    """Query → where it has the state of its operators on elements; scripts and other queries have none.

    Raises
    ------
    UnsupportedGraph
    """
    if graph.kind is not ProgramKind.GRAPH:
        return {}
    return {group.name: state_layout(group) for group in query_groups(graph) if group.levels is not None}


def query_sinks(graph: JobGraph) -> dict[str, tuple[SinkEntry, ...]]:
    """Query → those of its sinks that its checkpoint names; scripts have none.

    Raises
    ------
    UnsupportedGraph
    """
    if graph.kind is not ProgramKind.GRAPH:
        return {}
    nodes = GraphIndex(graph).nodes
    return {
        group.name: tuple(entry for sink in group.sinks if (entry := entry_of(nodes[sink])) is not None)
        for group in query_groups(graph)
    }


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
    job : JobIdentity
        Whose savepoints these are.
    fence : callable
        Called before anything is written; raises LeaseLost when this driver may not.
    memory : TaskManagerMemory, optional
        Of the TaskManagers; state of programs on elements that comes near ends the job.
    attempt_number : int
        How often the job was started before.
    epoch : int
        Of the leader that deployed this attempt.
    part_key : bytes
        Seals the elements that the program collects.
    measures : MeasureSink, optional
        Takes what operators on elements count; None = nobody wants to know.
    """

    def __init__(
        self,
        spark: SparkSession,
        graph: JobGraph,
        configuration: Configuration,
        checkpoint_dir: str,
        *,
        job: JobIdentity | None = None,
        fence: Fence = no_fence,
        memory: TaskManagerMemory | None = None,
        attempt_number: int = 0,
        epoch: int = 0,
        part_key: bytes = b"",
        measures: MeasureSink | None = None,
    ) -> None:
        job = job or JobIdentity.nobody()
        self._token = RunToken(job.job_id, epoch, attempt_number + 1)
        self._part_key = part_key
        self._configuration = configuration
        self._interval_ms = configuration.get(MICRO_BATCH_INTERVAL_MS)
        self._settings = WorkerSettings(configuration.get(STATE_BACKEND), memory, measures)
        self._spark = spark
        self._graph = graph
        self._directory = checkpoint_dir.rstrip("/")
        self._fence = fence
        self._batch_settings = batch_settings(configuration) if graph.batch else {}
        self._stopped = threading.Event()
        self._stop_lock = threading.Lock()
        self._runs: list[QueryRun] = []
        self._sources = Sources(spark, self._directory, fence, graph.batch)
        writer = SavepointWriter(spark, job, self._directory, shape_of(graph), fence)
        self._checkpoints = GraphCheckpoints(spark, writer, self._stopped)

    @property
    def compiles_on_executors(self) -> bool:
        """Spark finds out the schema of files by a job."""
        return any(
            isinstance(node.operator, FileSource) and infers_schema(node.operator)
            for node in self._graph.nodes
        )

    def prepare(self) -> None:
        """Translate the whole graph.

        Raises
        ------
        YarnflowError
            The graph does not fit Spark, or what was written before.
        """
        try:
            if any(isinstance(node.operator, (ElementOperator, KeyedReduce)) for node in self._graph.nodes):
                use_rocksdb(self._spark)
            for key, value in self._batch_settings.items():
                self._spark.conf.set(key, value)
            index = GraphIndex(self._graph)
            output = AttemptOutput(self._directory, self._token, self._fence, self._part_key)
            make_run = self._make_run()
            runs = [
                make_run(
                    self._spark, index, group, self._interval_ms, self._settings, self._sources, output
                )
                for group in query_groups(self._graph)
            ]
            self._runs = runs
            for run in runs:
                run.mend()
            # none runs if one of them must not
            for run in runs:
                run.look_back()
        except Exception as error:
            self._sources.received.close()
            raise _mapped(error) from error

    def _make_run(self) -> Callable[..., QueryRun]:
        """By micro-batches or in real time."""
        found = real_time_settings(self._spark, self._graph, self._configuration)
        return QueryRun if found is None else partial(RealTimeRun, found)

    def start(self) -> None:
        """Start every query, after :meth:`prepare`; none after :meth:`stop`.

        Raises
        ------
        YarnflowError
            Nothing was started, or what was started is stopped again.
        """
        try:
            with self._stop_lock:
                # a stop that came before is known to nobody else
                if not self._stopped.is_set():
                    self._sources.received.open(self._runs)
            for run in self._runs:
                if not self._stopped.is_set():
                    run.start()
            self._checkpoints.begin(self._runs)
        except Exception as error:
            self.stop()
            raise _mapped(error) from error

    def await_end(self) -> None:
        """Block until every query ended: by itself, by :meth:`stop` or with a savepoint.

        Raises
        ------
        StateDrained
            All windows were fired for a savepoint, which then could not be written.
        YarnflowError
            A query failed; the others are stopped.
        """
        try:
            running = list(self._runs)
            while running and not self._stopped.is_set() and not self._checkpoints.stopped_job.is_set():
                running = [run for run in running if not run.advance(_POLL_SECONDS / len(running))]
                self._sources.received.check()
            # the job's directory may be gone once this returns
            self._checkpoints.end()
            if self._checkpoints.failure is not None:
                raise self._checkpoints.failure
            if not self._stopped.is_set():
                for run in self._runs:
                    run.finish()
                self._sources.received.close()
                return
        except Exception as error:
            if not self._stopped.is_set():
                self.stop()
                raise self._explained(error) from error
        # whoever comes next must not meet a query that is still on its way out
        self.stop()

    def _explained(self, error: Exception) -> YarnflowError:
        """What a query failed with, once all have been stopped: files of its state may be damaged."""
        def look(suspects: Collection[str]) -> None:
            for run in self._runs:
                run.mend(all_state=True, suspects=suspects)

        return explained(error, self._directory, look) or _mapped(error)

    def stop(self) -> None:
        """Stop every query, in the middle of a batch if need be, and wait until they ended; any thread."""
        self._stopped.set()
        with self._stop_lock:
            for run in self._runs:
                run.stop()
            self._sources.received.close()

    def take_checkpoint(self, order: CheckpointOrder) -> CheckpointOutcome:
        """Carry an order out, and wait for it; any thread.

        After a savepoint with STOP or DRAIN :meth:`await_end` returns.

        Returns
        -------
        CheckpointOutcome
            With ``failure`` set if it could not be done; the job then goes on.
        """
        with self._sources.received.held():
            return self._checkpoints.take(order)

    def output_rows(self) -> dict[str, int]:
        """Query name → rows its sinks wrote in the last batch; -1 where that is not known."""
        return {run.name: run.output_rows for run in self._runs}

    def query_directory(self, query_id: str, name: str) -> str:
        """Where a query's checkpoint lies (a URI)."""
        return next((run.directory for run in self._runs if run.name == name), "")


def _mapped(error: Exception) -> YarnflowError:
    if isinstance(error, YarnflowError):
        return error
    mapped = map_spark_error(error)
    return mapped if isinstance(mapped, YarnflowError) else InternalError(str(error))
