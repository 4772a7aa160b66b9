"""Log files of processes that have ended: the newest are kept, so that their number does not grow for ever.

A process has several files, whose names begin with its own: ``driver-3.out``, ``driver-3.log``,
``driver-3.jvm.log.1``.  One of them, the head, is its standard error, which is open and locked
(:func:`open_head`) for as long as the process, or anything that it has started with it, lives.  So whoever
shares the directory sees which processes live, also those of another cluster, and one that was killed leaves
no lock.

Flink has no counterpart: its processes are few, and YARN or Kubernetes removes their files.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.config.options.cluster import LOG_RETAINED_PROCESSES

logger = logging.getLogger(__name__)

#: how often a file is tried that is being removed at the moment, and the pause in between
_TRIES: Final = 100
_TRY_AGAIN_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class LogKind:
    """Processes whose logs are counted together."""

    #: what they are called, in the plural
    title: str
    #: of their names
    process: re.Pattern[str]
    #: the head is the file of the process's name with this end
    head: str


DRIVERS: Final = LogKind("drivers", re.compile(r"driver-\d+"), ".out")
#: of all TaskManagers that write to a directory
EXECUTORS: Final = LogKind("executors", re.compile(r"(.+-)?executor-[^.]+"), ".log")


@dataclass(frozen=True, slots=True)
class ProcessLogs:
    """The log files of one process."""

    process: str
    head: str
    #: all but the head
    others: tuple[str, ...]
    #: when one of them was written to last
    written_ns: int = 0


def by_process(names: Collection[str], kind: LogKind) -> list[ProcessLogs]:
    """Files of a directory that are logs of a kind, by process; no process without its head.

    Rotated files and copies of rotations belong to their file's process.
    """
    found: dict[str, list[str]] = {}
    pattern = re.compile(rf"\.?({kind.process.pattern})\..+")
    for name in sorted(names):
        if match := pattern.fullmatch(name):
            found.setdefault(match[1], []).append(name)
    return [
        ProcessLogs(process, head, tuple(name for name in files if name != head))
        for process, files in found.items()
        if (head := process + kind.head) in files
    ]


def surplus(ended: Iterable[ProcessLogs], kept: int) -> list[ProcessLogs]:
    """Which logs of ended processes go: all but the newest, oldest first.

    Parameters
    ----------
    kept : int
        Processes whose logs stay; 0 = of all.
    """
    if kept <= 0:
        return []
    by_age = sorted(ended, key=lambda logs: (logs.written_ns, logs.process))
    return by_age[: max(0, len(by_age) - kept)]


class EndedLogs:
    """Removes logs of one directory.  Thread-safe, but for :meth:`remove_surplus`.

    Parameters
    ----------
    directory : Path
    kind : LogKind
    kept : int
        Ended processes whose logs stay; 0 = of all.
    """

    def __init__(self, directory: Path, kind: LogKind, kept: int) -> None:
        self.directory = directory
        self._kind = kind
        self._kept = kept
        # of processes before this one's start, there may be too many
        self._due = threading.Event()
        if kept > 0:
            self._due.set()

    @property
    def due(self) -> bool:
        """Whether a process has ended since the last removal."""
        return self._due.is_set()

    def process_ended(self) -> None:
        """One of the kind has ended; nothing is removed yet."""
        if self._kept > 0:
            self._due.set()

    def remove_surplus(self) -> None:
        """Remove the logs of all ended processes but the newest.

        Raises
        ------
        OSError
            Some of them are left; it may be tried again.
        """
        # before the look: what ends meanwhile makes it due again
        self._due.clear()
        try:
            for logs in surplus(self._ended(), self._kept):
                self._remove(logs)
        except FileNotFoundError:
            # of the directory: nothing was ever written there
            return
        except OSError:
            self._due.set()
            raise

    def _ended(self) -> Iterator[ProcessLogs]:
        for logs in by_process(os.listdir(self.directory), self._kind):
            with _of_nobody(self.directory / logs.head) as ended:
                if ended:
                    yield ProcessLogs(logs.process, logs.head, logs.others, self._written_ns(logs))

    def _written_ns(self, logs: ProcessLogs) -> int:
        times = [0]
        for name in (logs.head, *logs.others):
            try:
                times.append((self.directory / name).stat().st_mtime_ns)
            except FileNotFoundError:
                # another process that shares the directory removes them
                continue
        return max(times)

    def _remove(self, logs: ProcessLogs) -> None:
        # by its head, which goes last, the rest is found again by who was killed in between
        with _of_nobody(self.directory / logs.head) as ended:
            if not ended:
                return
            for name in (*logs.others, logs.head):
                (self.directory / name).unlink(missing_ok=True)
        logger.info(
            "Log files of %s are removed: those of the %d newest %s that have ended are kept (%s).",
            *(logs.process, self._kept, self._kind.title, LOG_RETAINED_PROCESSES.key),
        )


def open_head(path: Path, mode: int) -> int:
    """Open a log file to append to it, so that it counts as a living process's until nobody has it open.

    Returns
    -------
    int
        A descriptor; what inherits it keeps the lock.

    Raises
    ------
    OSError
        The file cannot be opened.
    """
    for _ in range(_TRIES):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                return descriptor
        except BlockingIOError:
            # whoever looks whether it lives has it for a moment
            time.sleep(_TRY_AGAIN_S)
        except OSError as error:
            logger.warning("%s cannot be locked: %s; others do not see that its process lives", path, error)
            return descriptor
        # it was an ended process's, and has just been removed
        os.close(descriptor)
    raise OSError(errno.EAGAIN, "another process holds a lock on it", str(path))


@contextmanager
def _of_nobody(head: Path) -> Iterator[bool]:
    """Whether no process has a head open; for the block none of our processes can start with it."""
    try:
        descriptor = os.open(head, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = _is_at(descriptor, head)
        except OSError:
            # it lives; or that is not to be known, and nothing of it is removed
            free = False
        yield free
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
