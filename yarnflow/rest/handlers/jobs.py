"""Jobs: what they are and do, and how they are ended."""

from __future__ import annotations

from typing import Final

from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.messages import JobDetails
from yarnflow.errors import YarnflowError
from yarnflow.rest.answers import jobs as answers
from yarnflow.rest.answers.cluster import ThreadDump, thread_dump
from yarnflow.rest.answers.logs import JobLogs, job_logs
from yarnflow.rest.answers.operations import TokenBody
from yarnflow.rest.answers.shapes import Empty
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.handlers.vertices import vertex_metrics

_NO_STOP: Final = (
    'The termination mode "stop" has been removed. For an ungraceful shutdown, please use "cancel" instead. '
    'For a graceful shutdown, please use "jobs/:jobId/stop" instead.'
)


def job_ids(cluster: Cluster, call: Call) -> answers.JobIds:
    """All jobs with their status."""
    return answers.job_ids(cluster.view.jobs())


def overview(cluster: Cluster, call: Call) -> answers.JobsOverview:
    """All jobs, newest first."""
    jobs = cluster.view.jobs()
    descriptions: dict[str, JobDescription | None] = {
        d.overview.job_id: description_of(cluster, d.overview.job_id) for d in jobs
    }
    return answers.jobs_overview(jobs, descriptions, cluster.now_ms())


def details(cluster: Cluster, call: Call) -> answers.Job:
    """Everything about one job."""
    job = cluster.job(call.get(p.JOB_ID))
    io = [vertex_metrics(cluster, job, vertex) for vertex in job.vertices]
    return answers.job(job, description_of(cluster, job.overview.job_id), io, cluster.now_ms())


def status(cluster: Cluster, call: Call) -> answers.Status:
    """Status of one job."""
    return answers.Status(cluster.job(call.get(p.JOB_ID)).overview.status.in_flink.name)


def plan(cluster: Cluster, call: Call) -> answers.PlanAnswer:
    """What a job does."""
    job, description = _described(cluster, call)
    return answers.PlanAnswer(answers.plan(job, description))


def configuration(cluster: Cluster, call: Call) -> answers.JobConfiguration:
    """How a job is run."""
    return answers.job_configuration(_described(cluster, call)[1])


def exceptions(cluster: Cluster, call: Call) -> answers.Exceptions:
    """What went wrong, newest first."""
    labels = []
    for text in call.get(p.FAILURE_LABEL_FILTER):
        name, colon, value = text.partition(":")
        if not colon or not name:
            raise RestError(
                400,
                "Bad request, could not parse parameters: Cannot resolve query parameter "
                f'(failureLabelFilter) from value "{text[:80]}"; expected name:value.',
            )
        labels.append((name, value))
    return answers.exceptions(cluster.job(call.get(p.JOB_ID)), call.get(p.MAX_EXCEPTIONS), labels)


def execution_result(cluster: Cluster, call: Call) -> answers.ExecutionResultAnswer:
    """How a job ended."""
    return answers.execution_result(cluster.job(call.get(p.JOB_ID)))


def logs(cluster: Cluster, call: Call) -> JobLogs:
    """Where the logs of a job are."""
    job = cluster.job(call.get(p.JOB_ID))
    used = {execution.task_manager_id for vertex in job.vertices for execution in vertex.executions}
    there = (
        info for info in cluster.view.task_managers() if info.registration.task_manager_id in used
    )
    description = description_of(cluster, job.overview.job_id)
    return job_logs(cluster.info.place, there, None if description is None else description.event_log)


def accumulators(cluster: Cluster, call: Call) -> answers.Accumulators:
    """There are none in yarnflow."""
    cluster.job(call.get(p.JOB_ID))
    return answers.Accumulators(
        job_accumulators=[], user_task_accumulators=[], serialized_user_task_accumulators={}
    )


def resource_requirements(cluster: Cluster, call: Call) -> dict[str, answers.VertexRequirements]:
    """How many subtasks each vertex may have."""
    return answers.resource_requirements(*_described(cluster, call))


def change_resource_requirements(
    cluster: Cluster, call: Call, body: dict[str, answers.VertexRequirements]
) -> Empty:
    """A job keeps the parallelism it was submitted with."""
    job = cluster.job(call.get(p.JOB_ID))
    unknown = sorted(set(body) - {vertex.vertex_id for vertex in job.vertices})
    if unknown:
        raise RestError(400, f"JobVertex {unknown[0][:64]} not found in job {job.overview.job_id}.")
    raise RestError(
        501,
        "The parallelism of a running job cannot be changed: Spark fixes the number of state partitions at "
        "the first start. Stop the job with a savepoint and submit it again with another parallelism.",
    )


def driver_thread_dump(cluster: Cluster, call: Call) -> ThreadDump:
    """What the threads of a job's driver and of its JVM do."""
    head = cluster.job(call.get(p.JOB_ID)).overview
    if head.status.globally_terminal:
        raise RestError(404, f"Job {head.job_id} has ended ({head.status.name}); it has no driver any more.")
    return thread_dump(cluster.view.driver_threads(head.job_id))


def cancel(cluster: Cluster, call: Call) -> Empty:
    """Begin to cancel a job."""
    if call.get(p.MODE) == "stop":
        raise RestError(308, _NO_STOP)
    return begin_to_cancel(cluster, call.get(p.JOB_ID))


def yarn_cancel(cluster: Cluster, call: Call) -> Empty:
    """The same by GET, as YARN's web proxy passes on no PATCH."""
    return begin_to_cancel(cluster, call.get(p.JOB_ID))


def yarn_cancel_with_token(cluster: Cluster, call: Call, body: TokenBody) -> Empty:
    """The same by PUT, with the token in the body."""
    return begin_to_cancel(cluster, call.get(p.JOB_ID))


def begin_to_cancel(cluster: Cluster, job_id: str) -> Empty:
    """Raises RestError when the job has ended otherwise, and what the Dispatcher raises."""
    head = cluster.job(job_id).overview
    if head.status.globally_terminal and head.status.name != "CANCELED":
        raise RestError(
            409,
            "Job cancellation failed because the job has already reached another terminal state "
            f"({head.status.name}).",
        )
    cluster.view.cancel_job(JobId(job_id))
    return Empty()


def _described(cluster: Cluster, call: Call) -> tuple[JobDetails, JobDescription]:
    job = cluster.job(call.get(p.JOB_ID))
    description = cluster.view.job_description(job.overview.job_id)
    if description is None and job.overview.status.globally_terminal:
        raise RestError(
            404,
            f"Job {job.overview.job_id} ended under an earlier leader; its plan and options are not known "
            "any more",
        )
    if description is None:
        raise RestError(
            404,
            f"What job {job.overview.job_id} is to run cannot be read by this leader, so its plan and "
            "options are not known; its exceptions say what can be done",
        )
    return job, description


def description_of(cluster: Cluster, job_id: JobId) -> JobDescription | None:
    """Of a job that may be forgotten at this moment."""
    try:
        return cluster.view.job_description(job_id)
    except YarnflowError:
        return None
