"""Who holds a job's lease, as its JobMaster sees it.

Without high availability nobody else could, and nothing is watched.  What the loss of a lease
means is decided by the JobMaster.  Used in its mailbox only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, JobId
from yarnflow.errors import YarnflowError
from yarnflow.runtime.jobmaster.services import JobMasterServices
from yarnflow.runtime.mailbox import Mailbox, Work

logger = logging.getLogger(__name__)

#: pause before ZooKeeper is asked again
_RETRY_MS: Final = 1_000


class LeaseWatch:
    """Watches one job's lease.

    Parameters
    ----------
    job_id : JobId
        Whose.
    services, mailbox
        The JobMaster's.
    on_lost : callable
        Told which driver does not hold the lease any more.
    """

    def __init__(
        self,
        job_id: JobId,
        services: JobMasterServices,
        mailbox: Mailbox,
        on_lost: Callable[[DriverId], None],
    ) -> None:
        self._job_id = job_id
        self._effects = services.effects
        self._leases = services.stores.leases if services.stores.highly_available else None
        self._mailbox = mailbox
        self._on_lost = on_lost
        self._holder: DriverLeaseInfo | None = None
        #: changes heard of, in the thread of ZooKeeper's listeners
        self._heard = 0
        self._ended = False

    def begin(self, on_known: Callable[[DriverLeaseInfo | None], None]) -> None:
        """Watch from now on; ``on_known`` is told once who holds the lease at the beginning."""
        leases = self._leases
        if leases is None:
            on_known(None)
            return

        def heard(info: DriverLeaseInfo | None) -> None:
            self._heard += 1
            self._mailbox.post(lambda: self._changed(info))

        def look() -> tuple[DriverLeaseInfo | None, int]:
            leases.unwatch(self._job_id)  # of a try that got half-way
            leases.watch(self._job_id, heard)
            before = self._heard
            return leases.holder(self._job_id), before

        def known(found: tuple[DriverLeaseInfo | None, int]) -> None:
            holder, before = found
            if self._heard != before:  # a change came while it was read: which of them is newer?
                again()
                return
            self._changed(holder)
            on_known(holder)

        def failed(error: YarnflowError) -> None:
            logger.warning("Cannot look for the driver of job %s, trying on: %s", self._job_id, error)
            self._mailbox.schedule(_RETRY_MS, again)

        def again() -> None:
            if not self._ended:
                self.begin(on_known)

        self._effects.perform(self._mailbox, look, known, failed, Work.LEASE)

    def end(self) -> None:
        """Watch no more."""
        leases, self._ended = self._leases, True
        if leases is not None:
            self._effects.perform(
                self._mailbox,
                lambda: leases.unwatch(self._job_id),
                lambda _none: None,
                lambda _error: None,
                Work.LEASE,
            )

    def is_held_by(self, driver_id: DriverId) -> bool:
        """Whether this driver has the lease, as far as is known."""
        return self._holder is not None and self._holder.driver_id == driver_id

    def _changed(self, info: DriverLeaseInfo | None) -> None:
        before, self._holder = self._holder, info
        if before is not None and not self._ended and not self.is_held_by(before.driver_id):
            self._on_lost(before.driver_id)
