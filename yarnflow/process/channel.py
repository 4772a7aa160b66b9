"""The line between a supervisor and its JobManager: JSON objects, one per line, both ways.

JobManager → supervisor::

    {"op": "launch_driver", "assignment": {…}, "memory_mib": 1600}
    {"op": "kill_driver", "driver_id": "…", "grace_ms": …}
    {"op": "request_workers", "count": 2}
    {"op": "release_worker", "worker_id": "…"}

supervisor → JobManager::

    {"event": "driver_exited", "driver_id": "…", "exit_status": 1, "output_tail": "…"}
    {"event": "worker_exited", "worker_id": "…", "exit_status": -9}

Nothing here decides anything.  Flink has no counterpart: there the JobManager talks to YARN.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from yarnflow.core.ids import DriverId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import DriverExitListener

LOG: Final = logging.getLogger(__name__)

WorkerExitListener = Callable[[str, int], None]


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

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Ask for a driver.  Returns at once."""
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

    def on_exit(self, listener: DriverExitListener) -> None:
        """Register before the link is started, so that no end is missed."""
        self._listeners.append(listener)

    def exited(self, message: Mapping[str, Any]) -> None:
        """Pass an event on."""
        for listener in self._listeners:
            listener(
                DriverId(message["driver_id"]), int(message["exit_status"]), message.get("output_tail", "")
            )


class ChannelResourceProvider:
    """:class:`yarnflow.core.ports.ResourceProvider` whose workers the supervisor starts.

    Parameters
    ----------
    max_workers : int or None
        The most the supervisor will ever run; None = as many as are asked for.
    """

    def __init__(
        self, send: Callable[[Mapping[str, Any]], bool], max_workers: int | None = None
    ) -> None:
        self._send = send
        self._max_workers = max_workers
        self._listeners: list[WorkerExitListener] = []

    @property
    def max_workers(self) -> int | None:
        """The most TaskManagers there will ever be."""
        return self._max_workers

    @property
    def replaces_workers(self) -> bool:
        """The supervisor starts a dead TaskManager again by itself."""
        return True

    def request_workers(self, count: int) -> None:
        """Ask for more TaskManagers.  Returns at once."""
        self._send({"op": "request_workers", "count": count})

    def release_worker(self, worker_id: str) -> None:
        """End a TaskManager; it is not replaced.  Idempotent."""
        self._send({"op": "release_worker", "worker_id": worker_id})

    def on_worker_exit(self, listener: WorkerExitListener) -> None:
        """Register before the link is started, so that no end is missed."""
        self._listeners.append(listener)

    def exited(self, message: Mapping[str, Any]) -> None:
        """Pass an event on."""
        for listener in self._listeners:
            listener(message["worker_id"], int(message["exit_status"]))


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

    def release_worker(self, worker_id: str) -> None:
        """Not ours to end."""

    def on_worker_exit(self, listener: WorkerExitListener) -> None:
        """No worker is known, so none is ever reported."""


class SupervisorLink:
    """The JobManager's end of the channel.

    Register listeners on :attr:`driver_launcher` and :attr:`resource_provider`, then
    :meth:`start`.

    Parameters
    ----------
    connection : socket.socket
        See :meth:`from_fd`.
    on_close : callable, optional
        The supervisor is gone.  (The kernel kills this process then anyway.)
    max_workers : int, optional
        The most TaskManagers the supervisor will run.
    """

    def __init__(
        self,
        connection: socket.socket,
        on_close: Callable[[], None] | None = None,
        *,
        max_workers: int | None = None,
    ) -> None:
        self._channel = LineChannel(connection, self._on_message, on_close)
        self.driver_launcher = ChannelDriverLauncher(self._channel.send)
        self.resource_provider = ChannelResourceProvider(self._channel.send, max_workers)

    @classmethod
    def from_fd(
        cls, fd: int, on_close: Callable[[], None] | None = None, *, max_workers: int | None = None
    ) -> SupervisorLink:
        """Take over the inherited descriptor of ``--channel-fd``."""
        connection = socket.socket(fileno=fd)
        connection.set_inheritable(False)
        return cls(connection, on_close, max_workers=max_workers)

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
        else:
            LOG.error("Ignored an unknown event of the supervisor: %s", event)


# --- supervisor's side -------------------------------------------------------


class DriverOwner(Protocol):
    """Who really starts drivers; see :class:`yarnflow.process.pools.DriverPool`."""

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None: ...

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None: ...


class WorkerOwner(Protocol):
    """Who really starts TaskManagers; see :class:`yarnflow.process.pools.WorkerPool`."""

    def request_workers(self, count: int) -> None: ...

    def release_worker(self, worker_id: str) -> None: ...


class JobManagerLink:
    """The supervisor's end of the channel: performs what the JobManager asks for."""

    def __init__(
        self,
        connection: socket.socket,
        drivers: DriverOwner,
        workers: WorkerOwner,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._channel = LineChannel(connection, self._on_message, on_close)
        self._drivers = drivers
        self._workers = workers

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

    def worker_exited(self, worker_id: str, exit_status: int) -> None:
        """Report the end of a TaskManager process."""
        self._channel.send({"event": "worker_exited", "worker_id": worker_id, "exit_status": exit_status})

    def _on_message(self, message: dict[str, Any]) -> None:
        op = message.get("op")
        if op == "launch_driver":
            assignment = assignment_from_json(json.dumps(message["assignment"]))
            self._drivers.launch(assignment, int(message["memory_mib"]))
        elif op == "kill_driver":
            self._drivers.kill(DriverId(message["driver_id"]), int(message.get("grace_ms", 0)))
        elif op == "request_workers":
            self._workers.request_workers(int(message["count"]))
        elif op == "release_worker":
            self._workers.release_worker(message["worker_id"])
        else:
            LOG.error("Ignored an unknown request of the JobManager: %s", op)
