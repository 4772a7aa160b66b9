"""Sensors for the state of a job, the age of its last checkpoint and how far it is behind.

Each looks a job up by the command once, and again when its cluster does not answer any more; what it waits
for is asked by REST.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator, Context

from yarnflow.airflow.hooks import rest
from yarnflow.airflow.hooks.errors import CommandFailed, JobNotSuccessful, Refused, Unreachable
from yarnflow.airflow.hooks.rest import RestClient
from yarnflow.airflow.hooks.tasks import UI_COLOR, ConnectedTask, check_name
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
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
            return False

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

    def client(self, job_id: str) -> RestClient:
        """Asks the job's cluster."""
        again, self._looks_again = self._looks_again, False
        return RestClient(self.hook.access(job_id, again=again))


class YarnflowJobStateSensor(JobSensor):
    """Waits until a job is in one of some states; fails when it has ended in another one.

    Parameters
    ----------
    states : sequence of str
        As ``RUNNING`` or ``FINISHED``.
    """

    def __init__(self, *, states: Sequence[str] = ("RUNNING",), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.states = list(states)

    def is_so(self, job_id: str) -> bool:
        wanted = {JobStatus(state) for state in self.states}
        job = self.hook.state(job_id)
        self.log.info("Job %s is %s.", job_id, job.status.value)
        if job.status in wanted:
            return True
        if job.status.globally_terminal:
            raise JobNotSuccessful(
                f"job {job_id} ended {job.status.value}, and will not be {' or '.join(self.states)}"
            )
        return False


class YarnflowCheckpointSensor(JobSensor):
    """Waits until the last complete checkpoint of a job is not older than a time.

    Parameters
    ----------
    max_age : timedelta
    """

    def __init__(self, *, max_age: timedelta, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_age = max_age

    def is_so(self, job_id: str) -> bool:
        with self.client(job_id) as client:
            found = client.ask(rest.checkpoints(job_id))
        newest = found[0] if found else None
        if newest is None:
            self.log.info("Job %s has no checkpoint yet.", job_id)
            return False
        age_s = max(0.0, time.time() - newest.completed_ms / 1000)
        self.log.info("Checkpoint %d of job %s is %.0f s old.", newest.checkpoint_id, job_id, age_s)
        return age_s <= self.max_age.total_seconds()


class YarnflowLagSensor(JobSensor):
    """Waits until the sources of a job have at most so many records left to read; Kafka's tell how many.

    Parameters
    ----------
    max_records : int
    """

    def __init__(self, *, max_records: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_records = max_records

    def is_so(self, job_id: str) -> bool:
        with self.client(job_id) as client:
            behind = client.ask(rest.lag(job_id))
        if behind is None:
            self.log.info("No source of job %s tells (yet) how much there is to read; Kafka's do.", job_id)
            return False
        self.log.info("Job %s has %d records left to read.", job_id, behind)
        return behind <= self.max_records
