"""What a leading master answers by REST, now and in archives of jobs that have ended.

The view of it that handlers ask, their application, and who keeps what they say of a job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yarnflow import __version__
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import rest as rest_options
from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointRequest, JobCheckpoints
from yarnflow.core.ha.ports import Leadership
from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.messages import ClusterOverview, JobDetails
from yarnflow.core.metrics import MetricsView
from yarnflow.core.ports import Clock, GatewayFactory
from yarnflow.core.resources.diagnostics import ProcessDiagnostics, ThreadInfo
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.entrypoint.master.web.disposal import SavepointDisposal
from yarnflow.entrypoint.master.web.master_web import WebApplication
from yarnflow.errors import DriverLost
from yarnflow.fs.file_systems import file_systems
from yarnflow.rest.framework.changes import JobChanges
from yarnflow.runtime.dispatcher.dispatcher import Dispatcher
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.runtime.resourcemanager.resource_manager import ResourceManager

if TYPE_CHECKING:
    from yarnflow.rest.framework.authentication import Authentication
    from yarnflow.rest.handlers.context import Cluster, Programs
    from yarnflow.rest.history.recorder import Recorder


class LeaderView:
    """What handlers and metrics ask of a leader; any thread."""

    def __init__(
        self,
        configuration: Configuration,
        cluster_dir: Path,
        dispatcher: Dispatcher,
        board: JobBoard,
        resource_manager: ResourceManager,
        gateways: GatewayFactory,
        leadership: Callable[[], Leadership],
    ) -> None:
        self._configuration = configuration
        self._cluster_dir = cluster_dir
        self._leadership = leadership
        self._dispatcher = dispatcher
        self._board = board
        self._resource_manager = resource_manager
        self._gateways = gateways

    def cluster_overview(self) -> ClusterOverview:
        """Counts of TaskManagers, slots and jobs."""
        return self._dispatcher.cluster_overview()

    def leadership(self) -> Leadership:
        """The masters of the cluster."""
        return self._leadership()

    def jobs(self) -> Sequence[JobDetails]:
        """All jobs, oldest first."""
        return self._board.all()

    def job_ids(self) -> list[JobId]:
        """Return those of all jobs, oldest first."""
        return [details.overview.job_id for details in self._board.all()]

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

    def driver_threads(self, job_id: JobId) -> Sequence[ThreadInfo]:
        """What the threads of a job's driver and of its JVM do."""
        self._board.get(job_id)
        registration = self._dispatcher.driver_of(job_id)
        if registration is None:
            raise DriverLost(f"job {job_id} has no driver just now; its status says why")
        return self._gateways.driver(registration.address).thread_dump()

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
        """Delete a savepoint of the cluster's."""
        # nothing else of a master's needs file systems before that
        SavepointDisposal(self._configuration, self._cluster_dir, self, file_systems()).dispose(path)

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
    cluster_dir : Path
    address : callable, optional
        Where this master serves the clients of programs that are run here; None = it runs none.
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
        cluster_dir: Path,
        address: Callable[[], str] | None = None,
    ) -> None:
        self._view = view
        self._metrics = metrics
        self._diagnostics = diagnostics
        self._configuration = configuration
        self._clock = clock
        self._changes = changes
        self._authentication = authentication
        self._place = place
        self._cluster_dir = cluster_dir
        self._address = address if takes_programs(configuration) else None
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
        programs = None if self._address is None else self._programs(self._address)
        info = ClusterInfo(
            configuration=self._configuration.masked(),
            refresh_interval_ms=get(rest_options.WEB_REFRESH_INTERVAL_MS),
            version=__version__,
            features=Features(
                web_submit=programs is not None, web_cancel=True, web_rescale=False, web_history=False
            ),
            place=ProcessPlace(*self._place()),
        )
        return Cluster(
            self._view,
            self._metrics,
            self._diagnostics,
            operations,
            self._clock,
            info,
            self._changes,
            programs,
        )

    def _programs(self, address: Callable[[], str]) -> Programs:
        from yarnflow.entrypoint.master.web.uploaded_programs import UploadedPrograms, upload_directory
        from yarnflow.rest.handlers.context import Programs
        from yarnflow.rest.programs.store import ProgramStore

        get = self._configuration.get
        runner = UploadedPrograms(self._configuration, address, get(rest_options.WEB_SUBMIT_TIMEOUT_MS))
        self._on_stop.append(runner.stop)
        directory = upload_directory(get(rest_options.WEB_UPLOAD_DIR), self._cluster_dir)
        return Programs(ProgramStore(directory), runner, get(rest_options.WEB_UPLOAD_MAX_BYTES))


def takes_programs(configuration: Configuration) -> bool:
    """Programs may be uploaded: where it is asked for, or everybody who may write needs a token."""
    if configuration.is_set(rest_options.WEB_SUBMIT_ENABLE):
        return configuration.get(rest_options.WEB_SUBMIT_ENABLE)
    return configuration.get(rest_options.REST_AUTHENTICATION)
