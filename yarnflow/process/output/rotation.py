"""Files that other processes write their output to, kept from growing for ever.

A child writes to its file itself, at its end (``O_APPEND``), so that nothing stands between the two.  When
the file is large enough, its content is copied beside it, ``<name>.1``, and the file is made empty; what the
child writes next is at its beginning (:mod:`~yarnflow.process.output.series`).  What is written in the very
moment between the two may be missing: a process must not wait for its log.  Log files that only Python
writes to are rotated by Python.  Flink counterpart: the rolling appender of ``log4j.properties``; its
``.out`` files are not rotated.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from yarnflow.process.output import series
from yarnflow.process.output.ended_logs import EndedLogs

#: less than in ``log.yaml``: where Python's log and other output share a file, it is rotated here, since a
#: process that has it open would go on in the file that Python has renamed
MAX_BYTES: Final = 64 * 1024 * 1024
KEPT_FILES: Final = 10
#: between two looks at all files
_INTERVAL_S: Final = 2.0
#: until what failed is tried again: it may have copied much in vain
_RETRY_S: Final = 60.0

logger = logging.getLogger(__name__)


class LogRotation:
    """Decides when the files it is told of are rotated, and removed.  Thread-safe, but for :meth:`rotate`.

    Parameters
    ----------
    max_bytes : int
        Size from which on a file is rotated.
    kept : int
        Rotated files that are kept of each: ``<name>.1`` is the newest.
    """

    def __init__(self, max_bytes: int = MAX_BYTES, kept: int = KEPT_FILES) -> None:
        self._max_bytes = max_bytes
        self._kept = kept
        self._lock = threading.Lock()
        self._files: Counter[Path] = Counter()
        #: where processes may have been killed in a rotation
        self._unchecked: set[Path] = set()
        self._ended: tuple[EndedLogs, ...] = ()
        #: file, directory or logs of it → when it is tried again
        self._retries_s: dict[Path | EndedLogs, float] = {}

    def watch(self, file: Path) -> None:
        """From now on rotate a file; as often as it is said, it must be released."""
        with self._lock:
            self._files[file] += 1
            self._unchecked.add(file.parent)

    def release(self, file: Path) -> None:
        """A process that wrote to it has ended."""
        with self._lock:
            self._files[file] -= 1
            if self._files[file] <= 0:
                del self._files[file]

    def limit(self, ended: EndedLogs) -> None:
        """From now on remove logs of ended processes, soon after one has ended."""
        with self._lock:
            self._ended = (*self._ended, ended)

    def release_limit(self, ended: EndedLogs) -> None:
        """Whoever starts these processes starts no more."""
        with self._lock:
            self._ended = tuple(other for other in self._ended if other is not ended)

    def rotate(self, now_s: float) -> None:
        """Look at all files once.

        Parameters
        ----------
        now_s : float
            By a clock that never goes back.
        """
        with self._lock:
            files, directories, all_ended = tuple(self._files), tuple(self._unchecked), self._ended
        known: set[Path | EndedLogs] = {*files, *directories, *all_ended}
        self._retries_s = {what: at_s for what, at_s in self._retries_s.items() if what in known}
        for directory in directories:
            failure = f"{directory} cannot be rotated"
            if self._try(partial(series.recover, directory, self._kept), directory, failure, now_s):
                with self._lock:
                    self._unchecked.discard(directory)
        for file in files:
            self._try(partial(self._rotate, file), file, f"{file} cannot be rotated", now_s)
        for ended in all_ended:
            if ended.due:
                failure = f"logs of ended processes in {ended.directory} cannot be removed"
                self._try(ended.remove_surplus, ended, failure, now_s)

    def _rotate(self, file: Path) -> None:
        series.put_in_place(file, self._kept)
        if file.stat().st_size >= self._max_bytes:
            series.rotate(file, self._kept)

    def _try(self, act: Callable[[], None], what: Path | EndedLogs, failure: str, now_s: float) -> bool:
        if now_s < self._retries_s.get(what, now_s):
            return False
        try:
            act()
        except FileNotFoundError:
            # nothing has been written yet
            pass
        except OSError as error:
            # said once, however often it fails
            if what not in self._retries_s:
                logger.warning("%s: %s", failure, error)
            self._retries_s[what] = now_s + _RETRY_S
            return False
        self._retries_s.pop(what, None)
        return True


_lock = threading.Lock()
_own: LogRotation | None = None


def own_rotation() -> LogRotation:
    """That of this process, which a thread calls from now on."""
    global _own
    with _lock:
        if _own is None:
            _own = LogRotation()
            threading.Thread(target=_run, args=(_own,), name="log-rotation", daemon=True).start()
        return _own


def _run(rotation: LogRotation) -> None:
    while True:
        rotation.rotate(time.monotonic())
        time.sleep(_INTERVAL_S)


def _after_fork() -> None:
    # the child has no thread that would rotate, or give back a lock that it holds
    global _lock, _own
    _lock, _own = threading.Lock(), None


os.register_at_fork(after_in_child=_after_fork)
