"""A driver's registration with each leader, and its reports.

One thread for each leader registers and then reports.  A leader that was deposed may leave a call
unanswered for a long time; its successor has a thread of its own and need not wait for that.  What
a leader says that is none any more does not count.  Flink counterpart: ``RegisteredRpcConnection``
and heartbeats.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from yarnflow.core.messages import DriverRegistration, DriverReport
from yarnflow.core.ports import Clock, JobMasterGateway
from yarnflow.errors import (
    AuthenticationFailed,
    DriverLost,
    JobNotFound,
    LeadershipLost,
    StaleEpoch,
    SubmissionMissing,
    YarnflowError,
)
from yarnflow.runtime.driver.services import DriverSettings
from yarnflow.runtime.leader_follower import FollowedLeader, LeaderFollower
from yarnflow.runtime.registration import jittered

logger = logging.getLogger(__name__)

#: the JobMaster has no use for this driver any more
_DISMISSED: Final = (DriverLost, JobNotFound, AuthenticationFailed)
#: whoever answers does not lead, or not yet as far as it knows
_WRONG_LEADER: Final = (StaleEpoch, LeadershipLost)


class Reporter:
    """Sends registrations and reports of one driver until told to stop.

    Parameters
    ----------
    leaders : LeaderFollower
        Whom to send to.
    registration, report : callable
        Make what is sent; called just before, from a thread of the reporter's.  A registration is told
        whether the job itself is to be sent along.
    on_dismissed : callable
        The driver is to leave.
    settings : DriverSettings
    clock : Clock
    """

    def __init__(
        self,
        leaders: LeaderFollower[JobMasterGateway],
        registration: Callable[[bool], DriverRegistration],
        report: Callable[[], DriverReport],
        on_dismissed: Callable[[], None],
        settings: DriverSettings,
        clock: Clock,
    ) -> None:
        self._leaders = leaders
        self._registration = registration
        self._report = report
        self._on_dismissed = on_dismissed
        self._settings = settings
        self._clock = clock
        self._changed = threading.Condition()
        # guarded by _changed
        self._served: FollowedLeader[JobMasterGateway] | None = None
        self._due = False
        self._stopped = False

    def start(self) -> None:
        """Register with the leader and with each that comes after it."""
        self._leaders.follow(self._leader_changed)
        self._leader_changed()

    def due(self) -> None:
        """A report must not wait until its interval is over.  Any thread; only leaves a note."""
        with self._changed:
            self._due = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Send nothing more; a call under way is not waited for."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def send_once(self) -> None:
        """One report to the leader known first, without registration; its fate is only logged."""
        try:
            self._leaders.leader().gateway.report(self._report())
        except YarnflowError as error:
            logger.warning("The report did not reach the JobMaster: %s", error)

    def _leader_changed(self) -> None:
        with self._changed:
            leader = self._leaders.leader()
            if leader is self._served or self._stopped:
                return
            self._served = leader
            self._due = True
            self._changed.notify_all()
        threading.Thread(
            target=self._serve, args=(leader,), name=f"driver-reports-{leader.fence.epoch}", daemon=True
        ).start()

    def _serve(self, leader: FollowedLeader[JobMasterGateway]) -> None:
        since_ms = self._clock.monotonic_ms()
        registered = False
        with_job = False
        failures = 0
        while self._await_due(leader):
            try:
                if not registered:
                    leader.gateway.register_driver(self._registration(with_job))
                    registered = True
                    logger.info("Registered with the JobMaster (epoch %d).", leader.fence.epoch)
                leader.gateway.report(self._report())
                failures = 0
            except YarnflowError as error:
                if not self._is_served(leader):
                    return
                if isinstance(error, SubmissionMissing) and not with_job:
                    logger.warning("The new leader asks for the job: %s", error)
                    registered, with_job = False, True
                    self.due()
                    continue
                if self._is_dismissal(error, since_ms):
                    logger.info("This driver is not wanted any more: %s", error)
                    self._on_dismissed()
                    return
                failures += 1
                self._log_failure(error, failures)
                if isinstance(error, _WRONG_LEADER):
                    self._leaders.look_again()
            if not self._pause(leader, failures):
                return

    def _await_due(self, leader: FollowedLeader[JobMasterGateway]) -> bool:
        """Block until a report is due; False = this leader gets no more."""
        with self._changed:
            interval_ms = jittered(self._settings.report_interval_ms)
            self._changed.wait_for(lambda: self._due or not self._is_served(leader), interval_ms / 1000)
            if not self._is_served(leader):
                return False
            self._due = False
            return True

    def _pause(self, leader: FollowedLeader[JobMasterGateway], failures: int) -> bool:
        """Not too many reports, and fewer to a leader that does not answer; False = no more at all."""
        if failures:
            pause_ms = self._settings.registration_backoff.delay_ms(failures)
        else:
            pause_ms = self._settings.report_min_pause_ms
        with self._changed:
            if self._changed.wait_for(lambda: not self._is_served(leader), pause_ms / 1000):
                return False
            if failures:
                self._due = True
            return True

    def _is_served(self, leader: FollowedLeader[JobMasterGateway]) -> bool:
        return self._served is leader and not self._stopped

    def _is_dismissal(self, error: YarnflowError, since_ms: int) -> bool:
        if self._leaders.may_change:
            if isinstance(error, AuthenticationFailed):
                # another process that has got the port of a master that died
                return False
            if isinstance(error, JobNotFound):
                # one that has just been elected may not have read its jobs yet
                return self._clock.monotonic_ms() - since_ms > self._settings.recovery_timeout_ms
        return isinstance(error, _DISMISSED)

    def _log_failure(self, error: YarnflowError, failures: int) -> None:
        # a leader may be gone for long: the first failures and then fewer and fewer are worth a line
        if failures <= 3 or failures & (failures - 1) == 0:
            logger.warning("The JobMaster was not reached (%d times now), trying on: %s", failures, error)
