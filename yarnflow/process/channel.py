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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.states import JobStatus

logger: Final = logging.getLogger(__name__)


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
            logger.error("Ignored a line on the supervisor channel that is not a message: %s", error)
            return
        try:
            self._on_message(message)
        except Exception:  # one bad message must not end the channel, which would end the cluster
            logger.exception("A message on the supervisor channel failed: %s", sorted(message))
