"""The task that breaks something a job needs, and fails if the job does not recover."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import Context

from yarnflow.airflow.hooks.errors import CommandFailed
from yarnflow.airflow.operators.about_job import JobOperator
from yarnflow.airflow.tasks import seconds


class YarnflowDrillOperator(JobOperator):
    """Runs a failover drill on a running job.

    Returns the report, see ``yarnflow drill``.

    Parameters
    ----------
    what : str
        ``leader``, ``driver``, ``taskmanager``, ``application``, ``zookeeper`` or ``hdfs`` (templated).
    job_id, job_key : str
        Which job: one of the two (templated).
    recovery_timeout : float or timedelta, optional
        What the job may take, a number is one of seconds; default: that of the command.
    yarnflow_conn_id : str
    """

    template_fields: Sequence[str] = (*JobOperator.template_fields, "what")

    def __init__(
        self, *, what: str, recovery_timeout: float | timedelta | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.what = what
        self.recovery_timeout = recovery_timeout

    def execute(self, context: Context) -> dict[str, Any]:
        """Run it; returns the report, which is in XCom as ``report`` where the job did not recover.

        Raises
        ------
        JobNotSuccessful
            No live job is of that name.
        CommandFailed
            The job did not recover, or nothing was broken.
        """
        given = self.recovery_timeout
        limit_s = None if given is None else seconds("recovery_timeout", given)
        found = self.find(context)
        self.check_goes_on()
        try:
            return self.hook.drill(self.what, found.job_id, limit_s)
        except CommandFailed as error:
            if error.document:
                self.log.error("The report: %s", json.dumps(error.document))
                context["ti"].xcom_push(key="report", value=dict(error.document))
            raise
