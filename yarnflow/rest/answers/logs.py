"""Where the logs of a job are: its processes, and Spark's event log.  Not in Flink."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from yarnflow.core.job.description import EventLog
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.rest.answers.shapes import Kebab


@dataclass(frozen=True, slots=True)
class ProcessPlace:
    """Where a JobManager runs."""

    host: str = ""
    #: YARN's name of its container; empty = it is in none
    container: str = ""
    #: of its log files
    log_directory: str = ""


class ProcessLogs(Kebab):
    """One process; empty = not known, or there is none of it."""

    id: str
    host: str
    #: YARN keeps its logs under this name
    container: str
    #: on that host, as long as the process is there
    directory: str


class SparkEventLog(Kebab):
    """Of one driver of the job."""

    application_id: str
    path: str
    #: page of Spark's history server; empty = historyserver.spark.url is not set
    url: str


class JobLogs(Kebab):
    """``GET /jobs/:jobid/logs``."""

    jobmanager: ProcessLogs
    taskmanagers: list[ProcessLogs]
    #: empty = the job writes none
    spark_event_logs: list[SparkEventLog]


class LogUrl(msgspec.Struct):
    """Where a log is.  Flink: ``LogUrlResponse``."""

    url: str


def job_logs(place: ProcessPlace, task_managers: Iterable[TaskManagerInfo], log: EventLog | None) -> JobLogs:
    """``GET /jobs/:jobid/logs``.

    Parameters
    ----------
    task_managers : iterable of TaskManagerInfo
        Those that the job has been on, and that are still there.
    """
    return JobLogs(
        jobmanager=ProcessLogs("jobmanager", place.host, place.container, place.log_directory),
        taskmanagers=[
            ProcessLogs(
                info.registration.task_manager_id, info.registration.host, info.registration.worker_id, ""
            )
            for info in task_managers
        ],
        spark_event_logs=[
            SparkEventLog(application_id, log.path(application_id), log.url(application_id))
            for application_id in log.application_ids
        ]
        if log is not None
        else [],
    )
