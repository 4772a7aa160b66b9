"""The supervisor's end of the channel to its JobManager: performs what is asked for, reports what happens.

Nothing here decides anything.  What is said stands in :mod:`yarnflow.process.channel`.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.resources.provider import ProviderState
from yarnflow.core.states import JobStatus
from yarnflow.errors import YarnflowError
from yarnflow.process.channel import (
    JobStatusReport,
    LineChannel,
    MasterRole,
    assignment_from_json,
)

logger: Final = logging.getLogger(__name__)


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
            logger.error("Ignored an unknown request of the JobManager: %s", op)

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
            logger.warning("No further master could be started: %s", error)

    def _job_status(self, message: Mapping[str, Any]) -> None:
        report = JobStatusReport(
            job_id=JobId(message["job_id"]),
            job_name=message.get("job_name", ""),
            status=JobStatus(message["status"]),
            diagnostics=message.get("diagnostics", ""),
        )
        if self._on_job_status is not None:
            self._on_job_status(report)
