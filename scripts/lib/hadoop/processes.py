"""Which processes belong to a cluster, and how they are ended.

No pid is ever kept in a file: a process is looked up in /proc each time, by a variable that the daemons are
started with or one that YARN gives to containers, so a reused pid cannot be mistaken for a daemon.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hadoop.layout import Layout

# never part of what `scripts/hadoop env` prints: a shell that uses a cluster is none of its processes
MARK = "YARNFLOW_HADOOP_CLUSTER"


@dataclass(frozen=True)
class Process:
    """A live process of a cluster."""

    pid: int
    # kernel's letter: R, S, D, T …
    state: str
    # clock ticks since boot; with the pid it names a process for good
    started: int
    # None = not a daemon: a container, or what a NodeManager runs for one
    daemon: str | None
    command: str

    @property
    def paused(self) -> bool:
        """Stopped by SIGSTOP."""
        return self.state in "Tt"


def find(layout: Layout) -> list[Process]:
    """All live processes of the cluster, containers included."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            process = _look(int(entry), layout)
            if process is not None:
                found.append(process)
    return found


def daemon(layout: Layout, name: str) -> Process | None:
    """The process of one daemon."""
    return next((process for process in find(layout) if process.daemon == name), None)


def send(layout: Layout, process: Process, number: int) -> None:
    """Send a signal, provided that the process is still the one that was found."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        now = _look(process.pid, layout)
        if now is not None and now.started == process.started:
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)


def end(layout: Layout, name: str, grace_s: float) -> bool:
    """End one daemon: ask, wait ``grace_s`` seconds (0 = do not ask), kill; returns whether it ran."""
    process = daemon(layout, name)
    if process is None:
        return False
    _end(layout, lambda: [found for found in find(layout) if found.daemon == name], grace_s)
    return True


def end_all(layout: Layout, grace_s: float) -> int:
    """End all processes of the cluster, daemons first, then what they left; returns how many there were."""
    pids = {process.pid for process in find(layout)}
    _end(layout, lambda: [found for found in find(layout) if found.daemon], grace_s)
    pids |= {process.pid for process in find(layout)}
    _end(layout, lambda: find(layout), 0.0)
    return len(pids)


def _end(layout: Layout, remaining: Callable[[], list[Process]], grace_s: float) -> None:
    asked: set[tuple[int, int]] = set()
    give_up = time.monotonic() + grace_s
    while processes := remaining():
        for process in processes:
            if time.monotonic() >= give_up:
                send(layout, process, signal.SIGKILL)
            elif (process.pid, process.started) not in asked:
                asked.add((process.pid, process.started))
                send(layout, process, signal.SIGTERM)
                # one that was paused hears nothing else
                send(layout, process, signal.SIGCONT)
        time.sleep(0.05)


def _look(pid: int, layout: Layout) -> Process | None:
    """The process of that number if it is one of the cluster and alive."""
    root = Path("/proc", str(pid))
    try:
        # the second field, a name in brackets, can hold blanks and brackets
        fields = (root / "stat").read_text(errors="replace").rpartition(")")[2].split()
        state, started = fields[0], int(fields[19])
        if state in "ZXx":
            return None
        environment = (root / "environ").read_bytes()
        words = [os.fsdecode(word) for word in (root / "cmdline").read_bytes().split(b"\0")]
    except OSError:
        # gone meanwhile, or someone else's
        return None
    marks = (f"\0{MARK}={layout.folder}\0", f"\0LOCAL_DIRS={layout.data}/nodemanager-")
    if not any(os.fsencode(mark) in b"\0" + environment for mark in marks) and not _is_at_home(root, layout):
        return None
    name = None
    if len(words) > 1 and words[1].startswith(f"@{layout.run}/") and words[1].endswith(".args"):
        name = Path(words[1][1:]).stem
    return Process(pid, state, started, name, " ".join(words).strip())


def _is_at_home(root: Path, layout: Layout) -> bool:
    """Whether it works in a NodeManager's folder; for containers that threw their environment away."""
    try:
        folder = os.readlink(root / "cwd")
    except OSError:
        return False
    return folder.startswith(f"{layout.data}/nodemanager-")
