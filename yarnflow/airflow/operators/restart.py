"""The task that replaces a running job by a new version of it, and rolls back if that does not commit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from airflow.sdk import Context

from yarnflow.airflow.errors import JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.hooks.settings import option_text
from yarnflow.airflow.hooks.yarnflow import Submit
from yarnflow.airflow.operators.about_job import JobOperator
from yarnflow.airflow.waiting import WaitFor
from yarnflow.airflow.watching import watch


class YarnflowRestartOperator(JobOperator):
    """Stops a job with a savepoint and starts a new version from it; rolls back where that does not commit.

    Parameters
    ----------
    job_key : str
        Of the running job, and of the new one (templated).
    application : str
        The new version's program (templated).
    application_args : sequence of str
        Its arguments (templated).
    rollback_application : str, optional
        The program that is started from the savepoint if the new version does not commit; default: none is,
        and the job stays stopped (templated).
    rollback_args : sequence of str, optional
        Its arguments; default: those of the new version (templated).
    target : str, optional
        As of :class:`yarnflow.airflow.operators.submit.YarnflowSubmitOperator` (templated).
    options : mapping, optional
        ``-D`` (templated).
    parallelism : int, optional
    files : sequence of str
        Shipped with the programs (templated).
    savepoint_dir : str, optional
        Where the savepoint is made (templated).
    commit_timeout : float
        Seconds from the submit of the new version to its first checkpoint.
    yarnflow_conn_id : str
    """

    template_fields: ClassVar[Sequence[str]] = (
        *JobOperator.template_fields,
        *("application", "application_args", "rollback_application", "rollback_args", "target", "options"),
        *("files", "savepoint_dir"),
    )
    template_fields_renderers: ClassVar[Mapping[str, str]] = {"options": "json"}

    def __init__(
        self,
        *,
        application: str,
        application_args: Sequence[str] = (),
        rollback_application: str = "",
        rollback_args: Sequence[str] | None = None,
        target: str = "",
        options: Mapping[str, Any] | None = None,
        parallelism: int | None = None,
        files: Sequence[str] = (),
        savepoint_dir: str = "",
        commit_timeout: float = 600.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.application = application
        self.application_args = list(application_args)
        self.rollback_application = rollback_application
        self.rollback_args = None if rollback_args is None else list(rollback_args)
        self.target = target
        self.options = dict(options or {})
        self.parallelism = parallelism
        self.files = list(files)
        self.savepoint_dir = savepoint_dir
        self.commit_timeout = commit_timeout

    def execute(self, context: Context) -> str:
        """Replace the job; returns the new one's id."""
        raise NotImplementedError
