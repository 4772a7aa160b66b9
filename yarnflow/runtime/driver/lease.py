"""A driver's right to write the checkpoint directory of its job.

Taken with the first deployment, so that a spare can have everything else ready; kept until the
session is closed.  When it is lost the process ends at once: whoever has it next must find nobody
writing.  How it is kept is decided by :class:`~yarnflow.core.ha.ports.DriverLease`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from yarnflow.core.ha.ports import DriverLease, DriverLeaseInfo
from yarnflow.core.messages import DriverAssignment
from yarnflow.errors import LeaseLost, YarnflowError

logger = logging.getLogger(__name__)


class LeaseKeeper:
    """The lease of one driver process.

    Parameters
    ----------
    lease : DriverLease
        Not acquired yet.
    assignment : DriverAssignment
        Whose job's.
    pid : int
        Of this process.
    halt : callable
        Ends the process with the error, at once and from any thread.
    """

    def __init__(
        self,
        lease: DriverLease,
        assignment: DriverAssignment,
        pid: int,
        halt: Callable[[YarnflowError], None],
    ) -> None:
        self._lease = lease
        self._assignment = assignment
        self._pid = pid
        self._halt = halt
        self._held = False
        lease.on_lost(self._lost)

    def hold(self, address: str, attempt: int, timeout_ms: int) -> None:
        """Have the lease, and say in it which deployment runs.  Main thread.

        Raises
        ------
        LeaseLost
            Another driver has it, and has not ended in time.
        """
        info = DriverLeaseInfo(
            job_id=self._assignment.job_id,
            driver_id=self._assignment.driver_id,
            address=address,
            host=address.rpartition(":")[0],
            pid=self._pid,
            epoch=self._assignment.fence.epoch,
            attempt=attempt,
        )
        if not self._held:
            self._lease.acquire(info, timeout_ms)
            self._held = True
            return
        try:
            self._lease.update(info)
        except LeaseLost:
            raise
        except YarnflowError as error:
            # the driver tells every leader its attempt itself; the lease is the same with an older one
            logger.warning("The lease does not say that attempt %d runs: %s", attempt, error)

    def check(self) -> None:
        """Return while nobody else can have the lease; raises LeaseLost otherwise.  Any thread."""
        self._lease.check()

    def release(self) -> None:
        """Give it back: nothing of this driver writes any more."""
        try:
            self._lease.release()
        except YarnflowError as error:
            logger.info("The lease was not given back and expires by itself: %s", error)

    def _lost(self, reason: str) -> None:
        self._halt(
            LeaseLost(f"driver {self._assignment.driver_id} may not write the job's state any more: {reason}")
        )
