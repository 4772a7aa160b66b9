"""The task that stops a job with a savepoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from airflow.sdk import Context

from yarnflow.airflow.operators.about_job import JobOperator


class YarnflowStopOperator(JobOperator):
    """Stops a job with a savepoint: the batch that runs is committed, and the job ends FINISHED.

    Returns the savepoint's path, which is in XCom as ``savepoint``, too.

    Parameters
    ----------
    job_id, job_key : str
        Which job: one of the two (templated).
    savepoint_dir : str, optional
        Where the savepoint is made; default: ``execution.checkpointing.savepoint-dir`` (templated).
    drain : bool
        All windows fire before.
    yarnflow_conn_id : str
    """

    template_fields: ClassVar[Sequence[str]] = (*JobOperator.template_fields, "savepoint_dir")

    def __init__(self, *, savepoint_dir: str = "", drain: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.savepoint_dir = savepoint_dir
        self.drain = drain

    def execute(self, context: Context) -> str:
        """Stop the job; returns the savepoint's path.

        Raises
        ------
        JobNotSuccessful
            No live job is of that name.
        CommandFailed
            The savepoint was not taken; the job goes on.
        """
        found = self.find(context)
        path = self.hook.stop(found.job_id, self.savepoint_dir, drain=self.drain)
        context["ti"].xcom_push(key="savepoint", value=path)
        return path
