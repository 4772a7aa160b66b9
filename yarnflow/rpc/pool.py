"""Threads that run handlers.

Like ``concurrent.futures.ThreadPoolExecutor``, but its threads are daemons: a handler that
still waits (a long poll) must not keep a process from ending.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

_LOG: Final = logging.getLogger(__name__)


class DaemonPool:
    """At most ``max_threads`` threads, started as they are needed.

    Parameters
    ----------
    name : str
        Start of the threads' names.
    max_threads : int
        Further tasks wait in order.
    """

    def __init__(self, name: str, max_threads: int) -> None:
        self._name = name
        self._max_threads = max_threads
        self._tasks: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._stopped = False

    def submit(self, task: Callable[[], None]) -> None:
        """Run ``task`` soon; after :meth:`stop` it is dropped."""
        with self._changed:
            if self._stopped:
                return
            self._tasks.append(task)
            if self._idle >= len(self._tasks):
                self._changed.notify()
            elif self._threads < self._max_threads:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()

    def stop(self) -> None:
        """Drop what waits; threads end with the task they are at."""
        with self._changed:
            self._stopped = True
            self._tasks.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._tasks and not self._stopped:
                    self._changed.wait()
                self._idle -= 1
                if self._stopped:
                    return
                task = self._tasks.popleft()
            try:
                task()
            except Exception:
                _LOG.exception("a task of pool %s failed", self._name)
