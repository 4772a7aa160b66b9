"""What a leading master answers by REST, now and in archives of jobs that have ended.

The view of it that handlers ask, their application, and who keeps what they say of a job.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from yarnflow import __version__
from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop_conf import HadoopConf
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import history as history_options
from yarnflow.config.options import rest as rest_options
from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointRequest, JobCheckpoints
from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.messages import ClusterOverview, JobDetails
from yarnflow.core.metrics import MetricsView
from yarnflow.core.ports import Clock, GatewayFactory
from yarnflow.core.resources.diagnostics import ProcessDiagnostics
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.entrypoint.master.web import WebApplication
from yarnflow.fs.file_systems import file_systems
from yarnflow.fs.saved_state import delete_savepoint, read_state, state_uri
from yarnflow.rest.framework.changes import JobChanges
from yarnflow.runtime.dispatcher.dispatcher import Dispatcher
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.runtime.resourcemanager.resource_manager import ResourceManager

if TYPE_CHECKING:
    from yarnflow.rest.framework.authentication import Authentication
    from yarnflow.rest.handlers.context import Cluster
    from yarnflow.rest.history.recorder import Recorder
    from yarnflow.rest.history.writer import ArchiveWriter


class LeaderView:
    """What handlers and metrics ask of a leader; any thread."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        board: JobBoard,
        resource_manager: ResourceManager,
        gateways: GatewayFactory,
    ) -> None:
        self._dispatcher = dispatcher
        self._board = board
        self._resource_manager = resource_manager
        self._gateways = gateways

    def cluster_overview(self) -> ClusterOverview:
        """Counts of TaskManagers, slots and jobs."""
        return self._dispatcher.cluster_overview()

    def jobs(self) -> Sequence[JobDetails]:
        """All jobs, oldest first."""
        return self._board.all()

    def job_details(self, job_id: JobId) -> JobDetails:
        """Latest snapshot of one job."""
        return self._board.get(job_id)

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """Checkpoints of one job."""
        return self._dispatcher.job_checkpoints(job_id)

    def job_description(self, job_id: JobId) -> JobDescription | None:
        """What one job is."""
        return self._dispatcher.job_description(job_id)

    def task_managers(self) -> Sequence[TaskManagerInfo]:
        """The registered TaskManagers."""
        return self._resource_manager.task_managers()

    def pending_task_managers(self) -> int:
        """TaskManagers that were asked for and have not registered."""
        return self._resource_manager.pending_task_managers()

    def task_manager_diagnostics(self, info: TaskManagerInfo) -> ProcessDiagnostics:
        """Of a registered TaskManager."""
        return self._gateways.task_executor(info.registration.address)

    def cancel_job(self, job_id: JobId) -> None:
        """Begin to cancel a job."""
        self._dispatcher.cancel_job(job_id)

    def trigger_checkpoint(self, job_id: JobId, request: CheckpointRequest) -> None:
        """Begin a checkpoint or savepoint."""
        self._dispatcher.trigger_checkpoint(job_id, request)

    def await_checkpoint(self, job_id: JobId, request_id: str, timeout_ms: int) -> CheckpointInfo:
        """What a request led to."""
        return self._dispatcher.await_checkpoint(job_id, request_id, timeout_ms)

    def dispose_savepoint(self, path: str) -> None:
        """Delete a savepoint."""
        opened = file_systems()

        def home() -> str:
            return opened(HadoopConf.load(os.environ).default_fs)[0].home()

        on_hadoop = any(os.environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))
        uri = state_uri(path, os.environ, on_hadoop=on_hadoop, home=home)
        delete_savepoint(opened, read_state(opened, uri))

    def shut_down_cluster(self) -> None:
        """Cancel every job, then end the cluster."""
        self._dispatcher.shut_down_cluster()


class LeaderWeb:
    """The REST interface of one leadership; its libraries are loaded with the first request.

    Parameters
    ----------
    view : LeaderView
    metrics : MetricsView
        What is measured.
    diagnostics : ProcessDiagnostics
        Of this process.
    configuration : Configuration
        The cluster's.
    clock : Clock
    changes : JobChanges
        Told of each change of a job.
    authentication : callable
        The check of requests.
    place : callable
        Host, container and log directory of this process.
    """

    def __init__(
        self,
        view: LeaderView,
        metrics: MetricsView,
        diagnostics: ProcessDiagnostics,
        configuration: Configuration,
        clock: Clock,
        changes: JobChanges,
        authentication: Callable[[], Authentication],
        place: Callable[[], tuple[str, str, str]],
    ) -> None:
        self._view = view
        self._metrics = metrics
        self._diagnostics = diagnostics
        self._configuration = configuration
        self._clock = clock
        self._changes = changes
        self._authentication = authentication
        self._place = place
        #: any thread may be the first that asks
        self._lock = threading.Lock()
        self._cluster: Cluster | None = None
        self._application: WebApplication | None = None
        self._on_stop: list[Callable[[], None]] = []

    def application(self) -> WebApplication:
        """What answers; only called in the event loop's thread."""
        if self._application is None:
            self._application = self._make()
        return self._application

    def recorder(self) -> Recorder:
        """Who makes archives of jobs; any thread."""
        from yarnflow.rest.history.recorder import Recorder

        return Recorder(self._known())

    def stop(self) -> None:
        """Take no more requests."""
        for close in self._on_stop:
            close()

    def _make(self) -> WebApplication:
        from yarnflow.rest.framework.application import HandlerPool
        from yarnflow.rest.web import application

        pool = HandlerPool(self._configuration.get(rest_options.REST_THREADS))
        self._on_stop.append(pool.close)
        return application(self._known(), self._authentication(), pool)

    def _known(self) -> Cluster:
        with self._lock:
            if self._cluster is None:
                self._cluster = self._make_cluster()
            return self._cluster

    def _make_cluster(self) -> Cluster:
        from yarnflow.rest.answers.cluster import Features
        from yarnflow.rest.answers.logs import ProcessPlace
        from yarnflow.rest.framework.operations import Operations
        from yarnflow.rest.handlers.context import Cluster, ClusterInfo

        get = self._configuration.get
        operations = Operations(get(rest_options.REST_STORE_DURATION_MS), self._clock.monotonic_ms)
        self._on_stop.append(operations.close)
        info = ClusterInfo(
            configuration=self._configuration.masked(),
            refresh_interval_ms=get(rest_options.WEB_REFRESH_INTERVAL_MS),
            version=__version__,
            features=Features(web_submit=False, web_cancel=True, web_rescale=False, web_history=False),
            place=ProcessPlace(*self._place()),
        )
        return Cluster(
            self._view, self._metrics, self._diagnostics, operations, self._clock, info, self._changes
        )


def check_archive_dir(uri: str) -> None:
    """Find a wrong ``jobmanager.archive.fs.dir`` before there is a leader.

    Raises
    ------
    ConfigError
        Archives cannot be written there.
    """
    if uri:
        # its libraries are not loaded where nothing is archived
        from yarnflow.rest.history import writer

        writer.check_archive_dir(uri)


class Archives:
    """Of one leadership; without ``jobmanager.archive.fs.dir`` none are written.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    recorder : callable
        Who makes archives; loads libraries.
    clock : Clock
    """

    def __init__(
        self, configuration: Configuration, recorder: Callable[[], Recorder], clock: Clock
    ) -> None:
        self._writer: ArchiveWriter | None = None
        uri = configuration.get(history_options.ARCHIVE_DIR)
        if uri:
            from yarnflow.rest.history import writer

            cluster_id = configuration.get(cluster_options.CLUSTER_ID)
            self._writer = writer.ArchiveWriter(uri, cluster_id, file_systems(), recorder, clock)

    def start(self) -> None:
        """Begin."""
        if self._writer is not None:
            self._writer.start()

    def ended(self, job_id: JobId) -> None:
        """A job has ended for good; any thread, returns at once."""
        if self._writer is not None:
            self._writer.ended(job_id)

    def recovered(self, jobs: Iterable[JobDetails]) -> None:
        """Jobs that this leader has found: of those that have ended an archive may be missing."""
        if self._writer is not None:
            self._writer.ended_before(
                job.overview.job_id for job in jobs if job.overview.status.globally_terminal
            )

    def finish(self) -> None:
        """The cluster ends: wait a while for the last ones."""
        if self._writer is not None:
            self._writer.finish()

    def stop(self) -> None:
        """Write no more."""
        if self._writer is not None:
            self._writer.stop()
