"""Takes the JobManager's wishes for TaskManagers before there is a connection to YARN.

The JobManager is started before anything that is slow to import, so its first wishes may come
early; they are kept and passed on in order.  Where a cluster has several masters, each with workers
of its own, the names they have in the cluster are translated here: a master has power over its own
workers only.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Final

from yarnflow.core.ports import WorkerOwner
from yarnflow.core.resources.provider import ProviderState, WorkerExit

logger: Final = logging.getLogger(__name__)


class QueuedWorkers:
    """A :class:`~yarnflow.core.ports.WorkerOwner` in front of one that comes later.

    Parameters
    ----------
    prefix : str
        What the names of this master's workers begin with, in the cluster.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._lock = threading.Lock()
        self._owner: WorkerOwner | None = None
        self._requested = 0
        self._released: list[str] = []

    def attach(self, owner: WorkerOwner) -> None:
        """Pass on what was asked for so far, and from now on everything."""
        with self._lock:
            self._owner = owner
            requested, self._requested = self._requested, 0
            released, self._released = self._released, []
            for worker_id in released:
                owner.release_worker(worker_id)
            if requested:
                owner.request_workers(requested)

    def request_workers(self, count: int) -> None:
        """Ask for workers."""
        with self._lock:
            if self._owner is None:
                self._requested += count
                return
        self._owner.request_workers(count)

    def cancel_requests(self, count: int) -> int | None:
        """Withdraw requests; of those kept here it is certain that they never come."""
        with self._lock:
            if self._owner is None:
                withdrawn = min(count, self._requested)
                self._requested -= withdrawn
                return withdrawn
        return self._owner.cancel_requests(count)

    def release_worker(self, worker_id: str) -> None:
        """Give a worker back; one of another master ends by itself, as it may not register any more."""
        if not worker_id.startswith(self._prefix):
            logger.info("Worker %s is another master's; it ends by itself.", worker_id)
            return
        own = worker_id.removeprefix(self._prefix)
        with self._lock:
            if self._owner is None:
                self._released.append(own)
                return
        self._owner.release_worker(own)

    # --- what the owner says, as the cluster understands it ---

    def named_exit(self, exit: WorkerExit) -> WorkerExit:
        """The end of a worker."""
        return replace(exit, worker_id=self._prefix + exit.worker_id)

    def named_state(self, state: ProviderState) -> ProviderState:
        """The workers there are."""
        return replace(state, granted=tuple(self._prefix + worker_id for worker_id in state.granted))
