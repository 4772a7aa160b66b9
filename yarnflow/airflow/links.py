"""Links from a task to its job: the dashboard, YARN's page and the logs."""

from __future__ import annotations

from typing import Any, Final

from airflow.sdk import BaseOperatorLink
from airflow.sdk.execution_time.xcom import XCom


class _JobLink(BaseOperatorLink):
    """A link made of what a task has pushed; empty = it has not, or there is none."""

    #: key of what it is made of, beside the job's id
    key: str

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The address.

        What was not pushed is asked for as seldom as can be: each time Airflow logs an error.
        """
        job_id = _pulled(ti_key, "job_id")
        address = _pulled(ti_key, self.key) if job_id else ""
        return self.made_of(address, job_id) if address else ""

    def made_of(self, address: str, job_id: str) -> str:
        """The address of the link, from what is known of the job."""
        raise NotImplementedError


class YarnflowDashboardLink(_JobLink):
    """The job's page in the dashboard of its cluster."""

    name = "yarnflow dashboard"
    key = "rest_url"

    def made_of(self, address: str, job_id: str) -> str:
        return f"{address}/#/job/{job_id}"


class YarnApplicationLink(_JobLink):
    """The page of the job's application on YARN."""

    name = "YARN application"
    key = "yarn_page"

    def made_of(self, address: str, job_id: str) -> str:
        return address


class YarnflowLogsLink(_JobLink):
    """Where the logs of the job's processes are, in the dashboard."""

    name = "yarnflow logs"
    key = "rest_url"

    def made_of(self, address: str, job_id: str) -> str:
        return f"{address}/#/job/{job_id}/configuration"


#: of every task that has a job
JOB_LINKS: Final = (YarnflowDashboardLink(), YarnApplicationLink(), YarnflowLogsLink())


def _pulled(ti_key: Any, key: str) -> str:
    value = XCom.get_value(ti_key=ti_key, key=key)
    return value if isinstance(value, str) else ""
