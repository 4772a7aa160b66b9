"""Whether anything of an ended process still runs.

A process that was killed may leave children behind for a moment: they were sent the signal, too,
but are still busy dying, and a child in a session of its own (a driver's JVM) is in no process
group of ours.  Whoever lets somebody else write where they wrote has to wait for that moment.
Linux only.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from typing import Final

from yarnflow.core.resources.processes import PROC, process_stats

#: variable by which all that a process starts is known; see :func:`new_mark`
MARK_ENVIRONMENT: Final = "YARNFLOW_PROCESS_MARK"
_LOOK_AGAIN_S: Final = 0.02
#: how long a parent may take to reap what was killed
_KILLED_S: Final = 1.0


def new_mark() -> dict[str, str]:
    """Environment of a process whose leftovers can be told from those of every other one."""
    return {MARK_ENVIRONMENT: secrets.token_hex(8)}


def await_nothing_left(group: int, mark: str, timeout_s: float = 10.0) -> bool:
    """Wait until no process of a group, and none with a mark, runs any more.

    Parameters
    ----------
    group : int
        Process group; its head has ended.
    mark : str
        ``NAME=value`` that stood in the environment of the head, and so in its descendants'.

    Returns
    -------
    bool
        False = something still runs after the time.
    """
    deadline = time.monotonic() + timeout_s
    while any_left(group, mark):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_AGAIN_S)
    return True


def any_left(group: int, mark: str) -> bool:
    """Whether a process of the group, or with the mark, runs.  Those not reaped yet do not run."""
    needle = b"\0" + mark.encode() + b"\0"
    for pid, stat in process_stats():
        if not stat.runs:
            continue
        if stat.group == group:
            return True
        try:
            if mark and needle in b"\0" + (PROC / str(pid) / "environ").read_bytes():
                return True
        except OSError:
            continue  # gone meanwhile, or somebody else's
    return False


def end_grandchildren(pid: int, grace_s: float = 6.0) -> None:
    """End all that the children of a process have started, not these themselves.

    HUP, then KILL for what is there after ``grace_s``; returns when it is gone.
    """
    children: dict[int, list[int]] = {}
    for other, parent in _parents().items():
        children.setdefault(parent, []).append(other)
    below = [grandchild for child in children.get(pid, ()) for grandchild in children.get(child, ())]
    # it grows while it is read
    for other in below:
        below += children.get(other, ())
    for number, patience_s in ((signal.SIGHUP, grace_s), (signal.SIGKILL, _KILLED_S)):
        for other in below:
            try:
                os.kill(other, number)
            except ProcessLookupError:
                continue
        deadline = time.monotonic() + patience_s
        while below and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S / 4)
            below = sorted(_parents().keys() & set(below))


def _parents() -> dict[int, int]:
    """Process → its parent, of all that run; those not reaped yet do not."""
    return {pid: stat.parent for pid, stat in process_stats() if stat.runs}
