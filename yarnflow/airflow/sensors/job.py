"""Sensors for the state of a job, the age of its last checkpoint and how far it lags behind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

from airflow.sdk import BaseSensorOperator, Context

from yarnflow.airflow.hooks.yarnflow import YarnflowHook


class JobSensor(BaseSensorOperator):  # type: ignore[misc]
    """Base of sensors about one job.

    Parameters
    ----------
    job_id, job_key : str
        Which job: one of the two (templated).
    yarnflow_conn_id : str
    """

    template_fields: ClassVar[Sequence[str]] = ("job_id", "job_key", "yarnflow_conn_id")

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


class YarnflowJobStateSensor(JobSensor):
    """Waits until a job is in one of some states."""

    def __init__(self, *, states: Sequence[str] = ("RUNNING",), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.states = list(states)

    def poke(self, context: Context) -> bool:
        """Whether it is."""
        raise NotImplementedError


class YarnflowCheckpointSensor(JobSensor):
    """Waits until the last checkpoint of a job is not older than a time."""

    def __init__(self, *, max_age: timedelta, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_age = max_age

    def poke(self, context: Context) -> bool:
        """Whether it is not."""
        raise NotImplementedError


class YarnflowLagSensor(JobSensor):
    """Waits until the sources of a job have at most so many records left to read."""

    def __init__(self, *, max_records: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_records = max_records

    def poke(self, context: Context) -> bool:
        """Whether they have."""
        raise NotImplementedError
