"""Asks the REST interface's own handlers for all that is to be kept of a job.

Flink counterpart: ``JsonResponseHistoryServerArchivist``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.errors import YarnflowError
from yarnflow.rest.answers.applications import applications
from yarnflow.rest.answers.jobs import jobs_overview
from yarnflow.rest.framework.application import encoded
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call, Route
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.handlers.jobs import description_of
from yarnflow.rest.history.contents import (
    METRICS,
    OF_APPLICATIONS,
    OF_JOBS,
    OF_PARTS,
    archived_routes,
    filled,
)
from yarnflow.rest.history.form import (
    APPLICATIONS_OVERVIEW,
    JOBS_OVERVIEW,
    ArchivedAnswer,
    encode,
)

logger: Final = logging.getLogger(__name__)

#: of one archive that is written; a history server must read it, and many of them
MAX_WRITTEN_BYTES: Final = 16 * 1024 * 1024
#: beside the two texts of an answer
_FRAME_BYTES: Final = 24
_Values = dict[str, object]


class Recorder:
    """Makes the archives of one cluster's jobs; any thread.

    Parameters
    ----------
    cluster : Cluster
        What handlers ask.
    most_bytes : int
        Of one archive.
    """

    def __init__(self, cluster: Cluster, most_bytes: int = MAX_WRITTEN_BYTES) -> None:
        self._cluster = cluster
        self._most_bytes = most_bytes

    def job(self, job_id: JobId) -> bytes:
        """The archive of a job.

        Raises
        ------
        YarnflowError
            The job is not known any more.
        """
        cluster = self._cluster
        job = cluster.view.job_details(job_id)
        descriptions = {str(job_id): description_of(cluster, job_id)}
        summary = jobs_overview([job], descriptions, cluster.now_ms())
        answers = [ArchivedAnswer(JOBS_OVERVIEW, encoded(summary).decode())]
        for route in archived_routes(OF_JOBS):
            answers += self._answers(route, {"jobid": job_id})
        size = sum(_size(answer) for answer in answers)
        for route in archived_routes(OF_PARTS):
            part = [answer for values in self._places(route, job) for answer in self._answers(route, values)]
            part_size = sum(_size(answer) for answer in part)
            if size + part_size > self._most_bytes:
                logger.warning(
                    "The archive of job %s has no %s: it would be longer than %d bytes.",
                    job_id, route.path, self._most_bytes,
                )  # fmt: skip
                continue
            size += part_size
            answers += part
        return encode(answers)

    def application(self, job_id: JobId) -> bytes:
        """The archive of the application that a job is.

        Raises
        ------
        YarnflowError
            The job is not known any more.
        """
        job = self._cluster.view.job_details(job_id)
        overview = applications([job], self._cluster.now_ms())
        answers = [ArchivedAnswer(APPLICATIONS_OVERVIEW, encoded(overview).decode())]
        for route in archived_routes(OF_APPLICATIONS):
            answers += self._answers(route, {"applicationid": job_id})
        return encode(answers)

    def _answers(self, route: Route, values: _Values) -> Iterator[ArchivedAnswer]:
        """One, or none where nothing is known."""
        try:
            answer = route.handler(self._cluster, _call(route, values))
            if route.path in METRICS:
                wanted = tuple(metric.id for metric in answer)
                answer = route.handler(self._cluster, _call(route, {**values, p.GET.name: wanted}))
        except (RestError, YarnflowError) as error:
            logger.debug("%s is not archived: %s", filled(route.path, values), error)
            return
        yield ArchivedAnswer(filled(route.path, values), encoded(answer).decode())

    def _places(self, route: Route, job: JobDetails) -> Iterator[_Values]:
        """Values for the parameters of a route's path, for each of a job's parts that it may be about."""
        of_job: Mapping[str, object] = {"jobid": job.overview.job_id}
        if p.CHECKPOINT_ID.name in route.path_names:
            for info in self._cluster.view.job_checkpoints(job.overview.job_id).history:
                yield {**of_job, p.CHECKPOINT_ID.name: info.checkpoint_id}
            return
        for vertex in job.vertices:
            of_vertex = {**of_job, p.VERTEX_ID.name: vertex.vertex_id}
            if p.SUBTASK_INDEX.name not in route.path_names:
                yield of_vertex
                continue
            for execution in vertex.executions:
                yield {
                    **of_vertex,
                    p.SUBTASK_INDEX.name: execution.subtask_index,
                    p.ATTEMPT.name: execution.attempt,
                }


def _call(route: Route, values: Mapping[str, object]) -> Call:
    of_query: dict[str, Any] = {each.name: each.default for each in route.query_parameters}
    return Call({**of_query, **values}, {})


def _size(answer: ArchivedAnswer) -> int:
    """As it will be: quotes in a text are escaped."""
    return len(answer.json) + answer.json.count('"') + len(answer.path) + _FRAME_BYTES
