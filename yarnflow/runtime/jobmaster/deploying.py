"""Sends a job to drivers: its bytes once to each driver process, then only their digest.

Never decides when a driver is deployed, or which one.  A driver that lacks what a deployment names
says so and gets it in full: one that a lost call never reached, or whose master was followed by
another before the job arrived.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property

from yarnflow.core.messages import DriverDeployment, JobSubmission
from yarnflow.core.ports import DriverGateway
from yarnflow.core.submissions import submission_digest
from yarnflow.errors import SubmissionMissing

logger = logging.getLogger(__name__)


class SubmissionSender:
    """Deploys one job.  Thread-safe; blocks as long as the calls take.

    Parameters
    ----------
    submission : JobSubmission
        The job's; its digest is made when it is first needed.
    """

    def __init__(self, submission: JobSubmission) -> None:
        self._submission = submission

    @cached_property
    def _digest(self) -> str:
        return submission_digest(self._submission)

    def deploy(self, gateway: DriverGateway, deployment: DriverDeployment, *, again: bool) -> None:
        """Tell a driver to run an attempt; ``again``: it was deployed before, and so has the job.

        Raises
        ------
        YarnflowError
            The driver did not take the job.
        """
        named = replace(deployment, submission=None, submission_digest=self._digest)
        if again:
            try:
                gateway.deploy(named)
                return
            except SubmissionMissing as error:
                logger.info("Sending the job: %s", error)
        gateway.deploy(replace(named, submission=self._submission))
