"""A JobGraph running as streaming queries.

Decides how many queries there are and where their checkpoints lie, and passes orders for
checkpoints on.  Never decides about restarts.  Flink counterparts: ``JobVertex`` deployment and
``Task``.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from pyspark.sql import SparkSession

from yarnflow.config.configuration import Configuration
from yarnflow.config.options.job import MICRO_BATCH_INTERVAL_MS, STATE_BACKEND
from yarnflow.core.checkpoint.messages import CheckpointOrder, CheckpointOutcome
from yarnflow.core.messages import ProgramKind
from yarnflow.core.resources.memory import TaskManagerMemory
from yarnflow.errors import InternalError, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.operators import ElementOperator, FileSource, KeyedReduce
from yarnflow.graph.state.shape import shape_of
from yarnflow.operators.task.state_layout import StateLayout
from yarnflow.spark.checkpoints.graph import GraphCheckpoints
from yarnflow.spark.checkpoints.job import Fence, JobIdentity, no_fence
from yarnflow.spark.checkpoints.savepoint_writer import SavepointWriter
from yarnflow.spark.connectors.sources import infers_schema
from yarnflow.spark.elements.worker_runs import WorkerSettings
from yarnflow.spark.run.query_run import QueryRun, state_layout
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
    part_key : bytes
        Seals the elements that the program collects.
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
        part_key: bytes = b"",
    ) -> None:
        self._part_key = part_key
        self._interval_ms = configuration.get(MICRO_BATCH_INTERVAL_MS)
        self._settings = WorkerSettings(configuration.get(STATE_BACKEND), memory)
        self._spark = spark
        self._graph = graph
        self._directory = checkpoint_dir.rstrip("/")
        self._fence = fence
        self._attempt_number = attempt_number
        self._stopped = threading.Event()
        self._stop_lock = threading.Lock()
        self._runs: list[QueryRun] = []
        writer = SavepointWriter(
            spark, job or JobIdentity.nobody(), self._directory, shape_of(graph), fence
        )
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
            index = GraphIndex(self._graph)
            runs = [
                QueryRun(
                    self._spark,
                    index,
                    group,
                    self._directory,
                    self._interval_ms,
                    self._fence,
                    self._settings,
                    self._attempt_number,
                    self._part_key,
                )
                for group in query_groups(self._graph)
            ]
            self._runs = runs
            # none runs if one of them must not
            for run in runs:
                run.look_back()
        except Exception as error:
            raise _mapped(error) from error

    def start(self) -> None:
        """Start every query, after :meth:`prepare`; none after :meth:`stop`.

        Raises
        ------
        YarnflowError
            Nothing was started, or what was started is stopped again.
        """
        try:
            for run in self._runs:
                # a stop that came before there were runs is known to nobody else
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
            # the job's directory may be gone once this returns
            self._checkpoints.end()
            if self._checkpoints.failure is not None:
                raise self._checkpoints.failure
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

    def take_checkpoint(self, order: CheckpointOrder) -> CheckpointOutcome:
        """Carry an order out, and wait for it; any thread.

        After a savepoint with STOP or DRAIN :meth:`await_end` returns.

        Returns
        -------
        CheckpointOutcome
            With ``failure`` set if it could not be done; the job then goes on.
        """
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
