"""Spark executors as child processes of a TaskManager.

Joins what ``runtime`` wants (:class:`~yarnflow.runtime.taskexecutor.task_executor.ExecutorProcesses`),
how Spark is started (``spark``) and how processes are (``process``).
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import python as python_options
from yarnflow.core.ids import ExecutorId, JobId
from yarnflow.core.messages import ExecutorDescriptor
from yarnflow.core.resources.memory import executor_memory_of
from yarnflow.errors import JavaUnavailable, ResourceError
from yarnflow.process.leftovers import end_grandchildren
from yarnflow.process.output.ended_logs import EndedLogs
from yarnflow.process.spawn import ChildProcess, ProcessSpec, spawn
from yarnflow.spark.launch.class_data_sharing import Role, installed_flags
from yarnflow.spark.launch.driver_secret import spark_secret
from yarnflow.spark.launch.executor_command import ExecutorCommand, ExecutorSettings, executor_command
from yarnflow.spark.launch.java import JavaRuntime, find_java

_STOP_GRACE_S: Final = 5.0
#: names of what Spark has in the directories of an executor begin so
_OF_SPARK: Final = ("blockmgr-", "spark-")


@dataclass(frozen=True, slots=True)
class ExecutorPlaces:
    """Where the executors of one TaskManager keep their files.

    Each gets a working directory of its own, so that files of one job are not in the way of
    another's, with a link to everything in ``shared``; it goes with the executor.
    """

    #: directory of the log files, and what their names begin with
    logs: Path
    log_prefix: str
    #: parents of the working directories, one on each disk; the working directory is on the first
    scratch: tuple[Path, ...]
    #: what users' code finds in its working directory: name → target
    shared: dict[str, Path]

    def log_file(self, descriptor: ExecutorDescriptor) -> Path:
        """Where one executor and its Python workers write."""
        name = f"executor-{descriptor.executor_id}-{descriptor.job_id[:8]}"
        return self.logs / f"{self.log_prefix}{name}.log"

    def make(self, descriptor: ExecutorDescriptor) -> tuple[Path, ...]:
        """The directories of one executor, made.  Raises OSError."""
        paths = tuple(
            parent / f"{descriptor.job_id[:8]}-{descriptor.executor_id}" for parent in self.scratch
        )
        for path in paths:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        (paths[0] / "tmp").mkdir(exist_ok=True)
        for name, target in self.shared.items():
            link = paths[0] / name
            if not link.is_symlink():
                link.symlink_to(target)
        return paths

    def clear(self, directories: Sequence[Path]) -> None:
        """Delete from an executor's directories all that is neither Spark's nor was there at its start."""
        kept = {"tmp", *self.shared}
        for path in (path for directory in directories for path in directory.glob("*")):
            if path.name in kept or path.name.startswith(_OF_SPARK):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


class SparkExecutorProcesses:
    """Starts and ends executors; each writes to a log file of its own.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    places : ExecutorPlaces
    host : str
        Name under which others reach this machine.
    secret : bytes
        The cluster's; the drivers' own are derived from it.
    one_job : bool
        The cluster never runs several jobs at the same time.
    ended_logs : EndedLogs, optional
        Removes old files of executors; default: they stay.
    start_process : callable
    java : callable
        Finds the Java that executors run on.
    """

    def __init__(
        self,
        configuration: Configuration,
        places: ExecutorPlaces,
        host: str,
        secret: bytes,
        one_job: bool = False,
        *,
        ended_logs: EndedLogs | None = None,
        start_process: Callable[[ProcessSpec], ChildProcess] = spawn,
        java: Callable[[], JavaRuntime] = find_java,
    ) -> None:
        self._configuration = configuration
        self._places = places
        self._host = host
        self._secret = secret
        self._one_job = one_job
        self._ended_logs = ended_logs
        self._start_process = start_process
        self._find_java = java
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
        try:
            directories = self._places.make(descriptor)
            command = self._command(descriptor, directories)
        except OSError as error:
            raise ResourceError(
                f"executor {descriptor.executor_id} of job {descriptor.job_id} cannot be started: {error}; "
                "free or repair that file system"
            ) from error
        child = self._start_process(
            ProcessSpec(
                name=f"executor-{descriptor.executor_id}",
                command=command.command,
                log_file=self._places.log_file(descriptor),
                environment=command.environment,
                whole_environment=True,
                cwd=directories[0],
                directories=directories,
            )
        )
        key = (descriptor.job_id, descriptor.executor_id)
        with self._lock:
            self._children[key] = child
        child.on_exit(lambda status: self._exited(child, status))
        return child.pid

    def stop(self, executor_id: ExecutorId, job_id: JobId) -> None:
        """TERM, then KILL; returns at once."""
        with self._lock:
            child = self._children.get((job_id, executor_id))
        if child is not None:
            threading.Thread(target=child.terminate_group, args=(_STOP_GRACE_S,), daemon=True).start()

    def clear(self, executor_id: ExecutorId, job_id: JobId) -> None:
        """End what the job's functions ran in, which other jobs' would find as it is; delete their files.

        What such processes are started from has run nothing of a job's.
        """
        with self._lock:
            child = self._children.get((job_id, executor_id))
        if child is not None:
            end_grandchildren(child.pid)
            self._places.clear(child.spec.directories)

    def hand_over(self, executor_id: ExecutorId, job_id: JobId, to: JobId) -> bool:
        """From now on the executor is another job's; False = it has ended."""
        with self._lock:
            child = self._children.pop((job_id, executor_id), None)
            if child is not None:
                self._children[to, executor_id] = child
        return child is not None

    def stop_all(self) -> None:
        """KILL every executor and wait until they are gone."""
        with self._lock:
            children = list(self._children.values())
        for child in children:
            child.kill_group()
        for child in children:
            child.wait(_STOP_GRACE_S)

    def pids(self) -> dict[str, int]:
        """Name → pid of the executors there are; any thread."""
        with self._lock:
            return {
                f"executor {executor_id} of job {job_id[:8]}": child.pid
                for (job_id, executor_id), child in self._children.items()
            }

    def java_home(self) -> Path | None:
        """Directory of the Java that executors run on; None = there is none."""
        try:
            return self._find_java().home
        except JavaUnavailable:
            return None

    def on_exit(self, listener: Callable[[JobId, ExecutorId, int, str], None]) -> None:
        """Call ``listener(job, executor, exit status, output tail)`` for each end."""
        self._listeners.append(listener)

    def _exited(self, child: ChildProcess, status: int) -> None:
        if self._ended_logs is not None:
            self._ended_logs.process_ended()
        with self._lock:
            # of the job that has it now
            keys = [key for key, other in self._children.items() if other is child]
            for key in keys:
                del self._children[key]
        for listener in self._listeners:
            for key in keys:
                listener(*key, status, child.output_tail())

    def _command(self, descriptor: ExecutorDescriptor, directories: tuple[Path, ...]) -> ExecutorCommand:
        java = self._find_java()
        archive: list[str] = []
        if self._configuration.get(python_options.CLASS_DATA_SHARING) != "off":
            archive = installed_flags(Role.EXECUTOR, java)
        # one of the TaskManager's slots is one of the executor's cores
        slots, all_slots = descriptor.cores, self._configuration.get(cluster_options.TASKMANAGER_SLOTS)
        is_only_one = self._one_job and descriptor.has_whole_job
        memory = executor_memory_of(self._configuration, slots, is_only_one=is_only_one)
        shared = slots < all_slots and not is_only_one
        settings = ExecutorSettings(
            java=java,
            host=self._host,
            heap_mib=memory.heap_mib,
            metaspace_mib=memory.metaspace_mib,
            offheap_mib=memory.offheap_mib,
            python_mib=memory.python_mib if shared else 0,
            processors=max(1, (os.cpu_count() or 1) * slots // all_slots) if shared else 0,
            class_data_sharing=tuple(archive),
            local_dirs=tuple(str(path) for path in directories),
            temporary_dir=str(directories[0] / "tmp"),
            hadoop_conf_dir=os.environ.get("HADOOP_CONF_DIR", ""),
            python_executable=self._configuration.get(python_options.PYTHON_EXECUTABLE),
            log_format=self._configuration.get(cluster_options.LOG_FORMAT),
        )
        return executor_command(descriptor, settings, spark_secret(self._secret, descriptor.driver_id))
