"""Links from a task to its job: the dashboard, YARN's page and the logs."""

from __future__ import annotations

from typing import Any, Final

from airflow.sdk import BaseOperatorLink
from airflow.sdk.execution_time.xcom import XCom


class _JobLink(BaseOperatorLink):
    """A link made of what a task has pushed; empty = it has not, or there is none."""

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The address."""
        return self.made_of(*(_pulled(ti_key, key) for key in ("rest_url", "yarn_page", "job_id")))

    def made_of(self, rest_url: str, yarn_page: str, job_id: str) -> str:
        """The address, from what is known of the job."""
        raise NotImplementedError


class YarnflowDashboardLink(_JobLink):
    """The job's page in the dashboard of its cluster."""

    name = "yarnflow dashboard"

    def made_of(self, rest_url: str, yarn_page: str, job_id: str) -> str:
        return f"{rest_url}/#/job/{job_id}" if rest_url and job_id else ""


class YarnApplicationLink(_JobLink):
    """The page of the job's application on YARN."""

    name = "YARN application"

    def made_of(self, rest_url: str, yarn_page: str, job_id: str) -> str:
        return yarn_page


class YarnflowLogsLink(_JobLink):
    """Where the logs of the job's processes are, in the dashboard."""

    name = "yarnflow logs"

    def made_of(self, rest_url: str, yarn_page: str, job_id: str) -> str:
        return f"{rest_url}/#/job/{job_id}/configuration" if rest_url and job_id else ""


#: of every task that has a job
JOB_LINKS: Final = (YarnflowDashboardLink(), YarnApplicationLink(), YarnflowLogsLink())


def _pulled(ti_key: Any, key: str) -> str:
    value = XCom.get_value(ti_key=ti_key, key=key)
    return value if isinstance(value, str) else ""
