"""The task that breaks something a job needs, and fails if the job does not recover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context

from yarnflow.airflow.operators.about_job import JobOperator


class YarnflowDrillOperator(JobOperator):
    """Runs a failover drill on a running job.

    Returns the report, see ``yarnflow drill``.

    Parameters
    ----------
    what : str
        ``leader``, ``driver``, ``taskmanager``, ``application``, ``zookeeper`` or ``hdfs`` (templated).
    job_id, job_key : str
        Which job: one of the two (templated).
    recovery_timeout : float, optional
        Seconds that the job may take; default: that of the command.
    yarnflow_conn_id : str
    """

    template_fields: Sequence[str] = (*JobOperator.template_fields, "what")

    def __init__(self, *, what: str, recovery_timeout: float | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.what = what
        self.recovery_timeout = recovery_timeout

    def execute(self, context: Context) -> dict[str, Any]:
        """Run it; returns the report.

        Raises
        ------
        JobNotSuccessful
            No live job is of that name.
        CommandFailed
            The job did not recover, or nothing was broken.
        """
        found = self.find(context)
        return self.hook.drill(self.what, found.job_id, self.recovery_timeout)
