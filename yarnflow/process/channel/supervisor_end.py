"""The channel in the supervisor: performs what the JobManager asks for, tells it what happens.

Nothing here decides anything.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Final, Protocol

from yarnflow.core.ports import DriverOwner, WorkerOwner
from yarnflow.core.resources.provider import WorkerExit
from yarnflow.errors import YarnflowError
from yarnflow.process.channel.line import MessageLine
from yarnflow.process.channel.messages import (
    CancelRequests,
    Event,
    JobStatusReport,
    KillDriver,
    LaunchDriver,
    MasterRole,
    ReleaseWorker,
    Request,
    RequestsCanceled,
    RequestWorkers,
    StartMaster,
)

logger: Final = logging.getLogger(__name__)


class MasterOwner(Protocol):
    """Who can start a further master of the cluster."""

    def start_master(self) -> None:
        """Have one more master started; returns soon.

        Raises
        ------
        YarnflowError
            It could not be asked for.
        """


class SupervisorEnd:
    """The supervisor's end of the channel.

    Parameters
    ----------
    connection : socket.socket
        Its end of the socket pair.
    drivers, workers
        Who does what is asked for.
    on_job_status : callable, optional
        Told of every change of a job's status, from the thread of the line.
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
        *,
        on_job_status: Callable[[JobStatusReport], None] | None = None,
        on_role: Callable[[MasterRole], None] | None = None,
        masters: MasterOwner | None = None,
    ) -> None:
        line = MessageLine[Event](connection, Request)
        self.start, self.tell, self.close = line.start, line.send, line.close
        self._masters = masters
        self._workers = workers
        line.on(LaunchDriver, lambda asked: drivers.launch(asked.assignment, asked.memory_mib))
        line.on(KillDriver, lambda asked: drivers.kill(asked.driver_id, asked.grace_ms))
        line.on(RequestWorkers, self._request_workers)
        line.on(CancelRequests, self._cancel_requests)
        line.on(ReleaseWorker, lambda asked: workers.release_worker(asked.worker_id))
        line.on(StartMaster, self._start_master)
        if on_job_status is not None:
            line.on(JobStatusReport, on_job_status)
        if on_role is not None:
            line.on(MasterRole, on_role)

    def _request_workers(self, asked: RequestWorkers) -> None:
        try:
            self._workers.request_workers(asked.count)
        except YarnflowError as error:
            # a request nobody took would be waited for without end
            for _ in range(asked.count):
                self.tell(WorkerExit("", None, str(error)))

    def _cancel_requests(self, asked: CancelRequests) -> None:
        withdrawn = self._workers.cancel_requests(asked.count)
        if withdrawn is not None:
            self.tell(RequestsCanceled(asked.count, withdrawn))

    def _start_master(self, _asked: StartMaster) -> None:
        if self._masters is None:
            return
        try:
            self._masters.start_master()
        except YarnflowError as error:
            logger.warning("No further master could be started: %s", error)
