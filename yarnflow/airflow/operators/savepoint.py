"""The task that takes a savepoint of a job, which goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context

from yarnflow.airflow.operators.about_job import JobOperator


class YarnflowSavepointOperator(JobOperator):
    """Takes a savepoint of a running job.

    Returns its path, which is in XCom as ``savepoint``, too.

    Parameters
    ----------
    job_id, job_key : str
        Which job: one of the two (templated).
    savepoint_dir : str, optional
        Where it is made; default: ``execution.checkpointing.savepoint-dir`` (templated).
    yarnflow_conn_id : str
    """

    template_fields: Sequence[str] = (*JobOperator.template_fields, "savepoint_dir")

    def __init__(self, *, savepoint_dir: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.savepoint_dir = savepoint_dir

    def execute(self, context: Context) -> str:
        """Take the savepoint; returns its path.

        Raises
        ------
        JobNotSuccessful
            No live job is of that name.
        CommandFailed
            It was not taken.
        """
        found = self.find(context)
        self.check_goes_on()
        path = self.hook.savepoint(found.job_id, self.savepoint_dir)
        context["ti"].xcom_push(key="savepoint", value=path)
        return path
