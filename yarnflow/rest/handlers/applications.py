"""Applications: here, each job is one of its own, with the job's id."""

from __future__ import annotations

from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.errors import JobNotFound
from yarnflow.rest.answers import applications as answers
from yarnflow.rest.answers import cluster as cluster_answers
from yarnflow.rest.answers.shapes import Empty
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call
from yarnflow.rest.handlers import cluster as cluster_handlers
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.handlers.jobs import begin_to_cancel, description_of


def overview(cluster: Cluster, call: Call) -> answers.Applications:
    """All applications, newest first."""
    return answers.applications(cluster.view.jobs(), cluster.now_ms())


def details(cluster: Cluster, call: Call) -> answers.Application:
    """One application."""
    job = _find(cluster, call)
    job_id = job.overview.job_id
    return answers.application(job, {job_id: description_of(cluster, job_id)}, cluster.now_ms())


def exceptions(cluster: Cluster, call: Call) -> answers.ApplicationExceptions:
    """What went wrong, newest first."""
    return answers.application_exceptions(_find(cluster, call))


def configuration(cluster: Cluster, call: Call) -> list[cluster_answers.ConfigurationEntry]:
    """The cluster's options, asked for by an application."""
    _find(cluster, call)
    return cluster_handlers.configuration(cluster, call)


def cancel(cluster: Cluster, call: Call) -> Empty:
    """Begin to cancel the job of an application."""
    return begin_to_cancel(cluster, _find(cluster, call).overview.job_id)


def _find(cluster: Cluster, call: Call) -> JobDetails:
    application_id = call.get(p.APPLICATION_ID)
    try:
        return cluster.view.job_details(JobId(application_id))
    except JobNotFound:
        # Flink's words
        raise RestError(404, f"Application {application_id} not found") from None
