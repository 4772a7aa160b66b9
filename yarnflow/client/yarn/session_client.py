"""The target on YARN whose cluster runs already, and the way there for verbs about its jobs.

Flink counterpart: ``YarnSessionClusterExecutor``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from yarnflow.client.cluster import JobCluster
from yarnflow.client.programs.job_key import JobKey
from yarnflow.client.yarn.applications import (
    ApplicationCluster,
    connect_application,
    find_application,
    live_applications,
    mode_of,
)
from yarnflow.client.yarn.job_owners import JobOwners
from yarnflow.client.yarn.services import YarnServices, yarn_services
from yarnflow.client.yarn.shipping import offload_files, stage_jars
from yarnflow.client.yarn.start import Note
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import yarn
from yarnflow.core.ids import JobId
from yarnflow.core.messages import Fence, JobDetails, JobSubmission, JobSubmitted
from yarnflow.core.ports import DispatcherGateway
from yarnflow.core.yarn import Application, DeploymentMode
from yarnflow.errors import DuplicateJob, HaError, RpcTimeout, RpcUnavailable, YarnflowError
from yarnflow.staging.cache import ContentCache
from yarnflow.staging.job_keys import KeyTaken
from yarnflow.staging.layout import job_tag


class SessionClient:
    """Jobs for a session that runs already.

    Parameters
    ----------
    services : YarnServices
    cluster : ApplicationCluster
        The session.
    note : callable
        Told why a submit waits.
    """

    def __init__(self, services: YarnServices, cluster: ApplicationCluster, note: Note) -> None:
        self._services = services
        self._session = cluster
        self._note = note
        self._clusters: dict[JobId, ApplicationCluster] = {}

    @property
    def owned(self) -> bool:
        return False

    @property
    def named_by(self) -> str:
        return self._session.named_by

    @property
    def programs(self) -> None:
        pass

    @property
    def session(self) -> ApplicationCluster:
        return self._session

    def submit(self, submission: JobSubmission, required_slots: int) -> JobSubmitted:
        """Hand a job to the session, or attach to the live job of its key, wherever it runs."""
        services = self._services
        cache = ContentCache(services.fs, services.layout)
        submission = offload_files(submission, lambda: cache)
        submission = replace(
            submission, configuration=stage_jars(submission.configuration, lambda: cache)
        )
        if not submission.job_key:
            return self._session.gateway().submit_job(submission)
        owners = JobOwners(self._services, self._note)
        deployment_id = self._session.directory.deployment_id
        key = owners.with_key(JobKey.of(submission))
        submission = key.put_on(submission)
        taken = owners.claim(key, deployment_id, submission.job_id)
        if not isinstance(taken, KeyTaken):
            answer, cluster = taken
            self._clusters[answer.job_id] = cluster
            return answer
        try:
            answer = self._session.gateway().submit_job(submission)
        except (RpcTimeout, RpcUnavailable, HaError):
            # it may have been accepted: whoever wants the key next asks the session about the job
            self._bind(owners, key.key, taken)
            raise
        except YarnflowError:
            owners.keys.release(key.key, taken.generation)
            raise
        try:
            bound = self._bind(owners, key.key, taken)
        except YarnflowError:
            self._session.gateway().cancel_job(answer.job_id)
            raise
        if bound:
            return answer
        self._session.gateway().cancel_job(answer.job_id)
        raise DuplicateJob(
            f"job key {key.key} went to another submit, since this one took longer than "
            "client.timeout; its job was canceled: submit again"
        )

    def _bind(self, owners: JobOwners, key: str, taken: KeyTaken) -> bool:
        return owners.keys.set_application(key, taken.generation, self._session.application_id)

    def cluster_of(self, job_id: JobId) -> JobCluster:
        """The session, or the application whose job was attached to."""
        return self._clusters.get(job_id, self._session)

    def gateway(self) -> DispatcherGateway:
        return self._session.gateway()

    def present_gateway(self) -> DispatcherGateway | None:
        """The session's Dispatcher, while nobody is looked for."""
        return self._session.present_gateway()

    def followed(self) -> Fence | None:
        """The session's leader."""
        return self._session.followed()

    def failure(self) -> YarnflowError | None:
        return self._session.failure()

    def final_details(self, job_id: JobId) -> JobDetails | None:
        """What the session left of a job."""
        return self._session.final_details(job_id)

    def stop(self, *, forced: bool, failed: bool) -> str:
        """Close the connections; the session stays."""
        for cluster in (self._session, *self._clusters.values()):
            cluster.close()
        self._services.close()
        return ""


def connect_session(configuration: Configuration, note: Note) -> SessionClient:
    """Factory of the ``yarn-session`` target."""
    return connect_running(configuration, DeploymentMode.SESSION, note)


def connect_running(
    configuration: Configuration, mode: DeploymentMode | None, note: Note, job_id: str = ""
) -> SessionClient:
    """Reach an application that runs, for verbs about its jobs.

    Parameters
    ----------
    mode : DeploymentMode, optional
        What kind to look for when ``yarn.application.id`` is not set.
    job_id : str
        The job the verb is about.

    Raises
    ------
    ApplicationNotFound
        See :func:`yarnflow.client.yarn.applications.find_application`.
    """
    services = yarn_services(configuration, os.environ)
    application = find_application(services, mode, configuration.get(yarn.APPLICATION_ID), job_id)
    return SessionClient(services, connect_application(services, application), note)


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A cluster on YARN that has not ended."""

    #: for people
    name: str
    #: ``execution.target``
    target: str
    #: the option that names it
    named_by: str
    #: connects to it
    reach: Callable[[], SessionClient]


def live_clusters(
    configuration: Configuration, mode: DeploymentMode | None, job_id: str = ""
) -> list[LiveCluster]:
    """The user's clusters on YARN, for verbs that look for theirs.

    Parameters
    ----------
    mode : DeploymentMode, optional
        Only those deployed so.
    job_id : str
        Only the one that was deployed for this job, where there is one.

    Raises
    ------
    YarnUnavailable
        YARN does not answer, or is not configured here.
    """
    services = yarn_services(configuration, os.environ)
    applications = live_applications(services, mode)
    own = [application for application in applications if job_id and job_tag(job_id) in application.tags]

    def reach(application: Application) -> SessionClient:
        return SessionClient(services, connect_application(services, application), lambda _text: None)

    found = []
    for application in own or applications:
        found_mode = mode_of(application)
        target = "" if found_mode is None else found_mode.target
        name = f"application {application.application_id} ({application.name})"
        named_by = f"-D{yarn.APPLICATION_ID.key}={application.application_id}"
        found.append(LiveCluster(name, target, named_by, partial(reach, application)))
    return found
