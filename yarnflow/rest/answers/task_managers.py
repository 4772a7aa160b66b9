"""TaskManagers in the shapes of Flink's REST answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from yarnflow.core.messages import JobDetails
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.rest.answers.metrics import Values
from yarnflow.rest.answers.shapes import Camel

_MIB: Final = 1024 * 1024


class Resource(Camel):
    """MiB; what has no counterpart is null."""

    cpu_cores: float
    task_heap_memory: int | None
    task_off_heap_memory: int | None
    managed_memory: int | None
    network_memory: int | None
    extended_resources: dict[str, Any]


class Hardware(Camel):
    """Bytes; null = not reported."""

    cpu_cores: int
    physical_memory: int | None
    free_memory: int | None
    managed_memory: int | None


class MemoryConfiguration(Camel):
    """Bytes; what has no counterpart is null."""

    framework_heap: int | None
    task_heap: int | None
    framework_off_heap: int | None
    task_off_heap: int | None
    network_memory: int | None
    managed_memory: int | None
    jvm_metaspace: int | None
    jvm_overhead: int | None
    total_flink_memory: int | None
    total_process_memory: int | None


class TaskManager(Camel):
    """One of ``GET /taskmanagers``."""

    id: str
    path: str
    data_port: int
    jmx_port: int
    #: a time, in spite of its name: so it is in Flink
    time_since_last_heartbeat: int
    slots_number: int
    free_slots: int
    assigned_tasks: int
    total_resource: Resource
    free_resource: Resource
    hardware: Hardware
    memory_configuration: MemoryConfiguration


class AllocatedSlot(Camel):
    """A slot that a job has."""

    job_id: str
    resource: Resource
    assigned_tasks: int


class GarbageCollector(msgspec.Struct):
    """What a collector of the executors did."""

    name: str
    count: int
    time: int


class TaskManagerMetrics(Camel):
    """Newest values; null = not reported."""

    heap_used: int | None
    heap_committed: int | None
    heap_max: int | None
    non_heap_used: int | None
    non_heap_committed: int | None
    non_heap_max: int | None
    direct_count: int | None
    direct_used: int | None
    direct_max: int | None
    mapped_count: int | None
    mapped_used: int | None
    mapped_max: int | None
    netty_shuffle_memory_segments_available: int | None
    netty_shuffle_memory_segments_used: int | None
    netty_shuffle_memory_segments_total: int | None
    netty_shuffle_memory_available: int | None
    netty_shuffle_memory_used: int | None
    netty_shuffle_memory_total: int | None
    garbage_collectors: list[GarbageCollector]


class TaskManagerDetails(TaskManager):
    """``GET /taskmanagers/:taskmanagerid``."""

    allocated_slots: list[AllocatedSlot]
    metrics: TaskManagerMetrics


class TaskManagers(msgspec.Struct):
    """``GET /taskmanagers``."""

    taskmanagers: list[TaskManager]


#: where Flink's details have a metric of the registry
_METRICS: Final = {
    **{
        f"{prefix}_{suffix}": f"Status.JVM.Memory.{area}.{name}"
        for prefix, area in (("heap", "Heap"), ("non_heap", "NonHeap"))
        for suffix, name in (("used", "Used"), ("committed", "Committed"), ("max", "Max"))
    },
    **{
        f"{prefix}_{suffix}": f"Status.JVM.Memory.{area}.{name}"
        for prefix, area in (("direct", "Direct"), ("mapped", "Mapped"))
        for suffix, name in (("count", "Count"), ("used", "MemoryUsed"), ("max", "TotalCapacity"))
    },
    **{
        f"netty_shuffle_memory_{suffix}": f"Status.Shuffle.Netty.{name}"
        for suffix, name in (
            ("segments_available", "AvailableMemorySegments"),
            ("segments_used", "UsedMemorySegments"),
            ("segments_total", "TotalMemorySegments"),
            ("available", "AvailableMemory"),
            ("used", "UsedMemory"),
            ("total", "TotalMemory"),
        )
    },
}
_COLLECTORS: Final = "Status.JVM.GarbageCollector."


def task_managers(infos: Iterable[TaskManagerInfo], jobs: Sequence[JobDetails]) -> TaskManagers:
    """``GET /taskmanagers``."""
    return TaskManagers([TaskManager(**_fields(info, jobs)) for info in infos])


def task_manager(info: TaskManagerInfo, jobs: Sequence[JobDetails], values: Values) -> TaskManagerDetails:
    """``GET /taskmanagers/:taskmanagerid``; ``values`` has its metrics."""
    tasks = _assigned_tasks(info, jobs)
    slots_of: dict[str, int] = {}
    for job_id in info.job_ids:
        slots_of[job_id] = slots_of.get(job_id, 0) + 1
    return TaskManagerDetails(
        **_fields(info, jobs),
        allocated_slots=[
            AllocatedSlot(
                job_id=job_id,
                resource=_resource(info, 1),
                assigned_tasks=tasks.get(job_id, 0) // slots_of[job_id],
            )
            for job_id in info.job_ids
        ],
        metrics=TaskManagerMetrics(
            **{field: _whole(values, name) for field, name in _METRICS.items()},
            garbage_collectors=_collectors(values),
        ),
    )


def _fields(info: TaskManagerInfo, jobs: Sequence[JobDetails]) -> dict[str, Any]:
    registration = info.registration
    memory = registration.memory_mib
    return {
        "id": registration.task_manager_id,
        "path": registration.address,
        # blocks of data go between executors, each with a port of its own
        "data_port": -1,
        "jmx_port": -1,
        "time_since_last_heartbeat": info.last_heartbeat_ms,
        "slots_number": info.slots,
        "free_slots": info.free_slots,
        "assigned_tasks": sum(_assigned_tasks(info, jobs).values()),
        "total_resource": _resource(info, info.slots),
        "free_resource": _resource(info, info.free_slots),
        "hardware": Hardware(
            cpu_cores=registration.cores,
            physical_memory=registration.physical_memory_bytes or None,
            free_memory=None,
            managed_memory=_bytes(memory.get("python")),
        ),
        "memory_configuration": MemoryConfiguration(
            framework_heap=None,
            task_heap=registration.executor_heap_mib * _MIB,
            # the Python process of the TaskManager
            framework_off_heap=_bytes(memory.get("framework")),
            task_off_heap=_bytes(memory.get("offheap")),
            network_memory=None,
            # Python workers and RocksDB
            managed_memory=_bytes(memory.get("python")),
            jvm_metaspace=_bytes(memory.get("metaspace")),
            jvm_overhead=_bytes(memory.get("overhead")),
            total_flink_memory=_total(memory, registration.executor_heap_mib),
            total_process_memory=registration.process_memory_mib * _MIB,
        ),
    }


def _resource(info: TaskManagerInfo, slots: int) -> Resource:
    registration = info.registration
    share = slots / info.slots if info.slots else 0.0

    def part(mib: int | None) -> int | None:
        return None if mib is None else int(mib * share)

    return Resource(
        cpu_cores=registration.cores * share,
        task_heap_memory=part(registration.executor_heap_mib),
        task_off_heap_memory=part(registration.memory_mib.get("offheap")),
        managed_memory=part(registration.memory_mib.get("python")),
        network_memory=None,
        extended_resources={},
    )


def _assigned_tasks(info: TaskManagerInfo, jobs: Sequence[JobDetails]) -> dict[str, int]:
    """Job → its subtasks there."""
    mine = info.registration.task_manager_id
    counts: dict[str, int] = {}
    for details in jobs:
        if details.overview.status.globally_terminal:
            continue
        count = sum(
            execution.task_manager_id == mine and not execution.state.terminal
            for vertex in details.vertices
            for execution in vertex.executions
        )
        if count:
            counts[details.overview.job_id] = count
    return counts


def _bytes(mib: int | None) -> int | None:
    return None if mib is None else mib * _MIB


def _total(memory: dict[str, int], heap_mib: int) -> int | None:
    """All that is not the JVM's own."""
    if not memory:
        return None
    return (sum(memory.get(part, 0) for part in ("framework", "python", "offheap")) + heap_mib) * _MIB


def _whole(values: Values, name: str) -> int | None:
    value = values.get(name)
    return int(value) if isinstance(value, (int, float)) else None


def _collectors(values: Values) -> list[GarbageCollector]:
    names = sorted(
        name.removeprefix(_COLLECTORS).removesuffix(".Count")
        for name in values
        if name.startswith(_COLLECTORS) and name.endswith(".Count")
    )
    return [
        GarbageCollector(
            name,
            _whole(values, f"{_COLLECTORS}{name}.Count") or 0,
            _whole(values, f"{_COLLECTORS}{name}.Time") or 0,
        )
        for name in names
    ]
