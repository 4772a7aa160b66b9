"""The command that starts one Spark executor for a job's slots.

Pure: decides command line and environment from the descriptor and the TaskManager's own
settings; the TaskManager starts the process and sends its output to log files.  Does not import
pyspark.  Flink counterpart: the command line a TaskManager container is launched with, though
here it is the executor within the TaskManager.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yarnflow
from yarnflow.core.hosts import bind_address
from yarnflow.core.messages import ExecutorDescriptor
from yarnflow.core.resources.attachment import PYTHON_MEMORY_VARIABLE, TASK_THREADS_VARIABLE
from yarnflow.spark.launch.java import JavaRuntime
from yarnflow.spark.launch.jvm import FOREIGN_VARIABLES, SAFE_PATH_VARIABLE, common_flags, has_collector
from yarnflow.spark.launch.spark_home import class_path, module_options, spark_home

EXECUTOR_MAIN: Final = "org.apache.spark.executor.CoarseGrainedExecutorBackend"

#: heaps below this are collected soonest, and with the least memory beside them, by one thread
_SERIAL_GC_BELOW_MIB: Final = 1792


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """What a TaskManager decides about all its executors."""

    java: JavaRuntime
    #: address of this TaskManager's machine, as other executors reach it
    host: str
    heap_mib: int
    metaspace_mib: int = 256
    #: native memory of the JVM outside heap and metaspace; 0 = the JVM's own choice
    direct_memory_mib: int = 0
    #: that Spark uses outside the heap; 0 = none, or what the job's own options say
    offheap_mib: int = 0
    #: for the executor's Python workers, when other executors may be beside it; 0 = no limit but the job's
    python_mib: int = 0
    #: the JVM sees so many; 0 = all of the machine
    processors: int = 0
    #: from ``class_data_sharing.jvm_flags``; empty = no archive
    class_data_sharing: tuple[str, ...] = ()
    #: directories for shuffle and spill files
    local_dirs: tuple[str, ...] = ()
    #: directory for temporary files; empty = the system's
    temporary_dir: str = ""
    #: directory of Hadoop's configuration; empty = only local files are known
    hadoop_conf_dir: str = ""
    #: interpreter of the Python workers; empty = this process's
    python_executable: str = ""
    #: directories user modules are found in
    python_path: tuple[str, ...] = ()
    log_level: str = "WARN"
    #: of Spark's own log: text or json (``yarnflow.log.format``)
    log_format: str = "text"


@dataclass(frozen=True, slots=True)
class ExecutorCommand:
    """A process to start."""

    command: tuple[str, ...]
    #: the whole environment, not only what differs; carries the job's secret
    environment: dict[str, str] = field(repr=False)


def executor_command(
    descriptor: ExecutorDescriptor,
    settings: ExecutorSettings,
    auth_secret: str,
    environ: Mapping[str, str] | None = None,
) -> ExecutorCommand:
    """Command line and environment of one executor.

    Parameters
    ----------
    descriptor : ExecutorDescriptor
        From the JobMaster: whom to dial, as whom, with how many task threads.
    settings : ExecutorSettings
    auth_secret : str
        Of the driver, from ``driver_secret.spark_secret``; goes into the environment only.
    environ : mapping, optional
        Environment to start from; this process's by default.
    """
    options = _java_options(descriptor.java_options)
    small = settings.heap_mib < _SERIAL_GC_BELOW_MIB
    command = [
        str(settings.java.program),
        f"-Xmx{settings.heap_mib}m",
        f"-XX:MaxMetaspaceSize={settings.metaspace_mib}m",
        *([f"-XX:MaxDirectMemorySize={settings.direct_memory_mib}m"] if settings.direct_memory_mib else []),
        *([f"-XX:ActiveProcessorCount={settings.processors}"] if settings.processors else []),
        *(["-XX:+UseSerialGC"] if small and not has_collector(options) else []),
        # an executor without memory must end, so that Spark runs its tasks elsewhere
        "-XX:+ExitOnOutOfMemoryError",
        *([f"-Djava.io.tmpdir={settings.temporary_dir}"] if settings.temporary_dir else []),
        *common_flags(settings.log_format),
        *settings.class_data_sharing,
        f"-Dyarnflow.log.level={settings.log_level}",
        f"-Dyarnflow.job.id={descriptor.job_id}",
        # what the driver says counts before it
        *_offheap(settings.offheap_mib),
        *options,
        "-cp",
        class_path(settings.hadoop_conf_dir),
        EXECUTOR_MAIN,
        "--driver-url",
        descriptor.driver_url,
        "--executor-id",
        descriptor.executor_id,
        "--hostname",
        settings.host,
        "--bind-address",
        bind_address(settings.host),
        "--cores",
        str(descriptor.cores * int(descriptor.environment.get(TASK_THREADS_VARIABLE, "1"))),
        "--app-id",
        descriptor.app_id,
        "--resourceProfileId",
        "0",
    ]
    inherited = os.environ if environ is None else environ
    return ExecutorCommand(tuple(command), _environment(descriptor, settings, auth_secret, inherited))


def _offheap(mib: int) -> tuple[str, ...]:
    return ("-Dspark.memory.offHeap.enabled=true", f"-Dspark.memory.offHeap.size={mib}m") if mib else ()


def _java_options(asked: Sequence[str]) -> list[str]:
    """The driver's options; this installation's module options stand in when there are none."""
    return list(asked) if any(o.startswith("--add-opens") for o in asked) else [*module_options(), *asked]


def _environment(
    descriptor: ExecutorDescriptor, settings: ExecutorSettings, auth_secret: str, environ: Mapping[str, str]
) -> dict[str, str]:
    python = settings.python_executable or sys.executable
    env = {key: value for key, value in environ.items() if key not in FOREIGN_VARIABLES}
    env.update(
        {
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": settings.host,
            "SPARK_LOCAL_HOSTNAME": settings.host,
            "PYSPARK_PYTHON": python,
            "PYTHONPATH": os.pathsep.join(_python_path(settings.python_path, environ)),
            # workers load no modules of the folder they start in
            SAFE_PATH_VARIABLE: "1",
            # results of hash() must agree between workers of different executors
            "PYTHONHASHSEED": "0",
        }
    )
    if settings.local_dirs:
        env["SPARK_LOCAL_DIRS"] = ",".join(settings.local_dirs)
        # what Spark looks at instead when it finds itself in a container of YARN
        env["LOCAL_DIRS"] = env["SPARK_LOCAL_DIRS"]
    if settings.temporary_dir:
        env["TMPDIR"] = settings.temporary_dir
    if settings.python_mib:
        env[PYTHON_MEMORY_VARIABLE] = str(settings.python_mib)
    env.update(descriptor.environment)
    env["_SPARK_AUTH_SECRET"] = auth_secret
    return env


def _python_path(user_paths: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    yarnflow_root = str(Path(yarnflow.__file__).resolve().parents[1])
    inherited = environ.get("PYTHONPATH", "").split(os.pathsep)
    return list(dict.fromkeys(p for p in (*user_paths, yarnflow_root, *inherited) if p))
