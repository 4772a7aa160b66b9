"""Who holds a job's lease, as its JobMaster sees it.

Without high availability nobody else could, and nothing is watched.  What a change means is decided
by :mod:`yarnflow.core.job_run.decider`.  Used in the JobMaster's mailbox only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import JobId
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
    on_changed : callable
        Told who holds the lease whenever that may have changed.
    """

    def __init__(
        self,
        job_id: JobId,
        services: JobMasterServices,
        mailbox: Mailbox,
        on_changed: Callable[[DriverLeaseInfo | None], None],
    ) -> None:
        self._job_id = job_id
        self._effects = services.effects
        self._leases = services.stores.leases if services.stores.highly_available else None
        self._mailbox = mailbox
        self._on_changed = on_changed
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
            self._mailbox.post(lambda: self._on_changed(info))

        def look() -> tuple[DriverLeaseInfo | None, int]:
            leases.unwatch(self._job_id)  # of a try that got half-way
            leases.watch(self._job_id, heard)
            before = self._heard
            return leases.holder(self._job_id), before

        def known(found: tuple[DriverLeaseInfo | None, int]) -> None:
            holder, before = found
            if self._heard != before:  # a change came while it was read: which of them is newer?
                again()
            else:
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
