"""The channel in the JobManager: ports of :mod:`yarnflow.core` over it.

Nothing here decides anything.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from yarnflow.core.cluster_result import ProgramEnd
from yarnflow.core.ids import DriverId
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import (
    CancelListener,
    DriverExitListener,
    DriverWaitListener,
    ProviderStateListener,
    WorkerExitListener,
)
from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.process.channel.line import MessageLine
from yarnflow.process.channel.messages import (
    CancelRequests,
    DriverExited,
    DriverWaits,
    Event,
    KillDriver,
    LaunchDriver,
    ReleaseWorker,
    Request,
    RequestsCanceled,
    RequestWorkers,
    RunningDrivers,
)

#: ends of drivers that are kept while nobody listens
_UNHEARD_KEPT: Final = 100

#: says it to the supervisor; returns at once, from any thread
Ask = Callable[[Request], object]


class ChannelDriverLauncher:
    """:class:`yarnflow.core.ports.DriverLauncher` over the channel."""

    def __init__(self, line: MessageLine[Request]) -> None:
        self._ask = line.send
        self._listeners: list[DriverExitListener] = []
        self._wait_listeners: list[DriverWaitListener] = []
        #: ends that came while nobody listened: a standby has no jobs
        self._unheard: list[DriverExited] = []
        #: asked for, by this process or one before it, and not ended; replaced, never changed in place
        self._running: frozenset[DriverId] = frozenset()
        self._lock = threading.Lock()
        line.on(DriverExited, self._exited)
        line.on(DriverWaits, self._waits)
        line.on(RunningDrivers, lambda left: self._add(left.driver_ids))

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        self._add([assignment.driver_id])
        self._ask(LaunchDriver(assignment, memory_mib))

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        self._ask(KillDriver(driver_id, grace_ms))

    def runs(self, driver_id: DriverId) -> bool:
        return driver_id in self._running

    def on_exit(self, listener: DriverExitListener) -> None:
        """Call ``listener`` with each end; those that nobody has heard of come first."""
        self._listeners.append(listener)
        unheard, self._unheard = self._unheard, []
        for end in unheard:
            listener(end.driver_id, end.exit_status, end.output_tail)

    def on_wait(self, listener: DriverWaitListener) -> None:
        """Call ``listener`` when a driver begins to wait for its container, and when it has it."""
        self._wait_listeners.append(listener)

    def _waits(self, said: DriverWaits) -> None:
        for listener in self._wait_listeners:
            listener(said.driver_id, said.waits)

    def _add(self, driver_ids: Iterable[DriverId]) -> None:
        with self._lock:
            self._running |= frozenset(driver_ids)

    def _exited(self, end: DriverExited) -> None:
        with self._lock:
            self._running -= {end.driver_id}
        if not self._listeners:
            self._unheard = [*self._unheard[-_UNHEARD_KEPT:], end]
        for listener in self._listeners:
            listener(end.driver_id, end.exit_status, end.output_tail)


class ChannelResourceProvider:
    """:class:`yarnflow.core.ports.ResourceProvider` whose workers the supervisor starts.

    Listeners of ends and of canceled requests are registered before the channel is started, so that
    nothing is missed.

    Parameters
    ----------
    max_workers : int or None
        The most the supervisor will ever run; None = as many as are asked for.
    replaces_workers : bool
        Whether the supervisor starts a dead worker again by itself.
    """

    def __init__(self, line: MessageLine[Request], max_workers: int | None, replaces_workers: bool) -> None:
        self._line = line
        self._max_workers = max_workers
        self._replaces_workers = replaces_workers
        #: the last one, for those that listen only once they lead
        self._state: ProviderState | None = None
        line.on(ProviderState, self._keep)

    @property
    def max_workers(self) -> int | None:
        return self._max_workers

    @property
    def replaces_workers(self) -> bool:
        return self._replaces_workers

    def request_workers(self, count: int) -> None:
        self._line.send(RequestWorkers(count))

    def cancel_requests(self, count: int) -> None:
        """Withdraw requests that were not granted yet; the answer is an event."""
        self._line.send(CancelRequests(count))

    def release_worker(self, worker_id: str) -> None:
        self._line.send(ReleaseWorker(worker_id))

    def on_worker_exit(self, listener: WorkerExitListener) -> None:
        self._line.on(WorkerExit, listener)

    def on_requests_canceled(self, listener: CancelListener) -> None:
        self._line.on(RequestsCanceled, lambda answer: listener(answer.asked, answer.withdrawn))

    def on_state(self, listener: ProviderStateListener) -> None:
        """Call ``listener`` with each state, the present one first."""
        self._line.on(ProviderState, listener)
        if self._state is not None:
            listener(self._state)

    def _keep(self, state: ProviderState) -> None:
        self._state = state


class JobManagerEnd:
    """The JobManager's end of the channel.

    Register listeners on it, on :attr:`driver_launcher` and :attr:`resource_provider`, then start
    it.  What has no port is asked for with ``ask``.

    Parameters
    ----------
    fd : int
        The inherited descriptor of ``--channel-fd``, owned by this object from now on.
    on_close : callable, optional
        The supervisor is gone.  (The kernel kills this process then anyway.)
    max_workers : int, optional
        The most TaskManagers the supervisor will run.
    replaces_workers : bool
        Whether the supervisor starts a dead TaskManager again by itself (not on YARN).
    """

    def __init__(
        self,
        fd: int,
        on_close: Callable[[], None] | None = None,
        *,
        max_workers: int | None = None,
        replaces_workers: bool = True,
    ) -> None:
        connection = socket.socket(fileno=fd)
        connection.set_inheritable(False)
        line = MessageLine[Request](connection, Event, on_close)
        self.start, self.ask, self.close = line.start, line.send, line.close
        self._line = line
        self.driver_launcher = ChannelDriverLauncher(line)
        self.resource_provider = ChannelResourceProvider(line, max_workers, replaces_workers)

    def on_program_ended(self, listener: Callable[[int, str], None]) -> None:
        """Call ``listener`` with status and last output of the user's program once it has ended."""
        self._line.on(ProgramEnd, lambda end: listener(end.exit_status, end.output_tail))

    def on_running_drivers(self, listener: Callable[[Sequence[DriverId]], None]) -> None:
        """Call ``listener`` with the drivers an earlier JobManager process of the supervisor left."""
        self._line.on(RunningDrivers, lambda left: listener(left.driver_ids))
