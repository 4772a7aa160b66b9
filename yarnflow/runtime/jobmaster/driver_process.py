"""The driver of one job: one process at a time, launched, watched, told what to do, ended.

Whether a driver is wanted, and what its loss means, is decided by the JobMaster.  Used in the
JobMaster's mailbox only, except :meth:`DriverLink.is_current`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointOrder
from yarnflow.core.ids import DriverId
from yarnflow.core.messages import DriverAssignment, DriverDeployment, DriverRegistration, JobSubmission
from yarnflow.errors import DriverLost, YarnflowError
from yarnflow.runtime.jobmaster.deploying import SubmissionSender
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox, Work

#: pause before ZooKeeper is asked again
REVOKE_RETRY_MS: Final = 1_000


@dataclass(slots=True)
class _Driver:
    """One driver process."""

    driver_id: DriverId
    #: monotonic
    last_seen_ms: int
    registration: DriverRegistration | None = None
    #: attempt it was told to run; 0 = none yet
    deployed_attempt: int = 0
    #: launched by an earlier master, and so perhaps another supervisor's child
    adopted: bool = False


class DriverLink:
    """The job's current driver.

    Parameters
    ----------
    submission : JobSubmission
        What drivers are assigned to.
    services, settings, mailbox
        The JobMaster's.
    on_lost : callable
        ``(error, driver id)``: it is silent, never registered, or refuses the job.
    hot_spare : bool
        Drivers launched here are to get ready for a job that another one runs.
    """

    def __init__(
        self,
        submission: JobSubmission,
        services: JobMasterServices,
        settings: JobMasterSettings,
        mailbox: Mailbox,
        on_lost: Callable[[YarnflowError, DriverId], None],
        hot_spare: bool = False,
    ) -> None:
        self._submission = submission
        self._services = services
        self._settings = settings
        self._mailbox = mailbox
        self._on_lost = on_lost
        self._sender = SubmissionSender(submission)
        self._launcher = services.hot_spare_launcher if hot_spare else services.launcher
        self._driver: _Driver | None = None
        #: of each driver that must end although its lease may outlive it
        self._leases = services.stores.leases if services.stores.highly_available else None

    @property
    def exists(self) -> bool:
        """There is a driver process, or one is being started."""
        return self._driver is not None

    @property
    def registration(self) -> DriverRegistration | None:
        """What the driver brought; None until it can take executors."""
        return None if self._driver is None else self._driver.registration

    @property
    def driver_id(self) -> DriverId | None:
        """The driver there is, or is being started."""
        return None if self._driver is None else self._driver.driver_id

    @property
    def adopted(self) -> bool:
        """There is a driver, and an earlier master launched it."""
        return self._driver is not None and self._driver.adopted

    @property
    def deployed_attempt(self) -> int:
        """The attempt the driver was told to run; 0 = none yet."""
        return 0 if self._driver is None else self._driver.deployed_attempt

    def is_current(self, driver_id: DriverId) -> bool:
        """Whether this driver is the job's; from any thread."""
        driver = self._driver
        return driver is not None and driver.driver_id == driver_id

    def launch(self, hot_spare_of: DriverId | None = None) -> None:
        """Ask for a driver process and watch it.

        Parameters
        ----------
        hot_spare_of : DriverId, optional
            The driver that it is to get ready for.
        """
        driver = _Driver(DriverId(f"driver-{self._services.new_id()[:12]}"), self._now_ms())
        self._driver = driver
        leader = self._services.leader_info()
        assignment = DriverAssignment(
            job_id=self._submission.job_id,
            driver_id=driver.driver_id,
            job_master_address=leader.address,
            fence=leader.fence,
            checkpoint_dir=self._settings.checkpoint_dir,
            work_dir=self._settings.work_dir,
            job_name=self._submission.name,
            configuration=self._submission.configuration,
            hot_spare_of=hot_spare_of or DriverId(""),
        )
        self._launcher.launch(assignment, self._settings.driver_memory_mib)
        self._watch(driver)

    def adopt(self, driver_id: DriverId) -> None:
        """Take the driver of an earlier master for the job's; it has to register.

        Who waits for that is the JobMaster: its patience with a driver that runs is not that with
        one that starts.
        """
        self._driver = _Driver(driver_id, self._now_ms(), adopted=True)

    def take_over(self, other: DriverLink) -> None:
        """Make the driver of another link the one of this link, which has none."""
        driver = self._driver = other._driver  # in this order: others ask whether it is anybody's
        other._driver = None
        if driver is not None:
            self._watch(driver)

    def register(self, registration: DriverRegistration) -> None:
        """The driver can take executors now.

        Raises
        ------
        DriverLost
            It is not (any longer) the job's driver.
        """
        driver = self._driver
        if driver is None or driver.driver_id != registration.driver_id:
            raise DriverLost(f"driver {registration.driver_id} was replaced; it must end")
        first = driver.registration is None
        driver.registration = registration
        driver.last_seen_ms = self._now_ms()
        driver.deployed_attempt = max(driver.deployed_attempt, registration.attempt)
        if first and driver.adopted:
            self._watch(driver)

    def seen(self) -> None:
        """A sign of life."""
        if self._driver is not None:
            self._driver.last_seen_ms = self._now_ms()

    def deploy(self, deployment: DriverDeployment) -> None:
        """Tell the registered driver to run an attempt."""
        driver = self._driver
        if driver is None or driver.registration is None:
            return
        again, driver.deployed_attempt = driver.deployed_attempt > 0, deployment.attempt
        gateway = self._services.gateways.driver(driver.registration.address)

        def failed(error: YarnflowError) -> None:
            if self._driver is driver and driver.deployed_attempt == deployment.attempt:
                message = f"driver {driver.driver_id} did not take the job: {error}"
                self._on_lost(DriverLost(message), driver.driver_id)

        self._perform(lambda: self._sender.deploy(gateway, deployment, again=again), failed)

    def cancel(self, on_failure: Callable[[YarnflowError], None]) -> None:
        """Tell the driver to stop its queries; it reports the end."""
        if self._driver is not None and self._driver.registration is not None:
            gateway = self._services.gateways.driver(self._driver.registration.address)
            self._perform(gateway.cancel, on_failure)

    def take_checkpoint(
        self, order: CheckpointOrder, on_failure: Callable[[YarnflowError], None]
    ) -> None:
        """Hand an order to the driver; its outcome comes with the reports."""
        if self._driver is None or self._driver.registration is None:
            on_failure(DriverLost("the job has no driver at the moment"))
            return
        gateway = self._services.gateways.driver(self._driver.registration.address)
        self._perform(lambda: gateway.take_checkpoint(order), on_failure)

    def drop(self) -> None:
        """End the driver at once."""
        driver, self._driver = self._driver, None
        if driver is not None:
            self._launcher.kill(driver.driver_id)
            self._revoke(driver.driver_id)

    def dismiss(self) -> None:
        """Let the driver leave in good order; it is killed when it does not."""
        driver, self._driver = self._driver, None
        if driver is None:
            return
        launcher, driver_id = self._launcher, driver.driver_id
        if driver.registration is None:
            launcher.kill(driver_id)
            self._revoke(driver_id)
            return
        gateway = self._services.gateways.driver(driver.registration.address)
        leases, job_id = self._leases, self._submission.job_id

        def shut_down() -> None:
            try:
                gateway.shut_down()
            except YarnflowError:
                launcher.kill(driver_id)
                if leases is not None:
                    leases.revoke(job_id, driver_id)

        self._perform(shut_down, lambda _error: None)
        launcher.kill(driver_id, self._settings.shut_down_grace_ms)

    def gone(self) -> None:
        """The process has ended."""
        self._driver = None

    def _revoke(self, driver_id: DriverId) -> None:
        """Take its lease from a driver, which may be another master's supervisor's, or hang."""
        leases, job_id = self._leases, self._submission.job_id
        if leases is None:
            return

        def failed(_error: YarnflowError) -> None:
            self._mailbox.schedule(REVOKE_RETRY_MS, lambda: self._revoke(driver_id))

        self._perform(lambda: leases.revoke(job_id, driver_id), failed, Work.LEASE)

    def _watch(self, driver: _Driver) -> None:
        """Check for signs of life for as long as the driver is the current one."""
        if self._driver is not driver:
            return
        registered = driver.registration is not None
        limit_ms = (
            self._settings.driver_heartbeat_timeout_ms
            if registered
            else self._settings.driver_registration_timeout_ms
        )
        if self._now_ms() - driver.last_seen_ms > limit_ms:
            what = "has not reported" if registered else "did not register"
            message = f"driver {driver.driver_id} {what} for {limit_ms // 1000} s; see its log"
            self._on_lost(DriverLost(message), driver.driver_id)
            return
        interval_ms = max(self._settings.driver_heartbeat_timeout_ms // 5, 100)
        self._mailbox.schedule(interval_ms, lambda: self._watch(driver))

    def _perform(
        self,
        call: Callable[[], None],
        on_failure: Callable[[YarnflowError], None],
        work: Work = Work.CALL,
    ) -> None:
        self._services.effects.perform(self._mailbox, call, lambda _none: None, on_failure, work)

    def _now_ms(self) -> int:
        return self._services.clock.monotonic_ms()
