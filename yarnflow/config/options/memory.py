"""Options of memory sizes.  How they add up: :mod:`yarnflow.core.resources.memory`."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

_TASK_MANAGER = Scope.TASK_MANAGER

TASKMANAGER_PROCESS_SIZE_MIB: Final[ConfigOption[int]] = declare.memory(
    "taskmanager.memory.process.size",
    "1728m",
    _TASK_MANAGER,
    "All memory of a TaskManager: its own process, the Spark executor's JVM and the Python workers. The "
    "size of its container.",
    deprecated_keys=("taskmanager.heap.size",),
)
TASKMANAGER_FRAMEWORK_MIB: Final[ConfigOption[int]] = declare.memory(
    "taskmanager.memory.framework.size",
    "128m",
    _TASK_MANAGER,
    "Memory of the TaskManager's own Python process.",
)
EXECUTOR_OFFHEAP_MIB: Final[ConfigOption[int]] = declare.memory(
    "taskmanager.memory.task.off-heap.size",
    "0",
    _TASK_MANAGER,
    "Memory that Spark may use outside the heap (spark.memory.offHeap.size); 0 = none.",
)
MANAGED_FRACTION: Final[ConfigOption[float]] = declare.decimal(
    "taskmanager.memory.managed.fraction",
    0.4,
    _TASK_MANAGER,
    "Share for the Python workers and RocksDB, of the memory that is left after overhead and metaspace.",
    below=1.0,
)
MANAGED_SIZE_MIB: Final[ConfigOption[int]] = declare.memory(
    "taskmanager.memory.managed.size",
    "0",
    _TASK_MANAGER,
    "Memory for the Python workers and RocksDB; 0 = taskmanager.memory.managed.fraction decides.",
    deprecated_keys=("taskmanager.memory.size",),
)
TASKMANAGER_OVERHEAD_FRACTION: Final[ConfigOption[float]] = declare.decimal(
    "taskmanager.memory.jvm-overhead.fraction",
    0.1,
    _TASK_MANAGER,
    "Share of the process size for native memory of the executor's JVM (threads, buffers, code).",
    below=1.0,
)
TASKMANAGER_OVERHEAD_MIN_MIB: Final[ConfigOption[int]] = declare.memory(
    "taskmanager.memory.jvm-overhead.min", "192m", _TASK_MANAGER, "Smallest size of that share."
)
TASKMANAGER_OVERHEAD_MAX_MIB: Final[ConfigOption[int]] = declare.memory(
    "taskmanager.memory.jvm-overhead.max", "1g", _TASK_MANAGER, "Largest size of that share."
)
JVM_METASPACE_MIB: Final[ConfigOption[int]] = declare.memory(
    "taskmanager.memory.jvm-metaspace.size",
    "256m",
    _TASK_MANAGER,
    "Memory for the classes of the executor's JVM (-XX:MaxMetaspaceSize).",
)
JOBMANAGER_PROCESS_SIZE_MIB: Final[ConfigOption[int]] = declare.memory(
    "jobmanager.memory.process.size",
    "640m",
    Scope.DEPLOYMENT,
    "Memory of the JobManager on YARN: its Python processes and skein's ApplicationMaster. The size of the "
    "master's container is this size, plus driver.memory.process.size for each of yarn.appmaster.drivers.",
    deprecated_keys=("jobmanager.heap.size",),
)
DRIVER_PROCESS_SIZE_MIB: Final[ConfigOption[int]] = declare.memory(
    "driver.memory.process.size",
    "1600m",
    Scope.JOB,
    "All memory of a job's driver: its Python process and its JVM.",
)
DRIVER_PYTHON_MIB: Final[ConfigOption[int]] = declare.memory(
    "driver.memory.python.size",
    "256m",
    Scope.CLUSTER,
    "Memory of the driver's Python process, in which a script's main and the functions of sinks run.",
)
DRIVER_METASPACE_MIB: Final[ConfigOption[int]] = declare.memory(
    "driver.memory.jvm-metaspace.size",
    "256m",
    Scope.CLUSTER,
    "Memory for the classes of the driver's JVM (-XX:MaxMetaspaceSize).",
)
DRIVER_OVERHEAD_FRACTION: Final[ConfigOption[float]] = declare.decimal(
    "driver.memory.jvm-overhead.fraction",
    0.1,
    Scope.CLUSTER,
    "Share of the driver's process size for native memory of its JVM.",
    below=1.0,
)
DRIVER_OVERHEAD_MIN_MIB: Final[ConfigOption[int]] = declare.memory(
    "driver.memory.jvm-overhead.min", "192m", Scope.CLUSTER, "Smallest size of that share."
)
DRIVER_OVERHEAD_MAX_MIB: Final[ConfigOption[int]] = declare.memory(
    "driver.memory.jvm-overhead.max", "1g", Scope.CLUSTER, "Largest size of that share."
)
