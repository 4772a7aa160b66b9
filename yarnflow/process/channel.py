"""The line between a supervisor and its JobManager: JSON objects, one per line, both ways.

JobManager → supervisor::

    {"op": "launch_driver", "assignment": {…}, "memory_mib": 1600}
    {"op": "kill_driver", "driver_id": "…", "grace_ms": …}
    {"op": "request_workers", "count": 2}
    {"op": "cancel_requests", "count": 1}
    {"op": "release_worker", "worker_id": "…"}
    {"op": "job_status", "job_id": "…", "status": "RUNNING", "diagnostics": "", "job_name": "…"}
    {"op": "role", "leads": true, "address": "…", "web_address": "…", "leader_id": "…", "epoch": 3}
    {"op": "start_master"}

supervisor → JobManager::

    {"event": "driver_exited", "driver_id": "…", "exit_status": 1, "output_tail": "…"}
    {"event": "worker_exited", "worker_id": "…", "exit_status": -9, "diagnostics": "", "released": false}
    {"event": "requests_canceled", "asked": 1, "withdrawn": 1}
    {"event": "provider_state", "ungranted": 2, "message": "…", "granted": ["…"]}
    {"event": "program_ended", "exit_status": 0, "output_tail": "…"}
    {"event": "running_drivers", "driver_ids": ["…"]}

Nothing here decides anything.  Flink has no counterpart: there the JobManager talks to YARN.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import DriverExitListener
from yarnflow.core.provider import ProviderState, WorkerExit
from yarnflow.core.states import JobStatus
from yarnflow.errors import YarnflowError

LOG: Final = logging.getLogger(__name__)

#: ends of drivers that are kept while nobody listens
_UNHEARD_KEPT: Final = 100

WorkerExitListener = Callable[[WorkerExit], None]
ProviderStateListener = Callable[[ProviderState], None]
#: (requests asked to be withdrawn, requests withdrawn)
CancelListener = Callable[[int, int], None]
#: (exit status, last lines of output)
ProgramEndListener = Callable[[int, str], None]
DriversListener = Callable[[Sequence[DriverId]], None]


@dataclass(frozen=True, slots=True)
class JobStatusReport:
    """What the JobManager tells its supervisor at each change of a job's status."""

    job_id: JobId
    status: JobStatus
    #: why it failed, one line; empty otherwise
    diagnostics: str = ""
    job_name: str = ""


@dataclass(frozen=True, slots=True)
class MasterRole:
    """What the JobManager tells its supervisor when it begins to lead, or to stand by."""

    leads: bool
    #: Thrift, of this master
    address: str
    web_address: str = ""
    #: empty and 0 for a standby
    leader_id: str = ""
    epoch: int = 0


def assignment_to_json(assignment: DriverAssignment) -> str:
    """One line of JSON, as a driver reads it from its standard input."""
    return to_json(assignment)


def assignment_from_json(text: str) -> DriverAssignment:
    """Inverse of :func:`assignment_to_json`.

    Raises
    ------
    RpcProtocolError
        Not an assignment.
    """
    return from_json(DriverAssignment, text)


class LineChannel:
    """One end of a stream socket that carries JSON objects.

    Parameters
    ----------
    connection : socket.socket
        Owned by the channel from now on.
    on_message : callable
        Told of each object, from the reader thread.
    on_close : callable, optional
        Told once when the peer is gone.
    """

    def __init__(
        self,
        connection: socket.socket,
        on_message: Callable[[dict[str, Any]], None],
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._on_message = on_message
        self._on_close = on_close
        self._write_lock = threading.Lock()

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="channel", daemon=True).start()

    def send(self, message: Mapping[str, Any]) -> bool:
        """Send one object; False when the peer is gone."""
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            with self._write_lock:
                self._connection.sendall(data)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close this end; the peer sees it."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._connection.close()

    def _read(self) -> None:
        try:
            with self._connection.makefile("rb") as lines:
                for line in lines:
                    self._handle(line)
        except (OSError, ValueError):
            pass  # closed by either side
        self._connection.close()
        if self._on_close is not None:
            self._on_close()

    def _handle(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise ValueError("not an object")
        except ValueError as error:
            LOG.error("Ignored a line on the supervisor channel that is not a message: %s", error)
            return
        try:
            self._on_message(message)
        except Exception:  # one bad message must not end the channel, which would end the cluster
            LOG.exception("A message on the supervisor channel failed: %s", sorted(message))


# --- JobManager's side -------------------------------------------------------


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
            LOG.error("Ignored an unknown event of the supervisor: %s", event)


# --- supervisor's side -------------------------------------------------------


class DriverOwner(Protocol):
    """Who really starts drivers; see :class:`yarnflow.process.pools.DriverPool`."""

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None: ...

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None: ...


class WorkerOwner(Protocol):
    """Who really starts TaskManagers; see :class:`yarnflow.process.pools.WorkerPool`."""

    def request_workers(self, count: int) -> None:
        """Ask for workers; each ends in a grant, an exit, or is withdrawn.

        Raises
        ------
        YarnflowError
            Not one of them was asked for.
        """

    def cancel_requests(self, count: int) -> int | None:
        """Withdraw up to ``count`` requests that were not granted yet.

        Returns
        -------
        int or None
            How many will certainly never come; they are not reported as exits that nobody asked
            for.  None = :meth:`JobManagerLink.requests_canceled` is called with the answer.
        """

    def release_worker(self, worker_id: str) -> None:
        """End a worker; its end is reported as released.  Unknown ids are ignored."""


class MasterOwner(Protocol):
    """Who can start a further master of the cluster."""

    def start_master(self) -> None:
        """Have one more master started; returns soon.

        Raises
        ------
        YarnflowError
            It could not be asked for.
        """


class JobManagerLink:
    """The supervisor's end of the channel: performs what the JobManager asks for.

    Parameters
    ----------
    connection : socket.socket
        Its end of the socket pair.
    drivers, workers
        Who does what is asked for.
    on_close : callable, optional
        The JobManager is gone.
    on_job_status : callable, optional
        Told of every change of a job's status, from the thread of the link.
    on_role : callable, optional
        Told when the JobManager begins to lead or to stand by.
    masters : MasterOwner, optional
        Who starts further masters.
    """

    def __init__(
        self,
        connection: socket.socket,
        drivers: DriverOwner,
        workers: WorkerOwner,
        on_close: Callable[[], None] | None = None,
        *,
        on_job_status: Callable[[JobStatusReport], None] | None = None,
        on_role: Callable[[MasterRole], None] | None = None,
        masters: MasterOwner | None = None,
    ) -> None:
        self._channel = LineChannel(connection, self._on_message, on_close)
        self._on_role = on_role
        self._masters = masters
        self._drivers = drivers
        self._workers = workers
        self._on_job_status = on_job_status

    def start(self) -> None:
        """Begin to serve, in a thread of the link."""
        self._channel.start()

    def close(self) -> None:
        """Close this end."""
        self._channel.close()

    def driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        """Report the end of a driver process."""
        self._channel.send(
            {
                "event": "driver_exited",
                "driver_id": driver_id,
                "exit_status": exit_status,
                "output_tail": output_tail,
            }
        )

    def worker_exited(
        self, worker_id: str, exit_status: int | None, diagnostics: str = "", released: bool = False
    ) -> None:
        """Report the end of a worker; the parameters are those of ``WorkerExit``."""
        self._channel.send(
            {
                "event": "worker_exited",
                "worker_id": worker_id,
                "exit_status": exit_status,
                "diagnostics": diagnostics,
                "released": released,
            }
        )

    def requests_canceled(self, asked: int, withdrawn: int) -> None:
        """Answer one ``cancel_requests``: how many of the requests were withdrawn."""
        self._channel.send({"event": "requests_canceled", "asked": asked, "withdrawn": withdrawn})

    def provider_state(self, state: ProviderState) -> None:
        """Report open requests and granted workers, whenever they change."""
        self._channel.send(
            {
                "event": "provider_state",
                "ungranted": state.ungranted,
                "message": state.message,
                "granted": list(state.granted),
            }
        )

    def program_ended(self, exit_status: int, output_tail: str) -> None:
        """Report the end of the user's program that ran beside the JobManager."""
        self._channel.send(
            {"event": "program_ended", "exit_status": exit_status, "output_tail": output_tail}
        )

    def running_drivers(self, driver_ids: Sequence[DriverId]) -> None:
        """Tell a new JobManager which drivers an earlier one has left."""
        self._channel.send({"event": "running_drivers", "driver_ids": list(driver_ids)})

    def _on_message(self, message: dict[str, Any]) -> None:
        op = message.get("op")
        if op == "launch_driver":
            assignment = assignment_from_json(json.dumps(message["assignment"]))
            self._drivers.launch(assignment, int(message["memory_mib"]))
        elif op == "kill_driver":
            self._drivers.kill(DriverId(message["driver_id"]), int(message.get("grace_ms", 0)))
        elif op == "request_workers":
            self._request_workers(int(message["count"]))
        elif op == "cancel_requests":
            asked = int(message["count"])
            withdrawn = self._workers.cancel_requests(asked)
            if withdrawn is not None:
                self.requests_canceled(asked, withdrawn)
        elif op == "release_worker":
            self._workers.release_worker(message["worker_id"])
        elif op == "job_status":
            self._job_status(message)
        elif op == "role":
            if self._on_role is not None:
                role = {key: value for key, value in message.items() if key != "op"}
                self._on_role(from_json(MasterRole, json.dumps(role)))
        elif op == "start_master":
            self._start_master()
        else:
            LOG.error("Ignored an unknown request of the JobManager: %s", op)

    def _request_workers(self, count: int) -> None:
        try:
            self._workers.request_workers(count)
        except YarnflowError as error:
            # a request nobody took would be waited for without end
            for _ in range(count):
                self.worker_exited("", None, str(error))

    def _start_master(self) -> None:
        if self._masters is None:
            return
        try:
            self._masters.start_master()
        except YarnflowError as error:
            LOG.warning("No further master could be started: %s", error)

    def _job_status(self, message: Mapping[str, Any]) -> None:
        report = JobStatusReport(
            job_id=JobId(message["job_id"]),
            job_name=message.get("job_name", ""),
            status=JobStatus(message["status"]),
            diagnostics=message.get("diagnostics", ""),
        )
        if self._on_job_status is not None:
            self._on_job_status(report)
