"""TaskManagers as containers of skein's application.

Decides which requests are withdrawn, what counts as a request that is open, and how often skein's
ApplicationMaster is asked.  Every container that ever ran is reported once when it has ended.
Never decides how many workers there should be.  Flink counterpart: ``YarnResourceManagerDriver``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.core.yarn import YarnCluster
from yarnflow.errors import YarnflowError
from yarnflow.yarn.container_exit import ContainerExit, container_exit
from yarnflow.yarn.spec import TASK_MANAGER_SERVICE
from yarnflow.yarn.web.admission import find_queue, outlook
from yarnflow.yarn.web.node_manager import NodeManagers

logger = logging.getLogger(__name__)

_PENDING_POLL_S: Final = 0.25
_IDLE_POLL_S: Final = 1.0
#: requests older than this are explained, and explained again this often
_EXPLAIN_AFTER_S: Final = 5.0
_OPEN: Final = ("WAITING", "REQUESTED")
_LIVE: Final = (*_OPEN, "RUNNING")
_ENDED: Final = ("SUCCEEDED", "FAILED", "KILLED")
#: skein names a container's log after its service
_LOG_NAME: Final = f"{TASK_MANAGER_SERVICE}.log"


class YarnWorkers:
    """Requests, cancels, releases and watches the containers of the TaskManager service.

    All methods return at once; one thread talks to skein's ApplicationMaster and calls the
    listeners.  Worker ids are skein's container ids, ``taskmanager_3``.

    Parameters
    ----------
    client : skein.ApplicationClient
    cluster : YarnCluster, optional
        Tells why requests are not granted.
    nodes : NodeManagers, optional
        Tell what became of a container's process.
    monotonic : callable
        Clock in seconds.
    """

    def __init__(
        self,
        client: Any,
        cluster: YarnCluster | None = None,
        nodes: NodeManagers | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._nodes = nodes
        self._monotonic = monotonic
        self._changed = threading.Condition()
        self._to_request = 0
        #: asked for, and how many of them have been withdrawn already
        self._to_cancel: list[tuple[int, int]] = []
        self._to_release: list[str] = []
        self._closed = False
        self._paused = False
        self._thread: threading.Thread | None = None
        self._exit_listeners: list[Callable[[WorkerExit], None]] = []
        self._cancel_listeners: list[Callable[[int, int], None]] = []
        self._state_listeners: list[Callable[[ProviderState], None]] = []
        # below: the thread's own
        self._live: dict[str, Any] = {}
        self._open_since: dict[str, float] = {}
        self._released: set[str] = set()
        self._withdrawn: set[str] = set()
        self._looked_back = False
        #: ended, but not reported yet
        self._gone: set[str] = set()
        self._state = ProviderState(0)
        self._explained_at = 0.0
        self._memory_mib = 0

    def on_exit(self, listener: Callable[[WorkerExit], None]) -> None:
        """Call ``listener`` from the watching thread for each worker that ended, once."""
        self._exit_listeners.append(listener)

    def on_requests_canceled(self, listener: Callable[[int, int], None]) -> None:
        """Call ``listener(asked, withdrawn)`` from the watching thread for cancels not answered at once."""
        self._cancel_listeners.append(listener)

    def on_state(self, listener: Callable[[ProviderState], None]) -> None:
        """Call ``listener`` from the watching thread when open requests or their outlook change."""
        self._state_listeners.append(listener)

    def start(self) -> None:
        """Begin to watch; the service's containers so far count as requested.  Idempotent."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="yarn-workers", daemon=True)
            self._thread.start()

    def request_workers(self, count: int) -> None:
        with self._changed:
            self._to_request += max(0, count)
            self._changed.notify()

    def cancel_requests(self, count: int) -> int | None:
        """Withdraw up to ``count`` requests that were not granted yet, the youngest first.

        Returns
        -------
        int or None
            How many, if that is known at once; else listeners are told.
        """
        with self._changed:
            unsent = min(max(0, count), self._to_request)
            self._to_request -= unsent
            if unsent >= count:
                return unsent
            self._to_cancel.append((count, unsent))
            self._changed.notify()
            return None

    def release_worker(self, worker_id: str) -> None:
        """Give a container back; unknown ones and those that ended are ignored."""
        with self._changed:
            self._to_release.append(worker_id)
            self._changed.notify()

    def close(self) -> None:
        """Watch no more.  Containers stay as they are."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    def step(self) -> float:
        """Do what was asked for and look once; returns seconds until the next look."""
        with self._changed:
            requests, self._to_request = self._to_request, 0
            cancels, self._to_cancel = self._to_cancel, []
            releases, self._to_release = self._to_release, []
        try:
            while releases:
                self._kill(releases[0], self._released)
                releases.pop(0)
            while cancels:
                asked, withdrawn = cancels[0]
                for worker_id in self._withdrawable(asked - withdrawn):
                    if self._kill(worker_id, self._withdrawn):
                        withdrawn += 1
                        # what fails next does not undo this one
                        cancels[0] = asked, withdrawn
                cancels.pop(0)
                for listener in self._cancel_listeners:
                    listener(asked, withdrawn)
            while requests:
                self._client.add_container(TASK_MANAGER_SERVICE)
                requests -= 1
            self._look()
        except Exception as error:  # whatever gRPC raises; the ApplicationMaster may be ending
            logger.warning("skein's ApplicationMaster did not do what was asked: %s", error)
            with self._changed:
                self._to_request += requests
                self._to_cancel[:0] = cancels
                self._to_release[:0] = releases
                # tried again after the pause, not at once
                self._paused = True
            return _IDLE_POLL_S
        self._tell_state()
        return _PENDING_POLL_S if self._open_since else _IDLE_POLL_S

    def _run(self) -> None:
        while True:
            pause_s = self.step()
            with self._changed:
                # after a failure everything waits, also what is asked for meanwhile
                ready = self._is_closed if self._paused else self._something_to_do
                self._paused = False
                self._changed.wait_for(ready, timeout=pause_s)
                if self._closed:
                    return

    def _is_closed(self) -> bool:
        return self._closed

    def _something_to_do(self) -> bool:
        return bool(self._closed or self._to_request or self._to_cancel or self._to_release)

    def _look(self) -> None:
        now = self._monotonic()
        found = {c.id: c for c in self._containers(_LIVE)}
        # kept until they are reported: the call that says how they ended may fail
        self._gone |= set(self._live) - set(found)
        self._live = found
        opened = {worker_id for worker_id, c in found.items() if _state_of(c) in _OPEN}
        self._open_since = {worker_id: self._open_since.get(worker_id, now) for worker_id in opened}
        if not self._gone and self._looked_back:
            return
        for container in self._containers(_ENDED):
            if container.id in self._gone or not self._looked_back:
                self._gone.discard(container.id)
                self._ended(container)
        self._looked_back = True

    def _containers(self, states: tuple[str, ...]) -> list[Any]:
        return list(self._client.get_containers(services=[TASK_MANAGER_SERVICE], states=list(states)))

    def _withdrawable(self, count: int) -> list[str]:
        """Up to ``count`` requests that are still open, the youngest first."""
        self._look()
        opened = [c for c in self._live.values() if _state_of(c) in _OPEN and c.id not in self._withdrawn]
        opened.sort(key=lambda c: -int(c.instance))
        return [str(c.id) for c in opened[:count]]

    def _kill(self, worker_id: str, why: set[str]) -> bool:
        """End a container; False when it has ended, or was to be ended for this reason before."""
        if worker_id not in self._live:
            self._look()
        if worker_id not in self._live or worker_id in why:
            return False
        try:
            self._client.kill_container(worker_id)
        except (KeyError, ValueError) as error:
            # it ended meanwhile
            logger.info("container %s could not be given back: %s", worker_id, error)
        why.add(worker_id)
        return True

    def _ended(self, container: Any) -> None:
        worker_id = str(container.id)
        self._open_since.pop(worker_id, None)
        released = worker_id in self._released
        self._released.discard(worker_id)
        if worker_id in self._withdrawn:
            # its request is gone; nobody has heard of a worker
            self._withdrawn.discard(worker_id)
            return
        ended = container_exit(_state_of(container), container.exit_message)
        where, node = container.yarn_container_id, container.yarn_node_http_address
        if ended.vague and where and self._nodes is not None:
            ended = self._nodes.exit(node, where, _LOG_NAME)
        if where and ended.diagnostics:
            ended = ContainerExit(ended.exit_status, f"container {where} on {node}: {ended.diagnostics}")
        logger.info("worker %s ended: %s", worker_id, ended.diagnostics or "completed")
        report = WorkerExit(worker_id, ended.exit_status, ended.diagnostics, released)
        for listener in self._exit_listeners:
            listener(report)

    def _tell_state(self) -> None:
        now = self._monotonic()
        ungranted = len(self._open_since)
        message = ""
        waited_s = now - min(self._open_since.values(), default=now)
        if waited_s >= _EXPLAIN_AFTER_S:
            message = self._state.message
            if ungranted != self._state.ungranted or now - self._explained_at >= _EXPLAIN_AFTER_S:
                self._explained_at = now
                message = self._explanation(ungranted, waited_s)
        running = (name for name, container in self._live.items() if _state_of(container) == "RUNNING")
        granted = tuple(sorted(name for name in running if name not in self._released))
        state = ProviderState(ungranted, message, granted)
        if state != self._state:
            self._state = state
            for listener in self._state_listeners:
                listener(state)

    def _explanation(self, count: int, waited_s: float) -> str:
        containers = "1 container" if count == 1 else f"{count} containers"
        try:
            if not self._memory_mib:
                service = self._client.get_specification().services[TASK_MANAGER_SERVICE]
                self._memory_mib = int(service.resources.memory)
            said = f"{containers} of {self._memory_mib} MiB requested {waited_s:.0f} s ago"
            if self._cluster is None:
                return said
            name = self._cluster.application(self._client.id).queue
            queue = find_queue(self._cluster.queues(), name)
            if queue is not None:
                said += f"; {outlook(queue, self._cluster.limits(), self._memory_mib)}"
            return said
        except Exception as error:  # gRPC's as well; the message is a help, no more
            if not isinstance(error, YarnflowError):
                logger.debug("cannot say why containers are not granted", exc_info=True)
            return f"{containers} requested {waited_s:.0f} s ago ({error})"


def _state_of(container: Any) -> str:
    return str(container.state)
