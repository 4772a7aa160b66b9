"""Threads for work that blocks, divided so that one target that does not answer holds up no other.

Each target has a few threads at most and a bounded queue.  One whose calls failed is a suspect: all
suspects together may have only a part of the threads, so what was never heard to fail has the rest.
After several failures in a row nothing waits for a target any more: for a few seconds its work is
refused at once, then one call may try.  Work without a target has threads of its own.

Flink has no counterpart: its RPC waits for nobody.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from yarnflow.errors import CallSuspended, RpcTimeout, RpcUnavailable, YarnflowError

#: does the work; returns the failure, if any
Task = Callable[[], YarnflowError | None]
#: told why the work is not done
Refuse = Callable[[YarnflowError], None]

#: calls to one target at a time …
PER_TARGET: Final = 2
#: … and those that wait for it: as many as a large TaskManager has slots, which are asked for at once
MAX_WAITING: Final = 1_024
#: failures in a row after which a target's work is refused
FAILURES: Final = 3
#: for so long, and up to this part longer
REFUSED_S: Final = 5.0
_JITTER: Final = 0.2
#: a target that was not called for so long is one that never failed
_FORGOTTEN_S: Final = 600.0
#: targets that are known before those that may be forgotten are looked for
_FIRST_SWEEP: Final = 256


@dataclass(slots=True)
class _Lane:
    """One target."""

    target: str
    waiting: deque[tuple[Task, Refuse]] = field(default_factory=deque)
    running: int = 0
    #: in a row
    failures: int = 0
    #: work is refused before that time
    refused_until_s: float = 0.0
    reason: str = ""
    #: where its turn comes; None = it may do nothing now.  What is left of it in another queue is void
    queue: deque[_Lane] | None = None
    used_s: float = 0.0


class Bulkheads:
    """Runs tasks in threads.

    Parameters
    ----------
    name : str
        Beginning of the threads' names.
    max_threads : int
        For all targets together; they are started as they are needed.
    without_target : int
        Threads for work that names no target; it waits in order, without bound.
    now, jitter : callable
        Seconds of a clock that never goes back; 0 to 1 at random.
    """

    def __init__(
        self,
        name: str,
        max_threads: int,
        without_target: int,
        now: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._now = now
        self._jitter = jitter
        self._max_threads = max_threads
        self._max_suspects = max(max_threads // 2, 1)
        self._lock = threading.Lock()
        self._lanes: dict[str, _Lane] = {}
        #: queues of those that have work and may do it as soon as there is a thread
        self._ready: deque[_Lane] = deque()
        self._ready_suspects: deque[_Lane] = deque()
        self._running = 0
        #: of these, calls to suspects
        self._running_suspects = 0
        self._sweep_at = _FIRST_SWEEP
        self._threads = ThreadPoolExecutor(max_threads, thread_name_prefix=name)
        self._others = ThreadPoolExecutor(without_target, thread_name_prefix=name)

    def submit(self, target: str, task: Task, refuse: Refuse) -> None:
        """Run ``task`` soon, or call ``refuse`` at once, in this thread.

        ``refuse`` gets :class:`~yarnflow.errors.CallSuspended`: the target failed again and again, or too
        much waits for it already.

        Raises
        ------
        RuntimeError
            After :meth:`close`.
        """
        if not target:
            self._others.submit(task)
            return
        with self._lock:
            lane = self._lane(target)
            refusal = self._refusal(lane)
            if refusal is None:
                lane.waiting.append((task, refuse))
                self._changed(lane)
        if refusal is not None:
            refuse(refusal)

    def alive(self, target: str) -> None:
        """It was heard of, so it is called again; it stays a suspect until it has answered a call."""
        with self._lock:
            lane = self._lanes.get(target)
            if lane is not None:
                lane.refused_until_s = 0.0

    def heard_of(self, target: str) -> None:
        """It has begun anew: whatever was not answered at this address counts no more."""
        with self._lock:
            lane = self._lanes.get(target)
            if lane is not None:
                lane.refused_until_s = 0.0
                self._set_failures(lane, 0)
                self._changed(lane)

    def close(self) -> None:
        """Start nothing more."""
        with self._lock:
            self._lanes.clear()
            self._ready.clear()
            self._ready_suspects.clear()
        for pool in (self._threads, self._others):
            pool.shutdown(wait=False, cancel_futures=True)

    # --- with the lock held ---

    def _lane(self, target: str) -> _Lane:
        now_s = self._now()
        lane = self._lanes.get(target)
        if lane is None:
            if len(self._lanes) >= self._sweep_at:
                self._sweep(now_s)
            lane = self._lanes[target] = _Lane(target)
        lane.used_s = now_s
        return lane

    def _sweep(self, now_s: float) -> None:
        self._lanes = {
            target: lane
            for target, lane in self._lanes.items()
            if lane.running or lane.waiting or (lane.failures and now_s - lane.used_s < _FORGOTTEN_S)
        }
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._lanes))

    def _refusal(self, lane: _Lane) -> YarnflowError | None:
        if self._now() < lane.refused_until_s:
            return CallSuspended(
                f"{lane.target} was not reached {lane.failures} times in a row and is not called for some "
                f"seconds: {lane.reason}"
            )
        if len(lane.waiting) >= MAX_WAITING:
            return CallSuspended(
                f"{len(lane.waiting)} calls wait for {lane.target} already; it answers too slowly"
            )
        return None

    def _changed(self, lane: _Lane) -> None:
        """Whatever happened to a target, it is queued where it belongs now, and who can run runs."""
        self._queue(lane)
        self._dispatch()

    def _queue(self, lane: _Lane) -> None:
        # one call is enough to see whether a target that was given up is back
        allowed = 1 if lane.failures >= FAILURES else PER_TARGET
        queue = self._ready_suspects if lane.failures else self._ready
        if not lane.waiting or lane.running >= allowed:
            lane.queue = None
        elif lane.queue is not queue:
            lane.queue = queue
            queue.append(lane)

    def _dispatch(self) -> None:
        while self._running < self._max_threads:
            if self._ready:
                queue = self._ready
            elif self._ready_suspects and self._running_suspects < self._max_suspects:
                queue = self._ready_suspects
            else:
                return
            lane = queue.popleft()
            if lane.queue is not queue:
                continue
            lane.queue = None
            task, _refuse = lane.waiting.popleft()
            self._count_running(lane, 1)
            self._queue(lane)
            self._threads.submit(self._run, lane, task)

    def _count_running(self, lane: _Lane, more: int) -> None:
        lane.running += more
        self._running += more
        self._running_suspects += more * (lane.failures > 0)

    def _set_failures(self, lane: _Lane, failures: int) -> None:
        # what it has under way may hang like what failed
        self._running_suspects += lane.running * ((failures > 0) - (lane.failures > 0))
        lane.failures = failures

    # --- in a thread of the pool ---

    def _run(self, lane: _Lane, task: Task) -> None:
        failure: YarnflowError | None = None
        try:
            failure = task()
        finally:
            refused = self._ended(lane, failure)
        for refuse, error in refused:
            refuse(error)

    def _ended(self, lane: _Lane, failure: YarnflowError | None) -> list[tuple[Refuse, YarnflowError]]:
        refused: list[tuple[Refuse, YarnflowError]] = []
        with self._lock:
            self._count_running(lane, -1)
            if isinstance(failure, (RpcTimeout, RpcUnavailable)):
                self._set_failures(lane, lane.failures + 1)
                lane.reason = failure.message
                if lane.failures >= FAILURES:
                    lane.refused_until_s = self._now() + REFUSED_S * (1 + _JITTER * self._jitter())
                    error = self._refusal(lane)
                    assert error is not None
                    refused = [(refuse, error) for _task, refuse in lane.waiting]
                    lane.waiting.clear()
            else:
                lane.refused_until_s = 0.0
                self._set_failures(lane, 0)
            if self._lanes.get(lane.target) is lane:  # else closed
                self._changed(lane)
        return refused
