"""The driver a master finds when it takes over a job, and the lease of whichever driver there is.

A driver whose lease is held lives, and is waited for; one whose lease vanished is gone, whatever
else may be known of it.  What follows is decided by the job's scheduler.  Used in the JobMaster's
mailbox only, except :meth:`Adoption.check_known`.

Flink has no counterpart: there a new JobMaster starts every job again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId
from yarnflow.core.messages import ErrorInfo, JobSubmission
from yarnflow.errors import LeadershipLost
from yarnflow.runtime.jobmaster.driver_process import DriverLink
from yarnflow.runtime.jobmaster.lease import LeaseWatch
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox

logger = logging.getLogger(__name__)

#: a driver whose lease vanished is as a rule a process that ended, whose own end says more
_LEASE_GRACE_MS: Final = 1_000


class Adoption:
    """Whether the driver of the master before lives, and whether the present one does.

    Parameters
    ----------
    submission, settings, services, mailbox, driver
        The JobMaster's.
    recovered : bool
        There was a master before.
    on_gone : callable
        ``(driver id, reason)``: the job's driver lives no more.
    """

    def __init__(
        self,
        submission: JobSubmission,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        driver: DriverLink,
        recovered: bool,
        on_gone: Callable[[DriverId, str], None],
    ) -> None:
        self._name = submission.name
        self._settings = settings
        self._services = services
        self._mailbox = mailbox
        self._driver = driver
        self._on_gone = on_gone
        self._lease = LeaseWatch(submission.job_id, services, mailbox, self._lease_lost)
        self._ended = False
        #: whose driver runs the job is not known yet
        self.pending = recovered

    def check_known(self) -> None:
        """Raise LeadershipLost while nobody can say whether a driver is the job's; any thread."""
        if self.pending:
            raise LeadershipLost(f"this master does not know yet who runs job {self._name}; ask again")

    def watch(self) -> None:
        """There was no master before; watch the lease of the drivers to come."""
        self._lease.begin(lambda _nobody: None)

    def begin(self, on_known: Callable[[DriverLeaseInfo | None], None], on_over: Callable[[], None]) -> None:
        """Look for the driver, and adopt it.

        Parameters
        ----------
        on_known : callable
            Told once whose lease it is; that driver has been adopted, and has to register.
        on_over : callable
            Called when ``high-availability.adoption-timeout`` is over: what was not offered to this
            master by then will not be.
        """

        def known(holder: DriverLeaseInfo | None) -> None:
            if holder is not None:
                logger.info("Job %s: driver %s lives, waiting for it.", self._name, holder.driver_id)
                self._driver.adopt(holder.driver_id)
                self._mailbox.schedule(
                    self._settings.adoption_timeout_ms, lambda: self._over(holder.driver_id, on_over)
                )
            self.pending = False
            on_known(holder)

        self._lease.begin(known)

    def story(self) -> ErrorInfo:
        """What a successful one looks like in the job's history."""
        epoch = self._services.leader_info().fence.epoch
        message = f"the master before was lost; the job was adopted by leader epoch {epoch} without a restart"
        logger.info("Job %s: %s.", self._name, message)
        return ErrorInfo(LeadershipLost.code, message)

    def end(self) -> None:
        """The job is over."""
        self._ended = True
        self._lease.end()

    def _over(self, driver_id: DriverId, on_over: Callable[[], None]) -> None:
        if self._ended:
            return
        if self._driver.is_current(driver_id) and self._driver.registration is None:
            timeout_s = self._settings.adoption_timeout_ms // 1000
            self._on_gone(
                driver_id, f"driver {driver_id} did not report to the new leader within {timeout_s} s"
            )
        on_over()

    def _lease_lost(self, driver_id: DriverId) -> None:
        if self._ended or not self._driver.is_current(driver_id):
            return
        if self._driver.adopted:  # another master's supervisor knows how it ended
            self._without_lease(driver_id)
        else:
            self._mailbox.schedule(_LEASE_GRACE_MS, lambda: self._without_lease(driver_id))

    def _without_lease(self, driver_id: DriverId) -> None:
        if not self._ended and self._driver.is_current(driver_id) and not self._lease.is_held_by(driver_id):
            self._on_gone(driver_id, f"driver {driver_id} has lost its lease in ZooKeeper")
