"""Wakes those who follow a job, in the event loop, when somebody in another thread has changed it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class JobChanges:
    """Who follows which job; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followers: dict[str, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}

    def changed(self, job_id: str) -> None:
        """Something of a job is new; any thread, never blocks for long."""
        if job_id not in self._followers:
            return
        with self._lock:
            followers = tuple(self._followers.get(job_id, ()))
        for loop, event in followers:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                pass  # its loop has ended

    @asynccontextmanager
    async def following(self, job_id: str) -> AsyncIterator[asyncio.Event]:
        """An event that is set at each change of the job from now on."""
        follower = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._followers.setdefault(job_id, set()).add(follower)
        try:
            yield follower[1]
        finally:
            with self._lock:
                left = self._followers[job_id]
                left.discard(follower)
                if not left:
                    del self._followers[job_id]
