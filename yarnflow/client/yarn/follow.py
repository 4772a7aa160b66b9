"""Following all jobs of an application from the first one until it ends, and leaving it before.

For programs that run beside the JobManager and for sessions: which jobs there will be is not
known here.  Each job is watched in a thread of its own; an interrupt ends the watching only.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from yarnflow.client.cluster import JobListener, page_of
from yarnflow.client.job_client import ClusterJobClient, job_error
from yarnflow.client.yarn.applications import ApplicationCluster, ended_error
from yarnflow.client.yarn.start import Note
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobOverview
from yarnflow.core.yarn import Application, DeploymentMode, FinalStatus
from yarnflow.errors import (
    HaError,
    RpcError,
    RpcTimeout,
    RpcUnavailable,
    StorageError,
    YarnError,
    YarnflowError,
)
from yarnflow.staging.deployment import ApplicationResult

logger: Final = logging.getLogger(__name__)

POLL_S: Final = 0.3
_FIRST_JOB_POLL_S: Final = 0.1
#: watchers see their jobs' ends a moment after the application's
_WATCHERS_S: Final = 10.0


def await_first_job(cluster: ApplicationCluster) -> JobId:
    """Wait for the first job of an application's program.

    Raises
    ------
    YarnflowError
        The application ended without one.
    """
    while True:
        try:
            jobs = cluster.gateway().list_jobs()
        except (RpcUnavailable, RpcTimeout, HaError):
            cluster.forget_address()
            result = _left_result(cluster)
            if result is not None and result.details is not None:
                return result.details.overview.job_id
            failure = cluster.failure()
            if failure is not None:
                raise failure from None
            jobs = ()
        if jobs:
            return min(jobs, key=lambda job: job.start_time_ms).job_id
        time.sleep(_FIRST_JOB_POLL_S)


def leave(cluster: ApplicationCluster, ends: bool, note: Note) -> None:
    """The user waits no longer for an application: it goes on, or ends if that is what he wants.

    Parameters
    ----------
    cluster : ApplicationCluster
    ends : bool
        ``execution.shutdown-on-attached-exit``.
    note : callable
        Told what becomes of it.
    """
    kill = f"yarn application -kill {cluster.application_id}"
    if not ends:
        note(f"The application goes on; end it with: {kill}")
        return
    note(f"Ending application {cluster.application_id}.")
    try:
        cluster.gateway().shut_down_cluster()
    except YarnflowError as error:
        note(f"It does not answer ({error}); end it with: {kill}")


def _left_result(cluster: ApplicationCluster) -> ApplicationResult | None:
    try:
        return cluster.directory.read_result()
    except StorageError as error:
        logger.info("What application %s left: %s", cluster.application_id, error)
        return None


class Follower:
    """Follows one application.

    Parameters
    ----------
    cluster : ApplicationCluster
    listener : JobListener
        Told of each job and its changes, from several threads.
    timeout_ms : int
        How long an application that does not answer is tried again (``client.timeout``).
    """

    def __init__(
        self,
        cluster: ApplicationCluster,
        listener: JobListener,
        timeout_ms: int,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._listener = listener
        self._timeout_ms = timeout_ms
        self._sleep = sleep
        self._now = now
        self._lock = threading.Lock()
        self._watchers: dict[JobId, threading.Thread] = {}
        self._ends: list[YarnflowError | None] = []

    def follow(self) -> None:
        """Return when the application has ended well.

        Raises
        ------
        YarnflowError
            The first job that did not FINISH, else why the application did not end well.
        """
        silent_since: float | None = None
        while True:
            try:
                for job in self._cluster.gateway().list_jobs():
                    self._watch(job)
                silent_since = None
            except (RpcError, HaError) as error:
                application = self._ended_application()
                if application is not None:
                    return self._finish(application)
                now = self._now()
                silent_since = now if silent_since is None else silent_since
                if (now - silent_since) * 1000 >= self._timeout_ms:
                    raise error
            self._sleep(POLL_S)

    def _watch(self, job: JobOverview) -> None:
        if job.job_id in self._watchers:
            return
        if job.status.terminal and self._cluster.mode is DeploymentMode.SESSION:
            return
        self._listener.submitted(job.job_id, job.name, False, page_of(self._cluster, job.job_id))
        client = ClusterJobClient(
            self._cluster, job.job_id, job.name, self._listener, timeout_ms=self._timeout_ms
        )
        thread = threading.Thread(target=self._await, args=(client,), name="job-follower", daemon=True)
        self._watchers[job.job_id] = thread
        thread.start()

    def _await(self, client: ClusterJobClient) -> None:
        try:
            end = job_error(client.await_end())
        except YarnflowError as error:
            end = error
        with self._lock:
            self._ends.append(end)
        if end is not None and self._cluster.mode is DeploymentMode.SESSION:
            self._listener.note(f"error: {end}")

    def _ended_application(self) -> Application | None:
        try:
            self._cluster.forget_address()
            application = self._cluster.application()
        except (YarnError, StorageError):
            return None
        return application if application.state.ended else None

    def _finish(self, application: Application) -> None:
        for watcher in self._watchers.values():
            watcher.join(_WATCHERS_S)
        if self._cluster.mode is not DeploymentMode.SESSION:
            with self._lock:
                wrong = [end for end in self._ends if end is not None]
            if wrong:
                raise wrong[0]
        if application.final_status is not FinalStatus.SUCCEEDED:
            raise self._cluster.failure() or ended_error(application)
