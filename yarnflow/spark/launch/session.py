"""The driver's SparkSession, to which executors attach from outside.

An in-process standalone ``Master`` that no worker ever joins gives Spark a cluster manager that
launches nothing; executors are processes that TaskManagers start and that dial in.  Decides
Spark's settings: ours first, the user's ``spark.*`` options over them, except for those that
hold the attachment together.  Never starts an executor.

Flink counterpart: the part of ``JobMaster`` that TaskExecutors register with.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from yarnflow.config.hadoop.paths import with_file_systems
from yarnflow.core.hosts import bind_address
from yarnflow.core.resources.attachment import TASK_THREADS_VARIABLE, ExecutorAttachment
from yarnflow.errors import InvalidOption
from yarnflow.spark.launch.callback_server import start_callback_server
from yarnflow.spark.launch.jvm import split_options
from yarnflow.spark.launch.master import MasterEndpoint
from yarnflow.spark.launch.spark_home import is_unwanted, module_options, spark_home
from yarnflow.spark.served_files import files_of_options, warn_of_private_files

logger = logging.getLogger(__name__)

_ROCKSDB_PROVIDER: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_ROCKSDB_OPTIONS: Final = "spark.sql.streaming.stateStore.rocksdb"

#: what the attachment of executors depends on → what to set instead
PROTECTED_OPTIONS: Final[Mapping[str, str]] = {
    "spark.master": "yarnflow is the master; choose a cluster with execution.target",
    "spark.remote": "Spark Connect is not used by drivers",
    "spark.submit.deployMode": "the driver always runs in the cluster",
    "spark.app.name": "set pipeline.name",
    "spark.authenticate": "traffic between driver and executors is always authenticated",
    "spark.authenticate.secret": "the secret is derived from security.cluster-secret-file",
    "spark.driver.host": "set jobmanager.rpc.address",
    "spark.driver.port": "the port is chosen by the system",
    "spark.driver.bindAddress": "set jobmanager.bind-host",
    "spark.driver.memory": "set driver.memory.process.size",
    "spark.executor.memory": "set taskmanager.memory.process.size",
    "spark.executor.cores": "set taskmanager.numberOfTaskSlots",
    "spark.executor.instances": "set parallelism.default",
    "spark.cores.max": "set parallelism.default",
    "spark.dynamicAllocation.enabled": "slots are allocated by the ResourceManager",
    "spark.shuffle.service.enabled": "TaskManagers have no external shuffle service",
    "spark.task.cpus": "a slot is one task thread",
}

_DEFAULT_FS: Final = "spark.hadoop.fs.defaultFS"
_EXECUTOR_ENVIRONMENT: Final = "spark.executorEnv."
#: a change on the way to the executors would be of no use: they need these before they ask the driver
_EXECUTOR_OPTIONS: Final = "spark.executor.extraJavaOptions"
_EXECUTOR_STARTUP: Final = ("spark.auth", "spark.rpc.", "spark.network.", "spark.ssl", "spark.port.")
_SECRET_WORDS: Final = ("secret", "password", "token", "keypassword")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """All that makes one driver's session."""

    app_name: str
    #: address executors reach the driver at
    host: str
    #: of this job, hexadecimal
    auth_secret: str = field(repr=False)
    parallelism: int = 1
    #: MiB of one Python worker pool per executor; 0 = no limit
    python_memory_mib: int = 0
    executor_heap_mib: int = 0
    state_changelog: bool = True
    #: more than 1: stages of a job run at the same time
    task_threads_per_slot: int = 1
    #: for records between such stages
    buffer_timeout_ms: int = 0
    #: of one task, before its stage fails
    task_failures: int = 4
    python_executable: str = ""
    #: directory for Spark's temporary files; empty = the system's
    local_dir: str = ""
    #: the user's ``spark.*`` options
    user_options: Mapping[str, str] = field(default_factory=dict)


def check_user_options(options: Mapping[str, str]) -> None:
    """Refuse options that would break the attachment of executors.

    Raises
    ------
    InvalidOption
        Names the option and what to set instead.
    """
    for key in sorted(options):
        if key in PROTECTED_OPTIONS:
            raise InvalidOption(f"option {key} cannot be set: {PROTECTED_OPTIONS[key]}")


def spark_options(settings: SessionSettings) -> dict[str, str]:
    """Every Spark option of a driver, the user's over ours.

    Raises
    ------
    InvalidOption
        The user set a protected option.
    """
    check_user_options(settings.user_options)
    parallelism = str(settings.parallelism)
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # Hadoop's configuration may be there, so that its file systems are known; paths without a
        # scheme mean this machine all the same, except in containers of YARN
        _DEFAULT_FS: "file:///",
        # a file is complete when a DataNode has told the NameNode of its block, a moment after the last
        # byte; who closes it asks again after 400 ms, doubled each time, and a batch writes many small files
        "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
        "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "10",
        "spark.sql.shuffle.partitions": parallelism,
        "spark.default.parallelism": parallelism,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # state.backend.type is about programs on elements; the form Spark's own operators need is the same
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB_PROVIDER,
        f"{_ROCKSDB_OPTIONS}.changelogCheckpointing.enabled": _text(settings.state_changelog),
        # idle triggers would otherwise rewrite checkpoint files for nothing
        "spark.sql.streaming.noDataProgressEventInterval": "10000",
        "spark.sql.streaming.metricsEnabled": "false",
        # the driver itself waits for its executors, and says so in the job's state
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "0s",
        "spark.task.maxFailures": str(settings.task_failures),
        "spark.python.daemon.module": "yarnflow.spark.launch.worker_daemon",
        # dead executors are seen by their closed connection; this is for stopped ones
        "spark.executor.heartbeatInterval": "5s",
        "spark.network.timeout": "60s",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.streaming.ui.enabled": "false",
    }
    if settings.task_threads_per_slot > 1:
        options[f"{_EXECUTOR_ENVIRONMENT}{TASK_THREADS_VARIABLE}"] = str(settings.task_threads_per_slot)
    if settings.buffer_timeout_ms > 0:
        options["spark.shuffle.streaming.networkBufferMaxWaitTimeMs"] = str(settings.buffer_timeout_ms)
    if settings.python_memory_mib > 0:
        options["spark.executor.pyspark.memory"] = f"{settings.python_memory_mib}m"
    if settings.local_dir:
        options["spark.local.dir"] = settings.local_dir
    options.update(settings.user_options)
    if not options[_DEFAULT_FS].startswith("hdfs:"):
        options.update({key: with_file_systems(value) for key, value in settings.user_options.items()})
    options.update(
        {
            "spark.app.name": settings.app_name,
            "spark.authenticate": "true",
            "spark.authenticate.secret": settings.auth_secret,
            "spark.driver.host": settings.host,
            "spark.driver.bindAddress": bind_address(settings.host),
            "spark.shuffle.service.enabled": "false",
            "spark.dynamicAllocation.enabled": "false",
        }
    )
    if settings.executor_heap_mib > 0:
        # Spark only compares it with what its Master would launch, which is nothing
        options["spark.executor.memory"] = f"{settings.executor_heap_mib}m"
    return options


def executor_java_options(options: Mapping[str, str]) -> tuple[str, ...]:
    """JVM options executors need before they can ask the driver for its settings.

    Secrets never become one of them: every user of the machine can read a command line.
    """
    found = list(module_options())
    for key, value in sorted(options.items()):
        wanted = key.startswith(_EXECUTOR_STARTUP) or (key.startswith("spark.") and key.endswith(".port"))
        if wanted and not any(word in key.lower() for word in _SECRET_WORDS):
            found.append(f"-D{key}={value}")
    found.extend(split_options(_EXECUTOR_OPTIONS, options.get(_EXECUTOR_OPTIONS, "")))
    # Spark adds its own list there, with what is left out of ours
    return tuple(dict.fromkeys(option for option in found if not is_unwanted(option)))


class DriverSession:
    """One SparkContext with a session of one job; made by :func:`open_session`.

    Parameters
    ----------
    context, master_rpc_env
        SparkContext and Master.
    earlier : SparkSession, optional
        Of an earlier job on this context.
    """

    def __init__(self, context: Any, master_rpc_env: Any, earlier: Any = None) -> None:
        self._context = context
        self._earlier = earlier
        self._spark: Any = None
        self._lock = threading.Lock()
        self._master_rpc_env = master_rpc_env
        self._jvm_context = context._jsc.sc()
        self._scheduler_backend = self._jvm_context.schedulerBackend()

    @property
    def spark(self) -> Any:
        """The SparkSession, made when it is first asked for; it becomes the active one of that thread."""
        from pyspark.sql import SparkSession

        with self._lock:
            if self._spark is None and self._earlier is not None:
                # the next one is the default and the active one, as the first was
                SparkSession._instantiatedSession = None
                self._spark, self._earlier = self._earlier.newSession(), None
            elif self._spark is None:
                # before any program can do what makes pyspark start one that is open to all
                start_callback_server(self._context._gateway)
                self._spark = SparkSession(self._context)
            return self._spark

    def renewed(self) -> DriverSession:
        """For the next job on this context: options, views, functions and queries are its own."""
        return DriverSession(self._context, self._master_rpc_env, self.spark)

    def clear(self) -> None:
        """End and forget what the job may have left that others would share.

        Raises
        ------
        Exception
            Whatever Spark raises.
        """
        spark = self.spark
        for query in spark.streams.active:
            query.stop()
        self._context.cancelAllJobs()
        spark.catalog.clearCache()

    def attachment(self) -> ExecutorAttachment:
        """How executors reach this session."""
        context = self._context
        settings = dict(context.getConf().getAll())
        host, port = settings["spark.driver.host"], settings["spark.driver.port"]
        environment = {
            key.removeprefix(_EXECUTOR_ENVIRONMENT): value
            for key, value in settings.items()
            if key.startswith(_EXECUTOR_ENVIRONMENT)
        }
        return ExecutorAttachment(
            driver_url=f"spark://CoarseGrainedScheduler@{host}:{port}",
            app_id=context.applicationId,
            java_options=executor_java_options(settings),
            environment=environment,
        )

    def executor_ids(self) -> tuple[str, ...]:
        """Executors registered now.  Thread-safe; empty when the context is gone."""
        if self.stopped:
            return ()
        text = str(self._scheduler_backend.getExecutorIds().mkString(","))
        return tuple(sorted(text.split(","))) if text else ()

    @property
    def stopped(self) -> bool:
        """The SparkContext is gone: by Spark's own decision or by the user's ``stop()``."""
        try:
            return bool(self._jvm_context.isStopped())
        except Exception:  # the JVM itself is gone
            return True

    def drain_events(self, timeout_ms: int) -> None:
        """Wait until what Spark posted so far has reached its listeners, at most that long."""
        try:
            self._jvm_context.listenerBus().waitUntilEmpty(timeout_ms)
        except Exception as error:  # too slow, or the JVM is gone: its events are then lost anyway
            logger.info("Spark's listener bus did not run empty: %s", type(error).__name__)

    def stop(self) -> None:
        """Stop session, context and Master.  Idempotent; errors of a dying JVM are ignored."""
        for step in ((self._spark or self._context).stop, self._master_rpc_env.shutdown):
            try:
                step()
            except Exception:
                pass


def open_session(gateway: Any, settings: SessionSettings) -> DriverSession:
    """Bring the SparkContext up; executors may dial in afterwards.

    The SparkSession takes as long again, and is made by :attr:`DriverSession.spark`.

    Raises
    ------
    InvalidOption
        The user set a protected option.
    """
    options = spark_options(settings)
    warn_of_private_files(files_of_options(options))
    os.environ["PYSPARK_PYTHON"] = settings.python_executable or sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(spark_home())
    from pyspark import SparkConf, SparkContext

    master = MasterEndpoint(gateway, settings.host, options)
    SparkContext._ensure_initialized(gateway=gateway)
    conf = SparkConf(loadDefaults=True, _jvm=gateway.jvm)
    for key, value in options.items():
        conf.set(key, value)
    conf.setMaster(master.url)
    context = SparkContext(conf=conf, gateway=gateway)
    _let_stream_readers_import(context)
    return DriverSession(context, master.rpc_env)


def _let_stream_readers_import(context: Any) -> None:
    """Have modules that were added to a context found by the processes that plan Python stream readers.

    Spark tells them to look in a directory of this name below that of its files, and puts nothing there.
    """
    from pyspark import SparkFiles

    root = Path(SparkFiles.getRootDirectory())
    with suppress(FileExistsError):
        (root / "streaming_job").symlink_to(root)


def warm_up(gateway: Any, wanted: Callable[[], bool]) -> None:
    """Have a spare driver's JVM load and compile what every session needs, by a throw-away one.

    Takes some seconds, so only a driver that waits for its job does it, and between its steps it
    looks whether the job has come.  Errors are ignored: the real session will meet them again.

    Parameters
    ----------
    gateway : py4j gateway
    wanted : callable
        The job has come: stop warming up.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    rpc_env: Any = None
    context: SparkContext | None = None
    try:
        SparkContext._ensure_initialized(gateway=gateway)
        # everyone on this machine can reach the port
        options = spark_options(SessionSettings("spare", "127.0.0.1", secrets.token_hex(32)))
        master = MasterEndpoint(gateway, "127.0.0.1", options)
        rpc_env = master.rpc_env
        if not wanted():
            conf = SparkConf(loadDefaults=False, _jvm=gateway.jvm)
            for key, value in options.items():
                conf.set(key, value)
            conf.setMaster(master.url)
            context = SparkContext(conf=conf, gateway=gateway)
        if context is not None and not wanted():
            counted = SparkSession(context).range(1).groupBy("id").count()
            counted._jdf.queryExecution().executedPlan()
            start_callback_server(gateway)
            logger.info("This spare driver is warm.")
    except Exception as error:
        logger.warning("Warming up failed: %s", type(error).__name__)
    finally:
        if context is not None:
            SparkSession(context).stop()
        if rpc_env is not None:
            rpc_env.shutdown()


def _text(flag: bool) -> str:
    return "true" if flag else "false"
