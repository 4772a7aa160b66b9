"""The JobManager's end of the channel to its supervisor: ports of :mod:`yarnflow.core` over it.

Nothing here decides anything.  What is said stands in :mod:`yarnflow.process.channel`.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import DriverExitListener
from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.core.states import JobStatus
from yarnflow.process.channel import (
    LineChannel,
    MasterRole,
    assignment_to_json,
)

logger: Final = logging.getLogger(__name__)

#: ends of drivers that are kept while nobody listens
_UNHEARD_KEPT: Final = 100

WorkerExitListener = Callable[[WorkerExit], None]
ProviderStateListener = Callable[[ProviderState], None]
#: (requests asked to be withdrawn, requests withdrawn)
CancelListener = Callable[[int, int], None]
#: (exit status, last lines of output)
ProgramEndListener = Callable[[int, str], None]
DriversListener = Callable[[Sequence[DriverId]], None]


class ChannelDriverLauncher:
    """:class:`yarnflow.core.ports.DriverLauncher` over the channel."""

    def __init__(self, send: Callable[[Mapping[str, Any]], bool]) -> None:
        self._send = send
        self._listeners: list[DriverExitListener] = []
        #: ends that came while nobody listened: a standby has no jobs
        self._unheard: list[tuple[DriverId, int, str]] = []
        #: asked for, by this process or one before it, and not ended; replaced, never changed in place
        self._running: frozenset[DriverId] = frozenset()
        self._lock = threading.Lock()

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Ask for a driver.  Returns at once."""
        self.left([assignment.driver_id])
        self._send(
            {
                "op": "launch_driver",
                "assignment": json.loads(assignment_to_json(assignment)),
                "memory_mib": memory_mib,
            }
        )

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """End a driver by force if it is still there after ``grace_ms``.  Unknown ids are ignored."""
        self._send({"op": "kill_driver", "driver_id": driver_id, "grace_ms": grace_ms})

    def runs(self, driver_id: DriverId) -> bool:
        """Whether the driver belongs to this supervisor and has not ended."""
        return driver_id in self._running

    def left(self, driver_ids: Iterable[DriverId]) -> None:
        """The supervisor has these."""
        with self._lock:
            self._running |= frozenset(driver_ids)

    def on_exit(self, listener: DriverExitListener) -> None:
        """Call ``listener`` with each end; those that nobody has heard of come first."""
        self._listeners.append(listener)
        unheard, self._unheard = self._unheard, []
        for end in unheard:
            listener(*end)

    def exited(self, message: Mapping[str, Any]) -> None:
        """Pass an event on."""
        end = DriverId(message["driver_id"]), int(message["exit_status"]), message.get("output_tail", "")
        with self._lock:
            self._running -= {end[0]}
        if not self._listeners:
            self._unheard = [*self._unheard[-_UNHEARD_KEPT:], end]
        for listener in self._listeners:
            listener(*end)


class ChannelResourceProvider:
    """:class:`yarnflow.core.ports.ResourceProvider` whose workers the supervisor starts.

    Parameters
    ----------
    max_workers : int or None
        The most the supervisor will ever run; None = as many as are asked for.
    replaces_workers : bool
        Whether the supervisor starts a dead worker again by itself.
    """

    def __init__(
        self,
        send: Callable[[Mapping[str, Any]], bool],
        max_workers: int | None = None,
        *,
        replaces_workers: bool = True,
    ) -> None:
        self._send = send
        self._max_workers = max_workers
        self._replaces_workers = replaces_workers
        self._exit_listeners: list[WorkerExitListener] = []
        self._cancel_listeners: list[CancelListener] = []
        self._state_listeners: list[ProviderStateListener] = []
        #: the last one, for those that listen only once they lead
        self._state: ProviderState | None = None

    @property
    def max_workers(self) -> int | None:
        """The most TaskManagers there will ever be."""
        return self._max_workers

    @property
    def replaces_workers(self) -> bool:
        """Whether the supervisor starts a dead TaskManager again by itself."""
        return self._replaces_workers

    def request_workers(self, count: int) -> None:
        """Ask for more TaskManagers.  Returns at once."""
        self._send({"op": "request_workers", "count": count})

    def cancel_requests(self, count: int) -> None:
        """Withdraw requests that were not granted yet.  Returns at once; the answer is an event."""
        self._send({"op": "cancel_requests", "count": count})

    def release_worker(self, worker_id: str) -> None:
        """End a TaskManager; it is not replaced.  Idempotent."""
        self._send({"op": "release_worker", "worker_id": worker_id})

    def on_worker_exit(self, listener: WorkerExitListener) -> None:
        """Register before the link is started, so that no end is missed."""
        self._exit_listeners.append(listener)

    def on_requests_canceled(self, listener: CancelListener) -> None:
        """Register before the link is started, so that no answer is missed."""
        self._cancel_listeners.append(listener)

    def on_state(self, listener: ProviderStateListener) -> None:
        """Call ``listener`` with each state, the present one first."""
        self._state_listeners.append(listener)
        if self._state is not None:
            listener(self._state)

    def exited(self, message: Mapping[str, Any]) -> None:
        """Pass an event on."""
        status = message["exit_status"]
        ended = WorkerExit(
            worker_id=message["worker_id"],
            exit_status=None if status is None else int(status),
            diagnostics=message.get("diagnostics", ""),
            released=bool(message.get("released", False)),
        )
        for listener in self._exit_listeners:
            listener(ended)

    def requests_canceled(self, message: Mapping[str, Any]) -> None:
        """Pass an event on."""
        for listener in self._cancel_listeners:
            listener(int(message["asked"]), int(message["withdrawn"]))

    def state_changed(self, message: Mapping[str, Any]) -> None:
        """Pass an event on."""
        state = ProviderState(
            ungranted=int(message["ungranted"]),
            message=message.get("message", ""),
            granted=tuple(message.get("granted", ())),
        )
        self._state = state
        for listener in self._state_listeners:
            listener(state)


class NoResourceProvider:
    """Standalone: TaskManagers come when somebody starts them."""

    @property
    def max_workers(self) -> int | None:
        """Whoever starts them may start any number."""
        return None

    @property
    def replaces_workers(self) -> bool:
        """Nobody does, as far as the JobManager knows."""
        return False

    def request_workers(self, count: int) -> None:
        """Nobody to ask."""

    def cancel_requests(self, count: int) -> int:
        """Nobody was asked, so nobody will come."""
        return count

    def release_worker(self, worker_id: str) -> None:
        """Not ours to end."""

    def on_worker_exit(self, listener: WorkerExitListener) -> None:
        """No worker is known, so none is ever reported."""

    def on_requests_canceled(self, listener: CancelListener) -> None:
        """The answer is known at once."""

    def on_state(self, listener: ProviderStateListener) -> None:
        """Nothing is ever granted."""


class JobStatusReporter:
    """Tells the supervisor how jobs are doing, so that whoever watches it (YARN) knows."""

    def __init__(self, send: Callable[[Mapping[str, Any]], bool]) -> None:
        self._send = send

    def send(self, job_id: JobId, status: JobStatus, diagnostics: str = "", job_name: str = "") -> None:
        """Report a change of a job's status.  Returns at once; from any thread."""
        self._send(
            {
                "op": "job_status",
                "job_id": job_id,
                "status": status.value,
                "diagnostics": diagnostics,
                "job_name": job_name,
            }
        )


class MasterReporter:
    """Tells the supervisor what this master is, and that the cluster lacks one."""

    def __init__(self, send: Callable[[Mapping[str, Any]], bool]) -> None:
        self._send = send

    def role(self, role: MasterRole) -> None:
        """Say that this master leads now, or stands by.  Returns at once."""
        self._send({"op": "role", **json.loads(to_json(role))})

    def start_master(self) -> None:
        """Ask for one more master beside this one.  Returns at once."""
        self._send({"op": "start_master"})


class SupervisorLink:
    """The JobManager's end of the channel.

    Register listeners on :attr:`driver_launcher` and :attr:`resource_provider`, then
    :meth:`start`.  :attr:`job_status` reports to the supervisor.

    Parameters
    ----------
    connection : socket.socket
        See :meth:`from_fd`.
    on_close : callable, optional
        The supervisor is gone.  (The kernel kills this process then anyway.)
    max_workers : int, optional
        The most TaskManagers the supervisor will run.
    replaces_workers : bool
        Whether the supervisor starts a dead TaskManager again by itself (not on YARN).
    """

    def __init__(
        self,
        connection: socket.socket,
        on_close: Callable[[], None] | None = None,
        *,
        max_workers: int | None = None,
        replaces_workers: bool = True,
    ) -> None:
        self._channel = LineChannel(connection, self._on_message, on_close)
        self.driver_launcher = ChannelDriverLauncher(self._channel.send)
        self.resource_provider = ChannelResourceProvider(
            self._channel.send, max_workers, replaces_workers=replaces_workers
        )
        self.job_status = JobStatusReporter(self._channel.send)
        self.masters = MasterReporter(self._channel.send)
        self._program_listeners: list[ProgramEndListener] = []
        self._drivers_listeners: list[DriversListener] = []

    @classmethod
    def from_fd(
        cls,
        fd: int,
        on_close: Callable[[], None] | None = None,
        *,
        max_workers: int | None = None,
        replaces_workers: bool = True,
    ) -> SupervisorLink:
        """Take over the inherited descriptor of ``--channel-fd``."""
        connection = socket.socket(fileno=fd)
        connection.set_inheritable(False)
        return cls(connection, on_close, max_workers=max_workers, replaces_workers=replaces_workers)

    def on_program_ended(self, listener: ProgramEndListener) -> None:
        """Call ``listener`` when the user's program beside the JobManager has ended."""
        self._program_listeners.append(listener)

    def on_running_drivers(self, listener: DriversListener) -> None:
        """Call ``listener`` with the drivers an earlier JobManager process of the supervisor left."""
        self._drivers_listeners.append(listener)

    def start(self) -> None:
        """Begin to deliver events, from a thread of the link."""
        self._channel.start()

    def close(self) -> None:
        """Close this end."""
        self._channel.close()

    def _on_message(self, message: dict[str, Any]) -> None:
        event = message.get("event")
        if event == "driver_exited":
            self.driver_launcher.exited(message)
        elif event == "worker_exited":
            self.resource_provider.exited(message)
        elif event == "requests_canceled":
            self.resource_provider.requests_canceled(message)
        elif event == "provider_state":
            self.resource_provider.state_changed(message)
        elif event == "program_ended":
            for listener in self._program_listeners:
                listener(int(message["exit_status"]), message.get("output_tail", ""))
        elif event == "running_drivers":
            driver_ids = [DriverId(driver_id) for driver_id in message["driver_ids"]]
            self.driver_launcher.left(driver_ids)
            for drivers_listener in self._drivers_listeners:
                drivers_listener(driver_ids)
        else:
            logger.error("Ignored an unknown event of the supervisor: %s", event)
