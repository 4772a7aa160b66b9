"""Whether state still fits the memory of the container: asked after each group, answered before it is killed.

Decides by sizes that are passed in; what reads them knows Linux only, and finds nothing elsewhere.  A look
reads the sizes of the workers; all processes of the machine only when these have used up Python's share.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.core.resources.memory import TaskManagerMemory
from yarnflow.core.resources.processes import PROC, process_stats
from yarnflow.errors import StateTooLarge

_MIB: Final = 1024 * 1024
#: share of a limit at which the state is too large; the rest is for what grows between two looks
_FULL: Final = 0.92
#: shortest time between two looks at all processes
_PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """What is used now, in bytes."""

    #: by this worker
    own: int
    #: by each Python worker of the executor, this one included
    workers: Sequence[int] = ()
    #: by the TaskManager and all below it; reads of every process of the machine what its parent is
    container: Callable[[], int] = lambda: 0
    #: limit of this worker's address space; 0 = none
    address_limit: int = 0


def too_large(limits: TaskManagerMemory, usage: MemoryUsage) -> str:
    """What is full, in words; empty = there is room, or others are to blame.

    The container is full when all its processes together come near its size.  Python is to blame when
    it has used up its share, and this worker is when it is not one of the smaller ones.
    """
    # what is resident: libraries, and what the allocator keeps for later, take address space and no memory
    if usage.address_limit and usage.own >= _FULL * usage.address_limit:
        return (
            f"its Python worker uses {usage.own // _MIB} MiB, and its address space may have "
            f"{usage.address_limit // _MIB} MiB (a slot's share of taskmanager.memory.managed.fraction)"
        )
    python = sum(usage.workers)
    if python < limits.python_mib * _MIB or usage.own * len(usage.workers) < python:
        return ""
    container = usage.container()
    if container < _FULL * limits.process_mib * _MIB:
        return ""
    return (
        f"its Python worker uses {usage.own // _MIB} MiB, all Python workers {python // _MIB} of "
        f"{limits.python_mib} MiB, the TaskManager {container // _MIB} of {limits.process_mib} MiB "
        "(taskmanager.memory.process.size)"
    )


class MemoryWatch:
    """Looks now and then.

    Parameters
    ----------
    limits : TaskManagerMemory
    usage : callable
        Reads what is used; the argument tells whether what processes share counts for each.
    clock_s : callable
        Seconds, from any beginning.
    shared_counts_twice : bool
        Who ends what is larger adds up resident sets, also what processes share; YARN does.
    """

    def __init__(
        self,
        limits: TaskManagerMemory,
        usage: Callable[[bool], MemoryUsage],
        clock_s: Callable[[], float],
        shared_counts_twice: bool,
    ) -> None:
        self._shared_counts_twice = shared_counts_twice
        self._limits = limits
        self._usage = usage
        self._clock_s = clock_s
        self._next_s = 0.0

    def check(
        self, release: Callable[[], None], describe: Callable[[], str], what_to_do: str
    ) -> None:
        """Raise if the state of this worker is too large.

        Parameters
        ----------
        release : callable
            Lets go of what can be read again; called before giving up.
        describe : callable
            Whose state it is, and how large.
        what_to_do : str
            Ends the error's message.

        Raises
        ------
        StateTooLarge
        """
        now_s = self._clock_s()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _PAUSE_S
        if not self._full():
            return
        description = describe()
        release()
        full = self._full()
        if full:
            raise StateTooLarge(f"{description}: {full}; {what_to_do}")

    def _full(self) -> str:
        # resident sets are quick to read and never too small
        full = too_large(self._limits, self._usage(True))
        if full and not self._shared_counts_twice:
            full = too_large(self._limits, self._usage(False))
        return full


def memory_usage(shared_counts_twice: bool) -> MemoryUsage:
    """What is used now by this worker, its executor's other workers and the TaskManager's processes."""
    own, daemon = os.getpid(), os.getppid()
    size = _resident if shared_counts_twice else _proportional
    workers = {pid: size(pid) for pid in {own, *_children(daemon)}}
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return MemoryUsage(
        own=workers[own],
        workers=list(workers.values()),
        container=lambda: _container(daemon, size),
        address_limit=0 if limit == resource.RLIM_INFINITY else limit,
    )


def _container(daemon: int, size: Callable[[int], int]) -> int:
    parents = _parents()
    executor = parents.get(daemon, 0)
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    total, waiting = 0, [parents.get(executor, 0) or executor]
    while waiting:
        pid = waiting.pop()
        total += size(pid)
        waiting += children.get(pid, ())
    return total


def _children(pid: int) -> Sequence[int]:
    """Of a process that starts others in its main thread only, as Spark's daemon does."""
    try:
        found = Path(PROC, str(pid), "task", str(pid), "children").read_text()
        return [int(child) for child in found.split()]
    except OSError:  # a kernel without it
        return [child for child, parent in _parents().items() if parent == pid]


def _parents() -> dict[int, int]:
    """Process → its parent, of all that can be seen."""
    return {pid: stat.parent for pid, stat in process_stats(PROC)}


def _resident(pid: int) -> int:
    try:
        return int(Path(PROC, str(pid), "statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    """Resident set, with what several processes share divided among them."""
    try:
        for line in Path(PROC, str(pid), "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _resident(pid)
