"""Spark behind the protocol a driver sees.

Joins ``spark`` (session, programs, state, progress) with what ``runtime.driver`` asks for, and decides
which of the job's options become which of Spark's settings.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import job as job_options
from yarnflow.config.options import metrics as metric_options
from yarnflow.config.options import python as python_options
from yarnflow.core.checkpoint.messages import CheckpointOrder, CheckpointOutcome
from yarnflow.core.checkpoint.signature import savepoint_key
from yarnflow.core.collect.parts import part_key
from yarnflow.core.jars.request import BROUGHT, SPARK_JARS
from yarnflow.core.messages import DriverAssignment, IdleQueries, MetricDump, ProgramKind, QueryProgress
from yarnflow.core.resources.attachment import SMALLEST_WORKER_LIMIT_MIB, ExecutorAttachment
from yarnflow.core.resources.memory import task_manager_memory_of
from yarnflow.entrypoint.driver.attempt_metrics import AttemptMetrics
from yarnflow.errors import DriverLost, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.modes.real_time import REAL_TIME
from yarnflow.graph.state.shape import shape_of
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.process.leftovers import end_grandchildren
from yarnflow.runtime.driver.run_context import RunContext
from yarnflow.runtime.driver.services import Milestones, RunningProgram
from yarnflow.spark.checkpoints.job import JobIdentity
from yarnflow.spark.checkpoints.positions import positions_in_logs
from yarnflow.spark.checkpoints.restoring.restore import restore as restore_state
from yarnflow.spark.jars.driver_jars import DriverJars
from yarnflow.spark.launch.driver_secret import spark_secret
from yarnflow.spark.launch.jvm import GatewayJvm, set_java_log_level
from yarnflow.spark.launch.session import DriverSession, SessionSettings, open_session
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.progress.listener import listen
from yarnflow.spark.run.graph_program import GraphProgram, query_sinks, state_layouts
from yarnflow.spark.run.rehearsal import rehearse
from yarnflow.spark.run.shipped_files import ship_files
from yarnflow.spark.run.user_errors import map_spark_error
from yarnflow.spark.script.program import ScriptProgram
from yarnflow.spark.script.session_options import SessionOptions

logger = logging.getLogger(__name__)

_DRAIN_TIMEOUT_MS: Final = 5000
_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"


def session_settings(
    configuration: Configuration, assignment: DriverAssignment, host: str, auth_secret: str, scratch: Path
) -> SessionSettings:
    """What the job's options mean for its session, whose temporary files are in ``scratch``."""
    get = configuration.get
    memory = task_manager_memory_of(configuration)
    slots = get(cluster_options.TASKMANAGER_SLOTS)
    limited = memory.python_mib // slots >= SMALLEST_WORKER_LIMIT_MIB
    return SessionSettings(
        app_name=assignment.job_name or get(job_options.PIPELINE_NAME) or f"job {assignment.job_id}",
        host=host,
        auth_secret=auth_secret,
        parallelism=get(job_options.PARALLELISM_DEFAULT),
        python_memory_mib=memory.python_mib if limited else 0,
        executor_heap_mib=memory.executor_heap_mib,
        state_changelog=get(job_options.STATE_CHANGELOG),
        task_threads_per_slot=max(get(job_options.TASK_THREADS_PER_SLOT), 1),
        # Spark knows no shorter time
        buffer_timeout_ms=max(get(job_options.BUFFER_TIMEOUT_MS), 1),
        # what a task has written before it failed is there already: each try would write it again
        task_failures=1 if get(job_options.EXECUTION_MODE) == REAL_TIME else 4,
        python_executable=get(python_options.PYTHON_EXECUTABLE),
        # in a container of YARN Spark takes the container's directories, and warns when others are named
        local_dir="" if os.environ.get("CONTAINER_ID") else str(scratch),
        user_options=configuration.spark_options(),
    )


class SparkBackend:
    """:class:`yarnflow.runtime.driver.services.DriverBackend` over one gateway JVM.

    Parameters
    ----------
    jvm : GatewayJvm
        Launched already.
    configuration : Configuration
        The cluster's with the job's options over it.
    host : str
        Address executors reach this driver at.
    cluster_secret : bytes
    milestones : Milestones
    scratch : Path
        For Spark's temporary files.
    session : DriverSession, optional
        That an earlier job of this process has left; its options are the same.
    """

    def __init__(
        self,
        jvm: GatewayJvm,
        configuration: Configuration,
        host: str,
        cluster_secret: bytes,
        milestones: Milestones,
        scratch: Path,
        session: DriverSession | None = None,
    ) -> None:
        self._jvm = jvm
        self._configuration = configuration
        self._host = host
        self._cluster_secret = cluster_secret
        self._milestones = milestones
        self._scratch = scratch
        self._left_session = session
        self._session: DriverSession | None = None
        self._no_longer_listen: Callable[[], None] = lambda: None
        self._listener: Callable[[], None] | None = None
        self._progress = ProgressCollector(on_change=self._progressed)
        self._closed = threading.Event()
        #: of the attempt that runs; None = nothing is measured
        self._metrics: AttemptMetrics | None = None

    def open(self, assignment: DriverAssignment) -> ExecutorAttachment:
        """Bring the SparkContext up; see :class:`~yarnflow.runtime.driver.services.DriverBackend`."""
        secret = spark_secret(self._cluster_secret, assignment.driver_id)
        Path(assignment.work_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._left_session is not None:
            self._session = self._left_session.renewed()
            if not self.usable():
                raise self._jvm.lost("or its SparkContext ended while it had no job")
            return self._session.attachment()
        settings = session_settings(self._configuration, assignment, self._host, secret, self._scratch)
        try:
            gateway = self._jvm.connect()
            self._milestones.reached("JVM_UP")
            # before the session, whose extensions may be in them
            self._session = open_session(gateway, self._with_jars(settings))
            return self._session.attachment()
        except Exception as error:
            raise _mapped(error) from error

    def _jars(self) -> DriverJars:
        return DriverJars(self._jvm.connect(), self._jvm.jars, self._scratch / "jars")

    def _with_jars(self, settings: SessionSettings) -> SessionSettings:
        brought = self._jars().bring(self._configuration.to_dict())
        jars: dict[str, str] = {key: brought[key] for key in (SPARK_JARS, BROUGHT) if key in brought}
        return replace(settings, user_options={**settings.user_options, **jars})

    def complete(self) -> None:
        """Make what queries need beyond what executors need."""
        try:
            self._no_longer_listen = listen(self._open_session().spark, self._progress)
        except Exception as error:
            raise _mapped(error) from error

    def executor_ids(self) -> tuple[str, ...]:
        """Executors registered now."""
        if self._session is None or self._closed.is_set() or not self._jvm.alive:
            return ()
        try:
            return self._session.executor_ids()
        except Exception as error:
            logger.info("Executors could not be asked for: %s", type(error).__name__)
            return ()

    def restore(self, context: RunContext, fence: Callable[[], None]) -> bool:
        """Put the state of a savepoint or checkpoint where the job has none of its own yet."""
        if context.restore is None:
            return False
        session = self._open_session()
        shape = shape_of(context.job.graph)
        try:
            # workers may have to read objects of the program in the state
            self._ship_files(context)
            restored = restore_state(
                session.spark,
                context.restore,
                context.assignment.checkpoint_dir,
                shape,
                savepoint_key(self._cluster_secret),
                trusted=self._configuration.get(job_options.STATE_RECOVERY_TRUSTED),
                allow_non_restored=self._configuration.get(job_options.STATE_RECOVERY_ALLOW_NON_RESTORED),
                layouts=state_layouts(context.job.graph),
                sinks=query_sinks(context.job.graph),
                fence=fence,
            )
        except Exception as error:
            raise _mapped(error) from error
        return restored is not None

    def rehearse(self, assignment: DriverAssignment, wanted: Callable[[], bool]) -> None:
        """Warm session and executors up; see :class:`~yarnflow.runtime.driver.services.DriverBackend`."""
        try:
            rehearse(
                self._open_session().spark,
                assignment.checkpoint_dir,
                assignment.driver_id,
                max(self._configuration.get(job_options.PARALLELISM_DEFAULT), 1),
                wanted,
            )
        except Exception as error:
            logger.warning("The rehearsal failed: %s", map_spark_error(error))

    def program(self, context: RunContext, fence: Callable[[], None]) -> RunningProgram:
        """Translate the job's graph, or make ready its script."""
        session = self._open_session()
        submission, graph = context.job.submission, context.job.graph
        work_dir, checkpoint_dir = context.assignment.work_dir, context.assignment.checkpoint_dir
        job = JobIdentity(
            submission.job_id, submission.name, submission.job_key, savepoint_key(self._cluster_secret)
        )
        try:
            if not self._configuration.get_raw(_SHUFFLE_PARTITIONS):
                session.spark.conf.set(_SHUFFLE_PARTITIONS, str(_widest(graph)))
            self._progress.new_attempt()
            metrics = self._new_metrics(context)
            program: RunningProgram
            directory_of: Callable[[str, str], str]
            if submission.kind is ProgramKind.SCRIPT:
                self._progress.use_output_rows(None)
                script = ScriptProgram(
                    session.spark,
                    submission.files,
                    submission.script_argv,
                    Path(work_dir),
                    checkpoint_dir,
                    self._progress,
                    job=job,
                    fence=fence,
                    token=RunToken(submission.job_id, context.epoch, context.attempt),
                    preparation=SessionOptions(
                        session.spark, self._jars(), dict(session.spark.sparkContext.getConf().getAll())
                    ),
                )
                directory_of = script.query_directory
                program = script
            else:
                self._ship_files(context)
                graph_program = GraphProgram(
                    session.spark,
                    graph,
                    self._configuration,
                    checkpoint_dir,
                    job=job,
                    fence=fence,
                    memory=task_manager_memory_of(self._configuration),
                    # Flink counts from 0
                    attempt_number=context.attempt - 1,
                    epoch=context.epoch,
                    part_key=part_key(self._cluster_secret, submission.job_id),
                    measures=None if metrics is None else metrics.sink,
                )
                self._progress.use_output_rows(graph_program.output_rows)
                directory_of = graph_program.query_directory
                program = graph_program
            self._progress.use_directories(directory_of)
            self._progress.idleness.use_positions(positions_in_logs(session.spark, directory_of))
        except Exception as error:
            raise _mapped(error) from error
        return _Watched(program, session, self._jvm)

    def _ship_files(self, context: RunContext) -> None:
        submission = context.job.submission
        if submission.kind is not ProgramKind.SCRIPT:
            spark = self._open_session().spark
            ship_files(spark.sparkContext, submission.files, Path(context.assignment.work_dir))

    def _new_metrics(self, context: RunContext) -> AttemptMetrics | None:
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None
        if self._configuration.get(metric_options.UPDATE_INTERVAL_MS):
            self._metrics = AttemptMetrics(
                self._open_session().spark.sparkContext,
                context.job.graph,
                # of a script only Spark knows
                0
                if context.job.submission.kind is ProgramKind.SCRIPT
                else self._configuration.get(job_options.MICRO_BATCH_INTERVAL_MS),
                self._progress,
                self._jvm.pid,
            )
        return self._metrics

    def metrics(self, last: bool) -> tuple[MetricDump, ...]:
        """What can be measured; see :class:`~yarnflow.runtime.driver.services.DriverBackend`."""
        metrics = self._metrics
        if metrics is None or self._closed.is_set() or not self._jvm.alive:
            return ()
        return metrics.sample(last)

    def progress(self) -> tuple[QueryProgress, ...]:
        """What the queries last said."""
        return self._progress.snapshot()

    def idle(self) -> IdleQueries:
        """When the queries had nothing to do."""
        return self._progress.idleness.told()

    def on_progress(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each batch."""
        self._listener = listener

    def set_log_level(self, logger: str, level: str) -> None:
        """Change what a logger of the JVM says."""
        if not self._jvm.alive:
            return
        try:
            set_java_log_level(self._jvm.connect(), logger, level)
        except Exception as error:
            raise _mapped(error) from error

    def usable(self) -> bool:
        """JVM and SparkContext are there."""
        return self._session is not None and self._jvm.alive and not self._session.stopped

    def release(self) -> bool:
        """Leave nothing of the job; see :class:`~yarnflow.runtime.driver.services.DriverBackend`."""
        if not self.usable():
            return False
        if self._metrics is not None:
            self._metrics.close()
        try:
            self._no_longer_listen()
            self._open_session().clear()
        except Exception as error:
            logger.warning("The session cannot be used for another job: %s", map_spark_error(error))
            return False
        # what functions ran in that Spark calls while it plans
        end_grandchildren(self._jvm.pid)
        return True

    @property
    def session(self) -> DriverSession:
        """For the next job, after :meth:`release`."""
        return self._open_session()

    def close(self) -> None:
        """Stop session and JVM."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._session is not None and self._jvm.alive:
            self._session.stop()
        self._jvm.stop()

    def _open_session(self) -> DriverSession:
        if self._session is None:
            raise DriverLost("the driver's session is not up")
        return self._session

    def _progressed(self) -> None:
        if self._listener is not None:
            self._listener()


class _Watched:
    """A program whose errors are ours and whose last progress has arrived when it ends."""

    def __init__(self, program: RunningProgram, session: DriverSession, jvm: GatewayJvm) -> None:
        self._program = program
        self._session = session
        self._jvm = jvm

    @property
    def compiles_on_executors(self) -> bool:
        return self._program.compiles_on_executors

    def prepare(self) -> None:
        try:
            self._program.prepare()
        except Exception as error:
            raise self._mapped(error) from error

    def start(self) -> None:
        try:
            self._program.start()
        except Exception as error:
            raise self._mapped(error) from error

    def await_end(self) -> None:
        try:
            self._program.await_end()
        except Exception as error:
            raise self._mapped(error) from error
        finally:
            self._session.drain_events(_DRAIN_TIMEOUT_MS)

    def stop(self) -> None:
        self._program.stop()

    def take_checkpoint(self, order: CheckpointOrder) -> CheckpointOutcome:
        try:
            return self._program.take_checkpoint(order)
        except Exception as error:
            raise self._mapped(error) from error

    def _mapped(self, error: Exception) -> YarnflowError:
        if not self._jvm.alive:
            # whatever py4j makes of it
            return self._jvm.lost()
        return _mapped(error)


def _widest(graph: JobGraph) -> int:
    return max((vertex.parallelism for vertex in graph.vertices), default=1)


def _mapped(error: Exception) -> YarnflowError:
    if not isinstance(error, YarnflowError):
        logger.error("Spark failed", exc_info=error)
    return map_spark_error(error)
