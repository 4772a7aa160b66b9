"""Drivers that a standby has started for the leader.

The leader is not told by its own supervisor when one of them ends.  Where each driver has a container, the
standby reports the end as the driver's last report; its lease would tell the leader only that it has
ended, and that only if the driver ever had it.  Flink has no counterpart.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.job.failures import ended_by, error_info
from yarnflow.core.messages import DriverAssignment, DriverPhase, DriverReport, LeaderInfo
from yarnflow.core.ports import DriverLauncher, GatewayFactory
from yarnflow.errors import DriverLost, YarnflowError, error_from_exit

logger = logging.getLogger(__name__)

#: driver, exit status, last lines of output
DriverEnd = tuple[DriverId, int, str]
_KEPT: Final = 100


class HostedDrivers:
    """Starts drivers for the leader; any thread.

    Parameters
    ----------
    launcher : DriverLauncher
        This master's own supervisor.
    known_leader : callable
        Who leads as far as this process knows; quick.
    gateways : GatewayFactory
    """

    def __init__(
        self,
        launcher: DriverLauncher,
        known_leader: Callable[[], LeaderInfo | None],
        gateways: GatewayFactory,
    ) -> None:
        self._launcher = launcher
        self._known_leader = known_leader
        self._gateways = gateways
        self._lock = threading.Lock()
        self._jobs: dict[DriverId, JobId] = {}
        self._closed = False
        #: ends that the leader was not told of
        self._untold: deque[DriverEnd] = deque(maxlen=_KEPT)

    def report_ends(self) -> None:
        """Tell the leader from now on when a driver that was started for it has ended."""
        self._launcher.on_exit(self._exited)

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Start a driver of the leader's."""
        with self._lock:  # first: its end may be told at once
            self._jobs[assignment.driver_id] = assignment.job_id
        try:
            self._launcher.launch(assignment, memory_mib)
        except YarnflowError:
            with self._lock:
                self._jobs.pop(assignment.driver_id, None)
            raise

    def runs(self, driver_id: DriverId) -> bool:
        """Whether a driver is this master's."""
        return self._launcher.runs(driver_id)

    def close(self) -> list[DriverEnd]:
        """This master leads, or ends: report nothing any more.

        Returns
        -------
        list of (driver, exit status, last lines of output)
            Ends that no leader was told of.
        """
        with self._lock:
            self._closed = True
            untold, self._untold = list(self._untold), deque()
        return untold

    def _exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        end: DriverEnd = driver_id, exit_status, output_tail
        leader = self._known_leader()
        with self._lock:
            job_id = self._jobs.pop(driver_id, None)
            if self._closed:
                return
            if job_id is None or leader is None:
                self._untold.append(end)
                return
        error = error_from_exit(exit_status, output_tail) or DriverLost(
            f"driver {driver_id} {ended_by(exit_status, output_tail)}"
        )
        report = DriverReport(
            job_id, driver_id, 0, DriverPhase.FAILED, error=error_info(error), driver_unusable=True
        )
        # not in the thread that hears of ends
        threading.Thread(
            target=self._report, args=(leader, report, end), name=f"report-end-{driver_id}", daemon=True
        ).start()

    def _report(self, leader: LeaderInfo, report: DriverReport, end: DriverEnd) -> None:
        try:
            self._gateways.job_master(leader.address, leader.fence).report(report)
        except YarnflowError as error:
            # as a rule its job is over, or has another driver; or the leader is lost, and this master is next
            logger.info("The end of driver %s was not taken: %s", report.driver_id, error)
            with self._lock:
                self._untold.append(end)
