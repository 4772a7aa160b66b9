"""Which operators share slots.  PyFlink: ``pyflink.datastream.slot_sharing_group``."""

from __future__ import annotations

import functools
from typing import Any, Final

from yarnflow.graph.compatibility import NO_JVM, differs, refused

__all__ = ["MemorySize", "SlotSharingGroup"]


_UNITS: Final = ((40, "tb"), (30, "gb"), (20, "mb"), (10, "kb"))


@functools.total_ordering
class MemorySize:
    """A number of bytes."""

    __slots__ = ("_bytes",)

    def __init__(self, bytes_size: int = 0) -> None:
        if bytes_size < 0:
            raise ValueError(f"a memory size of {bytes_size} bytes is below 0")
        self._bytes = bytes_size

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """So many MiB."""
        return MemorySize(bytes_size=mebi_bytes << 20)

    def get_bytes(self) -> int:
        """The size in bytes."""
        return self._bytes

    def get_kibi_bytes(self) -> int:
        """The size in KiB, rounded down."""
        return self._bytes >> 10

    def get_mebi_bytes(self) -> int:
        """The size in MiB, rounded down."""
        return self._bytes >> 20

    def get_gibi_bytes(self) -> int:
        """The size in GiB, rounded down."""
        return self._bytes >> 30

    def get_tebi_bytes(self) -> int:
        """The size in TiB, rounded down."""
        return self._bytes >> 40

    @refused(NO_JVM)
    def get_java_memory_size(self) -> Any:
        """Flink's Java object."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemorySize) and self._bytes == other._bytes

    def __lt__(self, other: MemorySize) -> bool:
        if not isinstance(other, MemorySize):
            raise TypeError(f"a MemorySize cannot be compared with {other!r}")
        return self._bytes < other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __str__(self) -> str:
        for shift, unit in _UNITS:
            if self._bytes and not self._bytes % (1 << shift):
                return f"{self._bytes >> shift} {unit}"
        return f"{self._bytes} bytes"


class SlotSharingGroup:
    """Operators of one group share slots; its resources are what the program says of it only."""

    def __init__(
        self,
        name: str,
        cpu_cores: float | None = None,
        task_heap_memory: MemorySize | None = None,
        task_off_heap_memory: MemorySize | None = None,
        managed_memory: MemorySize | None = None,
        external_resources: dict[str, float] | None = None,
    ) -> None:
        self._name = name
        self._resources = (cpu_cores, task_heap_memory, task_off_heap_memory, managed_memory)
        self._external = dict(external_resources or {})

    def get_name(self) -> str:
        """Name of the group."""
        return self._name

    def get_cpu_cores(self) -> float | None:
        """Processor cores of a slot, as they were set."""
        return self._resources[0]

    def get_task_heap_memory(self) -> MemorySize | None:
        """Heap of a slot, as it was set."""
        return self._resources[1]

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Memory of a slot outside the heap, as it was set."""
        return self._resources[2]

    def get_managed_memory(self) -> MemorySize | None:
        """Managed memory of a slot, as it was set."""
        return self._resources[3]

    def get_external_resources(self) -> dict[str, float]:
        """Other resources of a slot by name, as they were set."""
        return dict(self._external)

    @refused(NO_JVM)
    def get_java_slot_sharing_group(self) -> Any:
        """Flink's Java object."""

    @staticmethod
    @differs("resources are kept and reserve nothing: all slots are alike")
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Begin a group by its name."""
        return SlotSharingGroup.Builder(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SlotSharingGroup):
            return False
        theirs = (other._name, other._resources, other._external)
        return (self._name, self._resources, self._external) == theirs

    def __hash__(self) -> int:
        return hash(self._name)

    class Builder:
        """Says the resources of a group."""

        def __init__(self, name: str) -> None:
            self._name = name
            self._settings: dict[str, Any] = {}
            self._external: dict[str, float] = {}

        def _set(self, name: str, value: Any) -> SlotSharingGroup.Builder:
            self._settings[name] = value
            return self

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Cores of each slot, more than 0."""
            if not cpu_cores > 0:
                raise ValueError(f"slot sharing group '{self._name}': {cpu_cores} cores are not above 0")
            return self._set("cpu_cores", cpu_cores)

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Heap of each slot, more than 0 bytes."""
            if not task_heap_memory.get_bytes():
                raise ValueError(f"slot sharing group '{self._name}': a heap of 0 bytes is none")
            return self._set("task_heap_memory", task_heap_memory)

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Heap of each slot, in MiB."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Memory outside the heap of each slot."""
            return self._set("task_off_heap_memory", task_off_heap_memory)

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Memory outside the heap of each slot, in MiB."""
            return self._set("task_off_heap_memory", MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Memory for state of each slot."""
            return self._set("managed_memory", managed_memory)

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Memory for state of each slot, in MiB."""
            return self._set("managed_memory", MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Another resource of each slot."""
            self._external[name] = value
            return self

        def build(self) -> SlotSharingGroup:
            """The group.  Raises ValueError if it has resources, but not both cores and heap."""
            if not self._settings and not self._external:
                return SlotSharingGroup(self._name)
            if not {"cpu_cores", "task_heap_memory"} <= self._settings.keys():
                raise ValueError(
                    f"slot sharing group '{self._name}': resources need set_cpu_cores() and "
                    "set_task_heap_memory() both"
                )
            none = {"task_off_heap_memory": MemorySize(0), "managed_memory": MemorySize(0)}
            resources = none | self._settings
            return SlotSharingGroup(self._name, external_resources=self._external, **resources)
