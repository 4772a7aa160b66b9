"""How a job ended whose cluster has ended with it, as YARN remembers it.

YARN forgets an application some time after its end (``yarn.resourcemanager.max-completed-applications``); a
session's end says nothing of its jobs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from yarnflow.client.yarn.applications import connect_application
from yarnflow.client.yarn.services import YarnServices
from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop.variables import names_hadoop
from yarnflow.config.options import yarn
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.core.yarn import Application, DeploymentMode
from yarnflow.errors import ApplicationNotFound
from yarnflow.staging.layout import job_tag


def ended_details(
    configuration: Configuration, job_id: JobId, environ: Mapping[str, str] = os.environ
) -> JobDetails | None:
    """The end of a job that had an application of its own; None = none is known, or one lives.

    Parameters
    ----------
    configuration : Configuration
        ``yarn.application.id`` names the application of a job whose program ran in it: that has no tag.

    Raises
    ------
    ApplicationFailed
        The application failed or was killed; the message has YARN's diagnostics.
    YarnUnavailable
        YARN does not answer.
    """
    from yarnflow.client.yarn.services import yarn_services

    if not names_hadoop(environ):
        return None
    services = yarn_services(configuration, environ)
    try:
        found = _applications(services, configuration.get(yarn.APPLICATION_ID), job_id)
        if not found or not all(application.state.ended for application in found):
            return None
        cluster = connect_application(services, found[-1])
        details = cluster.final_details(job_id)
        if details is None and cluster.mode is not DeploymentMode.SESSION:
            failure = cluster.failure()
            if failure is not None:
                raise failure
        return details
    finally:
        services.close()


def _applications(services: YarnServices, application_id: str, job_id: JobId) -> list[Application]:
    if application_id:
        try:
            return [services.cluster.application(application_id)]
        except ApplicationNotFound:
            return []
    return list(services.cluster.applications(tag=job_tag(job_id), user=services.user))
