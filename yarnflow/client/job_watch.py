"""What becomes of a job, seen by long polls of a background thread, and interrupts as messages.

Calls are made in that thread alone, so that an interrupt never breaks into the middle of one.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeAlias

from yarnflow.client.cluster import JobCluster
from yarnflow.client.savepoints import retained_state
from yarnflow.core.checkpoint.messages import CheckpointInfo
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, Fence, JobDetails
from yarnflow.errors import HaError, RpcError, RpcTimeout, RpcUnavailable, YarnflowError
from yarnflow.process.signals import ENDING

#: a long poll returns after this time at the latest
POLL_MS: Final = 5_000
_RETRY_S: Final = 0.2

#: the only sign of a failover that a user sees
LEADER_CHANGED: Final = "The leader of the cluster has changed; the job goes on."

#: new details (with an overview if it could be had), a note, why there will be no more, or an interrupt
Change: TypeAlias = "tuple[JobDetails, ClusterOverview | None] | str | YarnflowError | KeyboardInterrupt"


class JobWatch:
    """Polls one job until its end.

    Parameters
    ----------
    connection : JobCluster
        Where it runs.
    job_id : JobId
    timeout_ms : int
        How long an unreachable JobManager is tried again.

    Attributes
    ----------
    retained : CheckpointInfo or None
        State that the job left behind; known before its end is told.
    """

    def __init__(self, connection: JobCluster, job_id: JobId, timeout_ms: int) -> None:
        self._connection = connection
        self._job_id = job_id
        self._timeout_ms = timeout_ms
        self.retained: CheckpointInfo | None = None

    def begin(self, put: Callable[[Change], None], stop: threading.Event) -> None:
        """Poll in a thread of its own, until there is no more to tell or ``stop`` is set."""
        threading.Thread(target=self._poll, args=(put, stop), name="job-watcher", daemon=True).start()

    def _poll(self, put: Callable[[Change], None], stop: threading.Event) -> None:
        version = -1
        leader: Fence | None = None
        answered_s = time.monotonic()
        while not stop.is_set():
            try:
                gateway = self._connection.gateway()
                details = gateway.await_job_change(self._job_id, version, POLL_MS)
            except (RpcError, HaError) as error:
                end = self._end_after(error, answered_s)
                if end is not None:
                    put(end)
                    return
                stop.wait(_RETRY_S)
                continue
            except YarnflowError as error:
                put(error)
                return
            answered_s = time.monotonic()
            now_leads = self._connection.followed()
            if now_leads is not None and now_leads != leader:
                if leader is not None:
                    put(LEADER_CHANGED)
                leader = now_leads
            if details.version == version:
                continue
            version = details.version
            overview: ClusterOverview | None = None
            if not details.overview.status.terminal:
                try:
                    overview = gateway.cluster_overview()
                except (RpcError, HaError):
                    pass  # it only decorates the view
            else:
                # at once: a cluster may end with its job
                self.retained = retained_state(self._connection, details)
            put((details, overview))
            if details.overview.status.terminal:
                return

    def _end_after(self, error: YarnflowError, answered_s: float) -> Change | None:
        """What a call without an answer means: the job's end, why it is given up, or None = try again."""
        # a job that lived with its cluster may have ended with it
        final = self._connection.final_details(self._job_id)
        if final is not None:
            return final, None
        failure = self._connection.failure()
        passing = isinstance(error, (RpcUnavailable, RpcTimeout, HaError))
        if failure is None and passing and (time.monotonic() - answered_s) * 1000 < self._timeout_ms:
            return None
        return failure or error


@contextmanager
def interrupts_to(put: Callable[[KeyboardInterrupt], None]) -> Iterator[None]:
    """Deliver interrupts as messages instead of exceptions that may come anywhere.

    Signals whose handler raises :class:`KeyboardInterrupt` are caught; others keep their handler.
    Outside the main thread nothing is changed: interrupts never come there.  SIGTERM counts once: the kernel
    tells that a parent has died again for each of its threads, as they end one after the other, and that is
    not somebody who has lost patience.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}

    terminated = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal terminated
        if number == signal.SIGTERM:
            if terminated:
                return
            terminated = True
        handler = before[signal.Signals(number)]
        try:
            if callable(handler):
                handler(number, frame)
        except KeyboardInterrupt as interrupt:
            put(interrupt)

    caught = [number for number, handler in before.items() if callable(handler)]
    for number in caught:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, before[number])
