"""What processes use: memory, processor time, threads, descriptors.

Reads ``/proc``; nothing is known of processes of other systems.  Flink counterparts:
``SystemResourcesCounter``, ``MetricUtils.instantiateStatusMetrics``.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_PAGE_BYTES: Final = resource.getpagesize()
_TICK_NS: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """Of one process, or of several together."""

    processes: int = 0
    #: resident; what processes share counts for each
    memory_bytes: int = 0
    #: since their start
    cpu_ns: int = 0
    threads: int = 0
    descriptors: int = 0

    def __add__(self, other: ProcessUsage) -> ProcessUsage:
        return ProcessUsage(
            self.processes + other.processes,
            self.memory_bytes + other.memory_bytes,
            self.cpu_ns + other.cpu_ns,
            self.threads + other.threads,
            self.descriptors + other.descriptors,
        )


def usage_of(pid: int) -> ProcessUsage:
    """What a process uses now; nothing if there is none, or it is somebody else's."""
    try:
        # the name may have blanks and brackets
        fields = Path(_PROC, str(pid), "stat").read_bytes().rpartition(b")")[2].split()
        cpu_ticks, threads, pages = int(fields[11]) + int(fields[12]), int(fields[17]), int(fields[21])
    except (OSError, IndexError, ValueError):
        return ProcessUsage()
    return ProcessUsage(1, pages * _PAGE_BYTES, cpu_ticks * _TICK_NS, threads, _descriptors(pid))


def usage_of_all(pids: Iterable[int]) -> ProcessUsage:
    """What several processes use together."""
    total = ProcessUsage()
    for pid in pids:
        total += usage_of(pid)
    return total


def max_descriptors() -> int:
    """How many this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def below(*pids: int) -> tuple[int, ...]:
    """All processes that some processes have started, and those that they have; looks at all there are."""
    if not pids:
        return ()
    children = _children()
    found: list[int] = []
    waiting = [child for pid in pids for child in children.get(pid, ())]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children.get(one, ())
    return tuple(found)


class LoadMeter:
    """The share of the machine's processors that something used between two looks.

    Parameters
    ----------
    clock_ns : callable
        A clock that never goes back.
    processors : int
        Of the machine.
    """

    def __init__(self, clock_ns: Callable[[], int], processors: int = os.cpu_count() or 1) -> None:
        self._clock_ns = clock_ns
        self._processors = processors
        self._last: tuple[int, int] | None = None

    def read(self, cpu_ns: int) -> float:
        """From 0 to 1; 0 at the first look, and when processes have ended meanwhile."""
        now_ns, last = self._clock_ns(), self._last
        self._last = now_ns, cpu_ns
        if last is None or now_ns <= last[0]:
            return 0.0
        return min(1.0, max(0, cpu_ns - last[1]) / (now_ns - last[0]) / self._processors)


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for name in os.listdir(_PROC) if _PROC.is_dir() else ():
        if name.isdigit():
            try:
                parent = int(Path(_PROC, name, "stat").read_bytes().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue  # gone meanwhile
            children.setdefault(parent, []).append(int(name))
    return children


def _descriptors(pid: int) -> int:
    try:
        return len(os.listdir(_PROC / str(pid) / "fd"))
    except OSError:
        return 0
