"""Applications of yarnflow on YARN, as their clients find and reach them.

An application is found by its id, its job's id or as the user's only one; its JobManager's
address stands in the application's directory on HDFS and is read again whenever nobody answers,
so that a JobManager that restarts or moves is followed.  The masters of a highly available cluster
are applications of their own with one directory: whichever is named, also one that has ended, the
cluster is meant, and it lives as long as one of them does.  Needs no JVM.  Flink counterpart:
``YarnClusterDescriptor.retrieve``.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from yarnflow.client.leader import LeaderFollowingDispatcher
from yarnflow.client.yarn.high_availability import forget_cluster
from yarnflow.client.yarn.services import YarnServices
from yarnflow.config.options import client, yarn
from yarnflow.core.cluster_result import stop_in
from yarnflow.core.ids import JobId
from yarnflow.core.messages import Fence, JobDetails, JobOverview
from yarnflow.core.ports import DispatcherGateway, GatewayFactory
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import Application, ApplicationState, DeploymentMode, FinalStatus
from yarnflow.errors import (
    ApplicationFailed,
    ApplicationNotFound,
    HaError,
    RpcUnavailable,
    StorageError,
    YarnError,
    YarnflowError,
    error_from_code,
)
from yarnflow.staging.deployment import ApplicationDirectory, ApplicationResult
from yarnflow.staging.layout import APPLICATION_TAG, deployment_tag, job_tag, skein_directory
from yarnflow.staging.leader_retrieval import DeploymentRetrieval
from yarnflow.staging.masters import LIVE_STATES, live_masters, remove_cluster

logger: Final = logging.getLogger(__name__)

#: a master that leads starts others for those that are gone, so one look is not enough
_KILL_TRIES: Final = 10
_KILL_PAUSE_S: Final = 0.5
_DEPLOYMENT_TAG: Final = re.compile(rf"{APPLICATION_TAG}-([0-9a-f]{{16}})")


def mode_tag(mode: DeploymentMode) -> str:
    """The YARN tag of all applications of a mode."""
    return f"{APPLICATION_TAG}-{mode.target}"


def masters_of(services: YarnServices, application: Application) -> list[Application]:
    """The application, then its cluster's other ones: who led before, and standbys."""
    try:
        found = services.cluster.applications(
            tag=deployment_tag(deployment_id_of(application)), user=application.user
        )
    except YarnflowError:
        return [application]  # whoever reads about it is told why
    others = (one for one in found if one.application_id != application.application_id)
    return [application, *others]


def deployment_id_of(application: Application) -> str:
    """Name of its directory in the staging directory.

    Raises
    ------
    ApplicationNotFound
        It is not an application of yarnflow.
    """
    for tag in application.tags:
        match = _DEPLOYMENT_TAG.fullmatch(tag)
        if match:
            return match[1]
    raise ApplicationNotFound(
        f"application {application.application_id} ({application.name}) is not one of yarnflow; "
        f"`yarn application -list -appTags {APPLICATION_TAG}` shows those that are"
    )


def mode_of(application: Application) -> DeploymentMode | None:
    """How it was deployed, by its tags."""
    return next((mode for mode in DeploymentMode if mode_tag(mode) in application.tags), None)


def live_applications(services: YarnServices, mode: DeploymentMode | None = None) -> list[Application]:
    """The user's clusters that have not ended, oldest first; of several masters the first one's report."""
    tag = APPLICATION_TAG if mode is None else mode_tag(mode)
    found = services.cluster.applications(tag=tag, user=services.user, states=LIVE_STATES)
    return [masters[0] for masters in clusters_of(found)]


def clusters_of(applications: Iterable[Application]) -> list[list[Application]]:
    """Applications by cluster, oldest first; within each those that live before those that do not."""
    clusters: dict[str, list[Application]] = {}
    for application in sorted(applications, key=lambda app: (app.started_ms, app.application_id)):
        deployment = next(filter(_DEPLOYMENT_TAG.fullmatch, application.tags), application.application_id)
        clusters.setdefault(deployment, []).append(application)
    return [sorted(masters, key=lambda app: app.state.ended) for masters in clusters.values()]


def kill_masters(
    services: YarnServices, deployment_id: str, sleep: Callable[[float], None] = time.sleep
) -> None:
    """End a cluster by force, also masters that are only being started, and delete what is left of it.

    Raises
    ------
    YarnError, StorageError
        YARN or HDFS does not answer.
    """
    killed: set[str] = set()
    for _ in range(_KILL_TRIES):
        masters = live_masters(services.cluster, deployment_id, services.user)
        if not masters:
            break
        for master in masters:
            services.cluster.kill(master.application_id)
            killed.add(master.application_id)
        sleep(_KILL_PAUSE_S)
    else:
        return  # whoever is still there needs the files
    # one that has not begun has no janitor
    for application_id in killed:
        services.fs.delete(skein_directory(services.fs.home(), application_id))
    try:
        remove_cluster(services.fs, services.layout, deployment_id, forget_cluster)
    except HaError as error:
        logger.warning("The next submit removes what is left of the cluster: %s", error)


def find_application(
    services: YarnServices, mode: DeploymentMode | None, application_id: str = "", job_id: str = ""
) -> Application:
    """The application a verb is about.

    Parameters
    ----------
    mode : DeploymentMode, optional
        What to look for when there is no id.
    application_id : str
        ``yarn.application.id``.
    job_id : str
        Of a job that was submitted together with its application.

    Raises
    ------
    ApplicationNotFound
        There is none, it has ended, or the user has several; the message lists them.
    """
    if application_id:
        application = services.cluster.application(application_id)
        deployment_id = deployment_id_of(application)
        if application.state.ended:
            if others := live_masters(services.cluster, deployment_id, application.user):
                return others[0]
            said = f": {application.diagnostics}" if application.diagnostics else ""
            raise ApplicationNotFound(
                f"application {application_id} has ended ({end_text(application)}){said}; "
                f"its logs: yarnflow logs {application_id}"
            )
        return application
    if job_id:
        found = services.cluster.applications(tag=job_tag(job_id), user=services.user, states=LIVE_STATES)
        if found:
            return found[0]
    return _only(live_applications(services, mode), mode, services.user)


def _only(applications: Sequence[Application], mode: DeploymentMode | None, user: str) -> Application:
    kind = "yarnflow" if mode is None else mode.target
    if not applications:
        hint = "start one with: yarnflow session start -d" if mode is DeploymentMode.SESSION else (
            f"name another with -D{yarn.APPLICATION_ID.key}=…"
        )
        raise ApplicationNotFound(f"no {kind} application of user {user} runs on YARN; {hint}")
    if len(applications) > 1:
        listed = ", ".join(f"{app.application_id} ({app.name})" for app in applications)
        raise ApplicationNotFound(
            f"user {user} has {len(applications)} {kind} applications; name one with "
            f"-D{yarn.APPLICATION_ID.key}=…: {listed}"
        )
    return applications[0]


def end_text(application: Application) -> str:
    """``FAILED`` or, where the state alone does not tell, ``FINISHED, KILLED``."""
    if application.state is ApplicationState.FINISHED:
        return str(application.final_status.value)
    return str(application.state.value)


class ApplicationCluster:
    """The JobManager of one application.

    Parameters
    ----------
    services : YarnServices
    application_id : str
        One of its masters.
    deployment_id : str
        Names the directory with address and secret.
    mode : DeploymentMode, optional
        Whether the application's end is that of its job.
    secret : str
        The cluster's, where it is known; else it is read from the directory.
    """

    def __init__(
        self,
        services: YarnServices,
        application_id: str,
        deployment_id: str,
        mode: DeploymentMode | None = None,
        secret: str = "",
    ) -> None:
        self.application_id: Final = application_id
        self.directory: Final = ApplicationDirectory(services.fs, services.layout, deployment_id)
        self.mode: Final = mode
        self._services = services
        self._secret = secret
        self._lock = threading.Lock()
        self._factory: GatewayFactory | None = None
        self._gateway: DispatcherGateway | None = None
        self._leader = DeploymentRetrieval(self.directory)
        #: the gateway, where it follows the leader by itself
        self._following: LeaderFollowingDispatcher | None = None
        self._result: ApplicationResult | None = None

    @property
    def owned(self) -> bool:
        return False

    @property
    def named_by(self) -> str:
        return f"-D{yarn.APPLICATION_ID.key}={self.application_id}"

    def gateway(self) -> DispatcherGateway:
        """The Dispatcher at the address that is published now; that of the leader, where there are several.

        Raises
        ------
        RpcUnavailable
            No address is published, or it cannot be read.
        """
        with self._lock:
            if self._gateway is None:
                try:
                    leader = self._leader.leader()
                    if leader is None:
                        raise RpcUnavailable(
                            f"the JobManager of application {self.application_id} does not serve"
                        )
                    if self._factory is None:
                        self._factory = self._new_factory()
                except RpcUnavailable:
                    raise
                except YarnflowError as error:
                    raise RpcUnavailable(
                        f"address of the JobManager of application {self.application_id}: {error}"
                    ) from error
                dispatcher = self._factory.dispatcher
                if self._leader.may_change:
                    self._gateway = self._following = LeaderFollowingDispatcher(
                        dispatcher,
                        self._published_addresses,
                        timeout_ms=self._services.configuration.get(client.CLIENT_TIMEOUT_MS),
                        is_over=lambda: self.end_is_known() or self.failure() is not None,
                    )
                else:
                    self._gateway = dispatcher(leader.address)
            return self._gateway

    def present_gateway(self) -> DispatcherGateway | None:
        """That of the leader, or of the only master."""
        gateway = self.gateway()
        return gateway if self._following is None else self._following.present

    def followed(self) -> Fence | None:
        """The leader, where there are several masters."""
        return None if self._following is None else self._following.followed

    def _published_addresses(self) -> Sequence[str]:
        try:
            leader = self._leader.leader()
        except StorageError:
            return ()  # masters that are known may answer
        return () if leader is None else (leader.address,)

    @property
    def ready(self) -> bool:
        """The master has published where it serves."""
        return self._leader.leader() is not None

    def web_address(self) -> str:
        """URL of the JobManager's web page, empty when there is none."""
        leader = self._leader.leader()
        return "" if leader is None else leader.web_address

    def application(self) -> Application:
        """YARN's report of the master it is named by; of another one when that has ended and others live.

        When all have ended, of one that knew how the cluster ended.  Raises YarnError.
        """
        cluster = self._services.cluster
        named = cluster.application(self.application_id)
        if not named.state.ended:
            return named
        tag = deployment_tag(self.directory.deployment_id)
        masters = cluster.applications(tag=tag, user=named.user)
        if live := [master for master in masters if not master.state.ended]:
            return live[0]
        said = [master for master in (named, *masters) if master.state is ApplicationState.FINISHED]
        return next((one for one in said if one.final_status is not FinalStatus.FAILED), (*said, named)[0])

    def kill(self) -> None:
        """End it by force, with all of its masters.  Raises YarnError."""
        kill_masters(self._services, self.directory.deployment_id)

    def final_details(self, job_id: JobId) -> JobDetails | None:
        """How a job ended whose JobManager does not answer, as far as it is known to have ended.

        What the master wrote last comes first; then YARN's final status, where the application
        lived for this job.  None = not known (any more), or YARN's diagnostics say all there is.
        """
        self.forget_address()
        try:
            result = self._read_result()
            if result is not None and result.details is not None:
                if result.details.overview.job_id == job_id:
                    return result.details
            if self.mode is DeploymentMode.SESSION:
                return None
            application = self.application()
        except YarnflowError:
            return None
        status = _job_status(application)
        if status is None:
            return None
        started_ms, ended_ms = application.started_ms, application.finished_ms
        overview = JobOverview(job_id, application.name, status, started_ms, ended_ms)
        stop = stop_in(application.diagnostics, job_id) if status is JobStatus.FINISHED else None
        return JobDetails(overview, 0, {status.value: ended_ms}, stop=stop)

    def forget_address(self) -> None:
        """Nobody answered: the JobManager may be published elsewhere by now."""
        with self._lock:
            if self._following is None:
                self._gateway = None

    def failure(self) -> YarnflowError | None:
        """Why the application is gone, when YARN says that it is."""
        try:
            result = self._read_result()
            application = self.application()
        except ApplicationNotFound as error:
            return error
        except YarnflowError:
            return None
        if not application.state.ended:
            return None
        if result is None:
            return ended_error(application)
        failure = ended_error(application, result.diagnostics)
        # with the exit status that the same refusal has where no application was started
        return error_from_code(result.error_code, failure.message) if result.error_code else failure

    def close(self) -> None:
        with self._lock:
            factory, self._factory, self._gateway = self._factory, None, None
        if factory is not None:
            factory.close()

    def end_is_known(self) -> bool:
        """The application has ended, and how its job ended is told by the master or by YARN."""
        try:
            if self._read_result() is not None:
                return True
            return self.mode is not DeploymentMode.SESSION and _job_status(self.application()) is not None
        except YarnflowError:
            return False

    @property
    def said_its_end(self) -> bool:
        """The master wrote how the application ended, and that is known here."""
        return self._result is not None

    def _read_result(self) -> ApplicationResult | None:
        # the master deletes it with the directory; what was read once stays known
        if self._result is None:
            self._result = self.directory.read_result()
        return self._result

    def _new_factory(self) -> GatewayFactory:
        secret = self._secret or self.directory.read_secret()
        return self._services.new_gateways(self._services.configuration, secret)


def ended_error(application: Application, diagnostics: str = "") -> ApplicationFailed:
    """What the end of an application means to whoever still needed it."""
    said = " ".join((diagnostics or application.diagnostics).split())
    return ApplicationFailed(
        f"application {application.application_id} ({application.name}) ended {end_text(application)}"
        + (f": {said}" if said else "")
    )


def connect_application(services: YarnServices, application: Application) -> ApplicationCluster:
    """Reach the JobManager of an application; nothing is connected before it is used.

    Raises
    ------
    ApplicationNotFound
        Not one of yarnflow.
    YarnError
        Another user's.
    """
    if application.user and application.user != services.user:
        raise YarnError(
            f"application {application.application_id} belongs to user {application.user}; only its owner "
            "can talk to its JobManager"
        )
    return ApplicationCluster(
        services, application.application_id, deployment_id_of(application), mode_of(application)
    )


def _job_status(application: Application) -> JobStatus | None:
    """The status of the job an application lived for, where YARN's final status tells it."""
    if application.state is not ApplicationState.FINISHED:
        return None
    return {
        FinalStatus.SUCCEEDED: JobStatus.FINISHED,
        FinalStatus.KILLED: JobStatus.CANCELED,
    }.get(application.final_status)
