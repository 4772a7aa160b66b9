"""The event loop of asynchronous operators.

Belongs to one worker and lives as long as it, so that sessions a user's function keeps stay usable
from chunk to chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class AsyncioCalls:
    """:class:`~yarnflow.operators.process.operator.AsyncCalls` by asyncio, in the calling thread."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, coroutines: Sequence[Coroutine[Any, Any, T]], capacity: int) -> list[tuple[int, T]]:
        """Wait for all, at most ``capacity`` at a time; the first exception ends them all."""
        return self._runner.run(_run_all(coroutines, capacity))

    async def within(self, coroutine: Coroutine[Any, Any, T], timeout_ms: int) -> T:
        """Wait for a result; TimeoutError when it takes longer; 0 = no limit."""
        return await asyncio.wait_for(coroutine, timeout_ms / 1000 if timeout_ms else None)

    async def pause(self, ms: int) -> None:
        """Wait."""
        await asyncio.sleep(ms / 1000)

    def close(self) -> None:
        """End the loop."""
        self._runner.close()


async def _run_all(coroutines: Sequence[Coroutine[Any, Any, T]], capacity: int) -> list[tuple[int, T]]:
    ended: list[tuple[int, T]] = []
    gate = asyncio.Semaphore(max(1, capacity))

    async def one(index: int, coroutine: Coroutine[Any, Any, T]) -> None:
        async with gate:
            ended.append((index, await coroutine))

    tasks = [asyncio.ensure_future(one(index, coroutine)) for index, coroutine in enumerate(coroutines)]
    if not tasks:
        return ended
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in waiting:
        task.cancel()
    if waiting:
        await asyncio.wait(waiting)
    for coroutine in coroutines:
        coroutine.close()  # those that never began; does nothing to the others
    for task in tasks:
        if task in done and (error := task.exception()) is not None:
            raise error
    return ended
