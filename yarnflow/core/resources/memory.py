"""How the memory of a TaskManager and of a driver is divided.

Decides sizes from the options and refuses sizes that do not add up; it does not measure and
does not start anything.

TaskManager (one container or process tree)::

    process ─┬ framework     the python TaskManager itself
             ├ overhead      native memory of the JVM (threads, buffers, code): clamp(fraction × process)
             ├ metaspace     -XX:MaxMetaspaceSize
             ├ python        python workers and RocksDB: a size of its own, else
             │               fraction × (process − overhead − metaspace)
             ├ offheap       spark.memory.offHeap.size
             └ executor heap -Xmx: what is left

A job's executor on a TaskManager has the share of the slots that the job was given there: it is divided as
a process of that share, without the framework, would be.  So all executors are within the process together.
An executor that is the only one there can be has all there is.

Flink counterparts: ``TaskExecutorProcessUtils``, ``ProcessMemoryUtils``; its managed memory,
which holds RocksDB and Python there as well, is ``python`` here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import memory as options
from yarnflow.errors import InvalidMemory

#: what Spark needs, and what the smallest collector does not count as heap
_MIN_SHARED_HEAP_MIB: Final = 468
#: Spark refuses a heap below 1.5 × 300 MiB (its reserved memory), for executors and drivers alike
MIN_SPARK_HEAP_MIB: Final = 450


@dataclass(frozen=True, slots=True)
class ExecutorMemory:
    """Sizes of one executor with its Python workers."""

    heap_mib: int
    offheap_mib: int
    metaspace_mib: int
    overhead_mib: int
    python_mib: int

    @property
    def total_mib(self) -> int:
        """All together."""
        return self.heap_mib + self.offheap_mib + self.metaspace_mib + self.overhead_mib + self.python_mib


@dataclass(frozen=True, slots=True)
class TaskManagerMemory:
    """Sizes of one TaskManager; they sum up to ``process_mib``."""

    process_mib: int
    framework_mib: int
    overhead_mib: int
    metaspace_mib: int
    python_mib: int
    offheap_mib: int
    executor_heap_mib: int

    @property
    def executor(self) -> ExecutorMemory:
        """All but the framework."""
        return ExecutorMemory(
            self.executor_heap_mib, self.offheap_mib, self.metaspace_mib, self.overhead_mib, self.python_mib
        )


@dataclass(frozen=True, slots=True)
class _Division:
    """How memory is divided, whatever its size."""

    managed_fraction: float
    overhead_fraction: float
    overhead_min_mib: int
    overhead_max_mib: int
    metaspace_mib: int
    #: 0 = the fraction decides
    managed_mib: int = 0

    def task_manager(self, process_mib: int, framework_mib: int, offheap_mib: int) -> TaskManagerMemory:
        """A process of that size; one whose parts are too large has a negative heap."""
        most = min(self.overhead_max_mib, int(self.overhead_fraction * process_mib))
        overhead = max(self.overhead_min_mib, most)
        left = process_mib - overhead - self.metaspace_mib
        python = self.managed_mib or int(self.managed_fraction * max(0, left))
        heap = left - framework_mib - python - offheap_mib
        return TaskManagerMemory(
            process_mib, framework_mib, overhead, self.metaspace_mib, python, offheap_mib, heap
        )


@dataclass(frozen=True, slots=True)
class DriverMemory:
    """Sizes of one driver; they sum up to ``process_mib``."""

    process_mib: int
    #: the python process of the driver
    python_mib: int
    overhead_mib: int
    metaspace_mib: int
    heap_mib: int


def task_manager_memory(
    process_mib: int = 1728,
    framework_mib: int = 128,
    offheap_mib: int = 0,
    managed_fraction: float = 0.4,
    overhead_fraction: float = 0.1,
    overhead_min_mib: int = 192,
    overhead_max_mib: int = 1024,
    metaspace_mib: int = 256,
    managed_mib: int = 0,
) -> TaskManagerMemory:
    """Divide a TaskManager's memory.

    Raises
    ------
    InvalidMemory
        The parts leave less than Spark's smallest heap.
    """
    _check_overhead("taskmanager", overhead_fraction, overhead_min_mib, overhead_max_mib)
    if not 0 <= managed_fraction < 1:
        raise InvalidMemory(
            f"taskmanager.memory.managed.fraction is {managed_fraction}; expected 0 or more and below 1"
        )

    division = _Division(
        managed_fraction, overhead_fraction, overhead_min_mib, overhead_max_mib, metaspace_mib, managed_mib
    )
    sizes = division.task_manager(process_mib, framework_mib, offheap_mib)
    if sizes.executor_heap_mib < MIN_SPARK_HEAP_MIB:
        enough = _smallest(
            process_mib,
            lambda size: division.task_manager(size, framework_mib, offheap_mib).executor_heap_mib,
        )
        raise InvalidMemory(
            f"taskmanager.memory.process.size is {process_mib} MiB, of which framework {framework_mib}, "
            f"overhead {sizes.overhead_mib}, metaspace {metaspace_mib}, python {sizes.python_mib} and "
            f"off-heap {offheap_mib} leave {max(0, sizes.executor_heap_mib)} MiB for the executor's heap; "
            f"Spark needs {MIN_SPARK_HEAP_MIB} MiB: set it to {enough}m or more, or shrink a part"
        )
    return sizes


def driver_memory(
    process_mib: int = 1600,
    python_mib: int = 256,
    overhead_fraction: float = 0.1,
    overhead_min_mib: int = 192,
    overhead_max_mib: int = 1024,
    metaspace_mib: int = 256,
) -> DriverMemory:
    """Divide a driver's memory.

    Raises
    ------
    InvalidMemory
        The parts leave less than Spark's smallest heap.
    """
    _check_overhead("driver", overhead_fraction, overhead_min_mib, overhead_max_mib)

    def divide(process: int) -> DriverMemory:
        overhead = max(overhead_min_mib, min(overhead_max_mib, int(overhead_fraction * process)))
        heap = process - python_mib - overhead - metaspace_mib
        return DriverMemory(process, python_mib, overhead, metaspace_mib, heap)

    sizes = divide(process_mib)
    if sizes.heap_mib < MIN_SPARK_HEAP_MIB:
        enough = _smallest(process_mib, lambda process: divide(process).heap_mib)
        raise InvalidMemory(
            f"driver.memory.process.size is {process_mib} MiB, of which python {python_mib}, overhead "
            f"{sizes.overhead_mib} and metaspace {metaspace_mib} leave {max(0, sizes.heap_mib)} MiB for the "
            f"driver's heap; Spark needs {MIN_SPARK_HEAP_MIB} MiB: set it to {enough}m or more, or shrink "
            "a part"
        )
    return sizes


def task_manager_memory_of(configuration: Configuration) -> TaskManagerMemory:
    """How the options divide a TaskManager's memory; errors as :func:`task_manager_memory`."""
    get = configuration.get
    return task_manager_memory(
        process_mib=get(options.TASKMANAGER_PROCESS_SIZE_MIB),
        framework_mib=get(options.TASKMANAGER_FRAMEWORK_MIB),
        offheap_mib=get(options.EXECUTOR_OFFHEAP_MIB),
        managed_fraction=get(options.MANAGED_FRACTION),
        overhead_fraction=get(options.TASKMANAGER_OVERHEAD_FRACTION),
        overhead_min_mib=get(options.TASKMANAGER_OVERHEAD_MIN_MIB),
        overhead_max_mib=get(options.TASKMANAGER_OVERHEAD_MAX_MIB),
        metaspace_mib=get(options.JVM_METASPACE_MIB),
        managed_mib=get(options.MANAGED_SIZE_MIB),
    )


def executor_memory_of(
    configuration: Configuration, slots: int, *, is_only_one: bool = False
) -> ExecutorMemory:
    """Sizes of an executor with some of the slots of a TaskManager.

    They are within its share of the TaskManager's memory unless that is too small for a JVM of Spark's:
    see :func:`shared_too_small`.

    Parameters
    ----------
    configuration : Configuration
        The TaskManager's.
    slots : int
        That the job was given.
    is_only_one : bool
        Nobody else can have the other slots.

    Raises
    ------
    InvalidMemory
        As :func:`task_manager_memory`.
    """
    get = configuration.get
    whole, all_slots = task_manager_memory_of(configuration), get(cluster_options.TASKMANAGER_SLOTS)
    if slots >= all_slots or is_only_one:
        return whole.executor
    division = _Division(
        get(options.MANAGED_FRACTION),
        get(options.TASKMANAGER_OVERHEAD_FRACTION),
        get(options.TASKMANAGER_OVERHEAD_MIN_MIB),
        get(options.TASKMANAGER_OVERHEAD_MAX_MIB),
        whole.metaspace_mib,
        get(options.MANAGED_SIZE_MIB) * slots // all_slots,
    )
    offheap = whole.offheap_mib * slots // all_slots
    part = division.task_manager(_share_mib(whole, slots, all_slots), 0, offheap).executor
    if part.heap_mib >= _MIN_SHARED_HEAP_MIB:
        return part
    left = part.heap_mib + part.python_mib - _MIN_SHARED_HEAP_MIB
    python = max(0, left) or whole.python_mib * slots // all_slots
    return replace(part, heap_mib=_MIN_SHARED_HEAP_MIB, python_mib=python)


def shared_too_small(configuration: Configuration) -> str:
    """What is to be done so that jobs of one slot each are within a TaskManager; empty = they are.

    Raises
    ------
    InvalidMemory
        As :func:`task_manager_memory`.
    """
    whole = task_manager_memory_of(configuration)
    slots = configuration.get(cluster_options.TASKMANAGER_SLOTS)
    smallest, share = executor_memory_of(configuration, 1), _share_mib(whole, 1, slots)
    if slots == 1 or smallest.total_mib <= share:
        return ""
    enough = whole.framework_mib + slots * smallest.total_mib
    return (
        f"taskmanager.memory.process.size is {whole.process_mib} MiB for {slots} slots: a job with one of "
        f"them needs {smallest.total_mib} MiB there and has a share of {share} MiB, so {slots} such jobs "
        f"together may be ended for their memory; set it to {enough}m, or lower "
        "taskmanager.numberOfTaskSlots"
    )


def _share_mib(whole: TaskManagerMemory, slots: int, all_slots: int) -> int:
    return (whole.process_mib - whole.framework_mib) * slots // all_slots


def driver_memory_of(configuration: Configuration, process_mib: int) -> DriverMemory:
    """How the options divide a driver of this size; errors as :func:`driver_memory`."""
    get = configuration.get
    return driver_memory(
        process_mib=process_mib,
        python_mib=get(options.DRIVER_PYTHON_MIB),
        overhead_fraction=get(options.DRIVER_OVERHEAD_FRACTION),
        overhead_min_mib=get(options.DRIVER_OVERHEAD_MIN_MIB),
        overhead_max_mib=get(options.DRIVER_OVERHEAD_MAX_MIB),
        metaspace_mib=get(options.DRIVER_METASPACE_MIB),
    )


def _check_overhead(who: str, fraction: float, low_mib: int, high_mib: int) -> None:
    if low_mib > high_mib:
        raise InvalidMemory(
            f"{who}.memory.jvm-overhead.min is {low_mib} MiB and .max {high_mib} MiB; lower the first"
        )
    if not 0 <= fraction < 1:
        raise InvalidMemory(
            f"{who}.memory.jvm-overhead.fraction is {fraction}; expected 0 or more and below 1"
        )


def _smallest(process_mib: int, heap_of: Callable[[int], int]) -> int:
    """The smallest process size above ``process_mib`` that leaves Spark's smallest heap."""
    low = process_mib
    high = max(1, process_mib)
    # a larger process never has a smaller heap, so the bound can be searched for by halves
    while heap_of(high) < MIN_SPARK_HEAP_MIB:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if heap_of(middle) >= MIN_SPARK_HEAP_MIB else (middle, high)
    return high
