"""Processes of this machine, as Linux tells of them in ``/proc/<pid>/stat``.

Elsewhere there are none to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """One process at one moment."""

    #: False = it has ended, and its parent has not looked
    runs: bool
    parent: int
    #: process group
    group: int
    #: when it began, in ticks of the machine: tells processes of one number apart
    began: str


def process_stat(pid: int, proc: Path = PROC) -> ProcessStat | None:
    """What is told of one process; None = there is none of that number."""
    try:
        content = (proc / str(pid) / "stat").read_bytes()
        # the name before them may have blanks and brackets
        fields = content.rpartition(b")")[2].split()
        return ProcessStat(fields[0] not in (b"Z", b"X"), int(fields[1]), int(fields[2]), fields[19].decode())
    except (OSError, IndexError, ValueError):
        return None


def process_stats(proc: Path = PROC) -> Iterator[tuple[int, ProcessStat]]:
    """All that can be seen, by their numbers; those that end meanwhile may be left out."""
    try:
        names = [path.name for path in proc.iterdir()]
    except OSError:
        return
    for name in names:
        stat = process_stat(int(name), proc) if name.isdigit() else None
        if stat is not None:
            yield int(name), stat
