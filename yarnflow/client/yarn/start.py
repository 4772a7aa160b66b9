"""Waiting for an application that was submitted: what the user is told, and when to give up.

The address is looked for many times a second, YARN is asked less often.  While YARN has no
room the wait has no end, because a full queue empties sometime; what the queue says is shown.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from yarnflow.client.yarn.aggregated_logs import CollectedLine
from yarnflow.client.yarn.applications import ApplicationCluster, ended_error
from yarnflow.client.yarn.services import YarnServices
from yarnflow.config.options import client
from yarnflow.core.ids import JobId
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import Application, ApplicationState
from yarnflow.errors import (
    ApplicationFailed,
    HaError,
    JobNotFound,
    RpcTimeout,
    RpcUnavailable,
    StorageError,
    YarnError,
    YarnflowError,
)

Note = Callable[[str], None]

POLL_S: Final = 0.1
#: between two questions to YARN
STATE_S: Final = 0.5
#: a wait in the queue is normal for this long
QUEUE_PATIENCE_S: Final = 3.0
#: between two reports about the queue
QUEUE_REPORT_S: Final = 30.0
#: how many last lines of a log are shown
TAIL_LINES: Final = 20
_DIAGNOSTICS_LENGTH: Final = 200
#: where skein sends the output of the master's script
MASTER_LOG: Final = "application.driver.log"


@dataclass(slots=True)
class StartWatch:
    """Waits for one application.

    Parameters
    ----------
    services : YarnServices
    cluster : ApplicationCluster
    note : callable
        Told of what the user may want to know.
    master_mib : int
        Size of the container that is waited for.
    sleep, now : callable
        Of this machine; replaced in tests.  Seconds.
    """

    services: YarnServices
    cluster: ApplicationCluster
    note: Note
    master_mib: int = 0
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    _state: ApplicationState | None = None
    _state_since_s: float = 0.0
    _asked_s: float = field(default=float("-inf"))
    #: who does not answer → since when
    _silent_since_s: dict[str, float] = field(default_factory=dict)
    _queue_told_s: float = field(default=float("-inf"))
    _queue_text: str = ""

    def await_ready(self) -> None:
        """Wait until the JobManager serves, or has ended already with a result.

        Raises
        ------
        ApplicationFailed
            YARN ended the application, or its JobManager does not come up within ``client.timeout``
            of the application's start.
        YarnUnavailable, StorageError
            YARN or HDFS has not answered for ``client.timeout``.
        """
        while not self._is_ready():
            if self.now() - self._asked_s >= STATE_S:
                self._asked_s = self.now()
                try:
                    self._ask()
                except ApplicationFailed:
                    # it may have served and ended between two looks
                    if self.cluster.end_is_known():
                        return
                    raise
            self.sleep(POLL_S)

    def await_job(self, job_id: JobId) -> JobStatus:
        """Wait until the JobManager knows the job it was started with, or its end is known.

        Returns
        -------
        JobStatus
            The job's status.

        Raises
        ------
        ApplicationFailed
            It is gone and left no result.
        """
        while True:
            try:
                return self.cluster.gateway().job_details(job_id).overview.status
            except JobNotFound as error:
                self._unanswered("the JobManager", error)
            except (RpcUnavailable, RpcTimeout, HaError) as error:
                final = self.cluster.final_details(job_id)
                if final is not None:
                    return final.overview.status
                failure = self.cluster.failure()
                if failure is not None:
                    raise failure from error
                self._unanswered("the JobManager", error)
            self.sleep(POLL_S)

    def _is_ready(self) -> bool:
        try:
            ready = self.cluster.ready
        except StorageError as error:
            self._unanswered("HDFS", error)
            return False
        self._silent_since_s.pop("HDFS", None)
        return ready

    def _ask(self) -> None:
        try:
            application = self.cluster.application()
        except YarnError as error:
            self._unanswered("YARN", error)
            return
        self._silent_since_s.pop("YARN", None)
        self._look(application)

    def _look(self, application: Application) -> None:
        now = self.now()
        state = application.state
        if state.ended:
            raise ended_error(application)
        if state is not self._state:
            self._state, self._state_since_s = state, now
        waited_s = now - self._state_since_s
        timeout_ms = self.services.configuration.get(client.CLIENT_TIMEOUT_MS)
        if state is ApplicationState.RUNNING and waited_s * 1000 >= timeout_ms:
            raise ApplicationFailed(
                f"application {application.application_id} runs, but its JobManager has not come up within "
                f"{timeout_ms / 1000:g} s ({client.CLIENT_TIMEOUT_MS.key}); see its log: "
                f"yarnflow logs {application.application_id}"
            )
        started = application.running_containers > 0
        if state is not ApplicationState.RUNNING and not started and waited_s >= QUEUE_PATIENCE_S:
            self._tell_queue(application, now)

    def _tell_queue(self, application: Application, now: float) -> None:
        if now - self._queue_told_s < QUEUE_REPORT_S:
            return
        self._queue_told_s = now
        text = self._queue_state(application)
        if text != self._queue_text:
            state = application.state.value
            self.note(f"Application {application.application_id} is {state} and waits: {text}")
        self._queue_text = text

    def _queue_state(self, application: Application) -> str:
        from yarnflow.yarn.web.admission import outlook

        parts = []
        try:
            for queue in self.services.cluster.queues():
                if application.queue in (queue.name, queue.path):
                    parts.append(outlook(queue, self.services.cluster.limits(), self.master_mib))
                    break
        except YarnError:
            pass  # it only explains
        # what follows are YARN's own figures for the same, which change all the time
        said = " ".join(application.diagnostics.split()).partition(" Details")[0]
        if said:
            parts.append(f"YARN says: {said[:_DIAGNOSTICS_LENGTH]}")
        return "; ".join(parts) or f"queue {application.queue}"

    def _unanswered(self, whom: str, error: YarnflowError) -> None:
        """Raise the error when this has lasted for too long."""
        since_s = self._silent_since_s.setdefault(whom, self.now())
        timeout_ms = self.services.configuration.get(client.CLIENT_TIMEOUT_MS)
        if (self.now() - since_s) * 1000 >= timeout_ms:
            raise error


def log_tail(collected: Iterable[CollectedLine]) -> str:
    """Last lines the master of an ended application wrote; empty when there are none."""
    last: dict[str, deque[str]] = {}
    for line in collected:
        if line.file == MASTER_LOG and line.line.strip():
            last.setdefault(line.container_id, deque(maxlen=TAIL_LINES)).append(line.line.rstrip("\n"))
    if not last:
        return ""
    container_id = min(last)
    text = "\n".join(f"  {line}" for line in last[container_id])
    return f"Last lines of {MASTER_LOG} of {container_id}:\n{text}"
