"""Spark executors as child processes of a TaskManager.

Joins what ``runtime`` wants (:class:`~yarnflow.runtime.task_executor.ExecutorProcesses`), how Spark
is started (``spark``) and how processes are (``process``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import python as python_options
from yarnflow.core.ids import ExecutorId, JobId
from yarnflow.core.memory import TaskManagerMemory
from yarnflow.core.messages import ExecutorDescriptor
from yarnflow.errors import ResourceError
from yarnflow.process.spawn import ChildProcess, ProcessSpec, spawn
from yarnflow.spark.class_data_sharing import Role, default_cache_dir, jvm_flags
from yarnflow.spark.executor_command import ExecutorSettings, executor_command
from yarnflow.spark.java import find_java
from yarnflow.spark.job_secret import spark_secret

_STOP_GRACE_S = 5.0


class SparkExecutorProcesses:
    """Starts and ends executors; each writes to a log file of its own.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    cluster_dir : Path
        Scratch files of executors lie below it.
    logs : Path
        Directory of the log files.
    task_manager_id : str
        Part of the names of logs and directories.
    host : str
        Name under which others reach this machine.
    memory : TaskManagerMemory
        How large the executors may be.
    secret : bytes
        The cluster's; the jobs' own are derived from it.
    """

    def __init__(
        self,
        configuration: Configuration,
        cluster_dir: Path,
        logs: Path,
        task_manager_id: str,
        host: str,
        memory: TaskManagerMemory,
        secret: bytes,
    ) -> None:
        self._configuration = configuration
        self._logs = logs
        self._name = task_manager_id.replace(":", "-")
        self._scratch = cluster_dir / "executors" / self._name
        self._host = host
        self._memory = memory
        self._secret = secret
        self._lock = threading.Lock()
        self._children: dict[tuple[JobId, ExecutorId], ChildProcess] = {}
        self._listeners: list[Callable[[JobId, ExecutorId, int, str], None]] = []

    def start(self, descriptor: ExecutorDescriptor) -> int:
        """Start the executor; returns its pid.

        Raises
        ------
        JavaUnavailable, ResourceError
            There is no usable Java, or the process cannot be started.
        """
        secret = spark_secret(self._secret, descriptor.job_id)
        try:
            self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            command = executor_command(descriptor, self._settings(), secret)
        except OSError as error:
            raise ResourceError(
                f"executor {descriptor.executor_id} of job {descriptor.job_id} cannot be started: {error}; "
                "free or repair that file system"
            ) from error
        child = spawn(
            ProcessSpec(
                name=f"executor-{descriptor.executor_id}",
                command=command.command,
                log_file=self._logs
                / f"{self._name}-{descriptor.job_id[:8]}-executor-{descriptor.executor_id}.log",
                environment=command.environment,
                cwd=self._scratch,
            )
        )
        key = (descriptor.job_id, descriptor.executor_id)
        with self._lock:
            self._children[key] = child
        child.on_exit(lambda status: self._exited(key, child, status))
        return child.pid

    def stop(self, executor_id: ExecutorId, job_id: JobId) -> None:
        """TERM, then KILL; returns at once."""
        with self._lock:
            child = self._children.get((job_id, executor_id))
        if child is not None:
            threading.Thread(target=child.terminate_group, args=(_STOP_GRACE_S,), daemon=True).start()

    def stop_all(self) -> None:
        """KILL every executor and wait until they are gone."""
        with self._lock:
            children = list(self._children.values())
        for child in children:
            child.kill_group()
        for child in children:
            child.wait(_STOP_GRACE_S)

    def on_exit(self, listener: Callable[[JobId, ExecutorId, int, str], None]) -> None:
        """Call ``listener(job, executor, exit status, output tail)`` for each end."""
        self._listeners.append(listener)

    def _exited(self, key: tuple[JobId, ExecutorId], child: ChildProcess, status: int) -> None:
        with self._lock:
            self._children.pop(key, None)
        for listener in self._listeners:
            listener(*key, status, child.output_tail())

    def _settings(self) -> ExecutorSettings:
        java = find_java()
        archive: list[str] = []
        if self._configuration.get(python_options.CLASS_DATA_SHARING) != "off":
            archive = jvm_flags(Role.EXECUTOR, java, default_cache_dir())
        return ExecutorSettings(
            java=java,
            host=self._host,
            heap_mib=self._memory.executor_heap_mib,
            metaspace_mib=self._memory.metaspace_mib,
            class_data_sharing=tuple(archive),
            local_dirs=(str(self._scratch),),
            python_executable=self._configuration.get(python_options.PYTHON_EXECUTABLE),
        )
