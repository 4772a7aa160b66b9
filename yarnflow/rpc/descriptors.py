"""File descriptors of a process: how many it may have, and one that is kept for when there are no more.

Flink has no counterpart.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: as high as a limit is raised: programs that look through all possible descriptors would take long
_HIGHEST: Final = 1_048_576


def limit() -> int:
    """How many descriptors this process may have open now."""
    return _bounded(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def highest_limit() -> int:
    """How many it may allow itself."""
    return _bounded(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def raise_limit() -> int:
    """Allow this process, and those it starts from now on, as many as the system lets it; returns how many.

    The usual limit of 1,024 is for programs that wait for descriptors with ``select``; a JobManager has
    some for each TaskManager, driver and client.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _bounded(hard)
    if _bounded(soft) < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            pass  # it stays as it was
    return limit()


def _bounded(value: int) -> int:
    return _HIGHEST if value == resource.RLIM_INFINITY else min(value, _HIGHEST)


class Reserve:
    """One descriptor that does nothing, to be given up for a moment when a process has no other left."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._take()

    @contextmanager
    def released(self) -> Iterator[None]:
        """One descriptor is free during the block, unless another thread takes it."""
        self.close()
        try:
            yield
        finally:
            self._take()

    def close(self) -> None:
        """Give it up.  Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _take(self) -> None:
        try:
            self._descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            pass  # none is left; the next time, perhaps
