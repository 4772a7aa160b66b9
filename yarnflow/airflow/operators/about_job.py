"""What tasks about a job that runs already share: how it is named, and found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator, BaseOperatorLink, Context

from yarnflow.airflow.hooks.documents import FoundJob
from yarnflow.airflow.hooks.errors import JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.links import JOB_LINKS
from yarnflow.airflow.tasks import UI_COLOR, ConnectedTask, check_name


class JobOperator(ConnectedTask, BaseOperator):
    """Base of tasks about one job.

    Parameters
    ----------
    job_id, job_key : str
        Which job: one of the two (templated).
    yarnflow_conn_id : str
    """

    template_fields: Sequence[str] = ("job_id", "job_key", "yarnflow_conn_id")
    operator_extra_links: Sequence[BaseOperatorLink] = JOB_LINKS
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
        self._killed = False

    def find(self, context: Context) -> FoundJob:
        """The live job that is meant; its id and addresses are in XCom afterwards.

        Raises
        ------
        YarnflowTaskError
            Neither of the two names is given, or both.
        JobNotSuccessful
            There is no such job.
        """
        return self.live(context, self.find_any())

    def live(self, context: Context, found: FoundJob | None) -> FoundJob:
        """A job that was looked for, as :meth:`find` returns it.

        Raises
        ------
        JobNotSuccessful
            It was not found.
        """
        if found is None:
            raise JobNotSuccessful(f"no live job {self.named()} on the clusters of this connection")
        push_job(context, self.hook, found.job_id, found.application_id, found.web_address)
        return found

    def find_any(self) -> FoundJob | None:
        """The same, or None."""
        check_name(self.task_id, self.job_id, self.job_key)
        return self.hook.find(job_id=self.job_id, job_key=self.job_key)

    def named(self) -> str:
        """The job as it was named."""
        return self.job_id or f"of the key {self.job_key}"

    def check_goes_on(self) -> None:
        """Raise YarnflowTaskError when the task was ended: Airflow kills this process a little later."""
        if self._killed:
            raise YarnflowTaskError(f"task {self.task_id} was ended; the job goes on")

    def on_kill(self) -> None:
        """The command that runs ends; what the cluster has begun goes on."""
        self._killed = True
        if self._hook is not None:
            self._hook.terminate()


def push_job(
    context: Context, hook: YarnflowHook, job_id: str, application_id: str, web_address: str
) -> None:
    """Leave what is known of a job in XCom, from where links are made."""
    ti = context["ti"]
    for key, value in (
        ("job_id", job_id),
        ("application_id", application_id),
        # of what is missing Airflow would tell as an error, when it makes links
        ("yarn_page", hook.yarn_page(application_id) if application_id else ""),
        ("rest_url", web_address),
    ):
        ti.xcom_push(key=key, value=value)
