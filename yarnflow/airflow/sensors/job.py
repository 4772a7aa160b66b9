"""Sensors for the state of a job, the age of its last checkpoint and how far it is behind.

Each looks a job up by the command once (in the mode ``reschedule`` at each poke), and again when its cluster
does not answer any more; what it waits for is asked by REST.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator, Context

from yarnflow.airflow.hooks import questions
from yarnflow.airflow.hooks.documents import is_gone
from yarnflow.airflow.hooks.errors import (
    CommandFailed,
    JobNotSuccessful,
    Refused,
    Unreachable,
    YarnflowTaskError,
)
from yarnflow.airflow.hooks.rest import RestClient
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.tasks import UI_COLOR, ConnectedTask, check_name, seconds, texts
from yarnflow.core.states import JobStatus


class JobSensor(ConnectedTask, BaseSensorOperator):
    """Base of sensors about one job.

    Parameters
    ----------
    job_id, job_key : str
        Which job: one of the two; of a key that has no live job yet one is waited for (templated).
    yarnflow_conn_id : str
    """

    template_fields: Sequence[str] = ("job_id", "job_key", "yarnflow_conn_id")
    ui_color = UI_COLOR

    def __init__(
        self,
        *,
        job_id: str = "",
        job_key: str = "",
        yarnflow_conn_id: str = YarnflowHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job_id = job_id
        self.job_key = job_key
        self.yarnflow_conn_id = yarnflow_conn_id
        self._found = ""
        #: the address that is known did not answer
        self._looks_again = False

    def poke(self, context: Context) -> bool:
        """Whether what is waited for is so.  A cluster that does not answer is asked again.

        Raises
        ------
        YarnflowTaskError
            Neither of the two names is given, or both.
        JobNotSuccessful
            It cannot come any more.
        """
        check_name(self.task_id, self.job_id, self.job_key)
        try:
            job_id = self._job()
            return job_id is not None and self.is_so(job_id)
        except (CommandFailed, Unreachable, Refused) as error:
            self.log.warning("No answer now: %s", error)
            self._found, self._looks_again = "", True
            if self.job_id and (is_gone(error) or isinstance(error, Unreachable)):
                self._fail_if_over()
            return False

    def _fail_if_over(self) -> None:
        """Raise JobNotSuccessful if the job that is named has ended, or nobody knows it."""
        try:
            found = self.hook.state(self.job_id)
        except (CommandFailed, Unreachable, Refused):
            return
        if found.status.globally_terminal:
            raise self._too_late(found.status)

    def _too_late(self, status: JobStatus) -> JobNotSuccessful:
        return JobNotSuccessful(f"job {self.job_id} ended {status.value}, and does not get there any more")

    def _job(self) -> str | None:
        if self.job_id:
            return self.job_id
        if not self._found:
            found = self.hook.find(job_key=self.job_key)
            if found is None:
                self.log.info("No live job has the key %s.", self.job_key)
                return None
            self._found = found.job_id
        return self._found

    def is_so(self, job_id: str) -> bool:
        """Whether what is waited for is so of a job."""
        raise NotImplementedError

    def lives(self, client: RestClient, job_id: str) -> bool:
        """Whether a job goes on; one that was named by its id fails the sensor if it does not.

        Of a key the next job is waited for.
        """
        return self.goes_on(job_id, client.ask(questions.job(job_id)).status)

    def goes_on(self, job_id: str, status: JobStatus) -> bool:
        """The same of a job whose status is known."""
        if not status.globally_terminal:
            return True
        if self.job_id:
            raise self._too_late(status)
        self.log.info("Job %s ended %s; the next one of its key is waited for.", job_id, status.value)
        self._found = ""
        return False

    def client(self, job_id: str) -> RestClient:
        """Asks the job's cluster."""
        again, self._looks_again = self._looks_again, False
        return RestClient(self.hook.access(job_id, again=again))


class YarnflowJobStateSensor(JobSensor):
    """Waits until a job is in one of some states; one named by its id fails the sensor by another end.

    Parameters
    ----------
    states : sequence of str
        As ``RUNNING`` or ``FINISHED``.
    """

    def __init__(self, *, states: Sequence[str] = ("RUNNING",), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.states = states

    def poke(self, context: Context) -> bool:
        known = [status.value for status in JobStatus]
        for state in texts("states", self.states):
            if state not in known:
                raise YarnflowTaskError(f"states: {state!r} is none of {', '.join(known)}")
        return super().poke(context)

    def is_so(self, job_id: str) -> bool:
        try:
            job = self.hook.state(job_id)
        except JobNotSuccessful as error:
            if self.job_id:
                raise
            self.log.info("%s; the next job of its key is waited for.", error)
            self._found = ""
            return False
        self.log.info("Job %s is %s.", job_id, job.status.value)
        if job.status.value in self.states:
            return True
        self.goes_on(job_id, job.status)
        return False


class YarnflowCheckpointSensor(JobSensor):
    """Waits until the last complete checkpoint of a job is not older than a time, or has all there is.

    Parameters
    ----------
    max_age : timedelta or float
        A number is one of seconds.
    """

    def __init__(self, *, max_age: timedelta | float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_age = max_age
        self._max_age_s = 0.0

    def poke(self, context: Context) -> bool:
        # a wrong one is told before there is a job
        self._max_age_s = seconds("max_age", self.max_age)
        return super().poke(context)

    def is_so(self, job_id: str) -> bool:
        with self.client(job_id) as client:
            if not self.lives(client, job_id):
                return False
            complete_ms = client.ask(questions.complete_until_ms(job_id))
        if complete_ms < 0:
            self.log.info("Job %s has no checkpoint yet, and has not read all that there is.", job_id)
            return False
        age_s = max(0.0, time.time() - complete_ms / 1000)
        self.log.info("The checkpoints of job %s had all that it read %.0f s ago.", job_id, age_s)
        return age_s <= self._max_age_s


class YarnflowLagSensor(JobSensor):
    """Waits until the sources of a job have at most so many records left to read; Kafka's tell how many.

    Parameters
    ----------
    max_records : int
        Templated.
    """

    template_fields: Sequence[str] = (*JobSensor.template_fields, "max_records")

    def __init__(self, *, max_records: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_records = max_records
        self._max_records = 0

    def poke(self, context: Context) -> bool:
        # what another task or a template gives may be a text
        given = re.fullmatch(r"(\d+)(\.0*)?", str(self.max_records).strip())
        if given is None:
            raise YarnflowTaskError(f"max_records={self.max_records!r} is no number of records")
        self._max_records = int(given[1])
        return super().poke(context)

    def is_so(self, job_id: str) -> bool:
        with self.client(job_id) as client:
            if not self.lives(client, job_id):
                return False
            behind = client.ask(questions.lag(job_id))
        if behind is None:
            self.log.info("No source of job %s tells (yet) how much there is to read; Kafka's do.", job_id)
            return False
        self.log.info("Job %s has %d records left to read.", job_id, behind)
        return behind <= self._max_records
