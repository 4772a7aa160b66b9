"""Calls to the drivers of one job, and to those who start and end driver processes.

It launches, deploys, cancels, dismisses and ends what it is told to, and posts how that ended; which
driver is wanted, and what its loss means, is decided by :mod:`yarnflow.core.job_run.decider`.  Used in the
JobMaster's mailbox only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointOrder
from yarnflow.core.ids import DriverId
from yarnflow.core.job_run.effects import CancelDriver, Deploy, DismissDriver, KeepDriver, LaunchDriver
from yarnflow.core.job_run.kept_drivers import KeptDriver
from yarnflow.core.messages import DriverAssignment, DriverDeployment, JobSubmission
from yarnflow.errors import RpcUnavailable, YarnflowError
from yarnflow.runtime.jobmaster.deploying import SubmissionSender
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox, Work

#: pause before ZooKeeper is asked again
REVOKE_RETRY_MS: Final = 1_000

OnFailure = Callable[[YarnflowError], None]


class DriverCalls:
    """One job's.

    Parameters
    ----------
    submission : JobSubmission
        What drivers are assigned to.
    services, settings, mailbox
        The JobMaster's.
    """

    def __init__(
        self,
        submission: JobSubmission,
        services: JobMasterServices,
        settings: JobMasterSettings,
        mailbox: Mailbox,
    ) -> None:
        self._submission = submission
        self._services = services
        self._settings = settings
        self._mailbox = mailbox
        self._sender = SubmissionSender(submission)
        #: of each driver that must end although its lease may outlive it
        self._leases = services.stores.leases if services.stores.highly_available else None

    def take_kept(self) -> KeptDriver | None:
        """The driver of another job that has finished, if it fits this one; nobody else gets it then."""
        if not self._settings.keeps_driver:
            return None
        return self._services.driver_keeper.take(
            self._settings.driver_memory_mib, self._submission.configuration
        )

    def launch(self, effect: LaunchDriver) -> None:
        """Ask for a driver process, or for the next job of one that was kept."""
        is_own = effect.hot_spare_of is None
        launcher = self._services.launcher if is_own else self._services.hot_spare_launcher
        leader = self._services.leader_info()
        assignment = DriverAssignment(
            job_id=self._submission.job_id,
            driver_id=effect.driver_id,
            job_master_address=leader.address,
            fence=leader.fence,
            checkpoint_dir=self._settings.checkpoint_dir,
            work_dir=self._settings.work_dir,
            job_name=self._submission.name,
            configuration=self._submission.configuration,
            hot_spare_of=effect.hot_spare_of or DriverId(""),
        )
        launcher.launch(assignment, self._settings.driver_memory_mib)

    def deploy(self, effect: Deploy, on_failure: OnFailure) -> None:
        """Tell a driver to run an attempt."""
        gateways = self._services.gateways
        deployment = DriverDeployment(
            attempt=effect.attempt,
            executor_ids=effect.executor_ids,
            restore=effect.restore,
        )

        def deploy() -> None:
            self._sender.deploy(gateways.driver(effect.address), deployment, again=effect.again)

        self._perform(deploy, on_failure, target=effect.address)

    def cancel(self, effect: CancelDriver, on_failure: OnFailure) -> None:
        """Tell a driver to stop its queries; it reports the end."""
        gateways = self._services.gateways
        self._perform(lambda: gateways.driver(effect.address).cancel(), on_failure, target=effect.address)

    def order(self, address: str, order: CheckpointOrder, on_failure: OnFailure) -> None:
        """Hand an order to a driver; its outcome comes with the reports."""
        gateways = self._services.gateways
        self._perform(lambda: gateways.driver(address).take_checkpoint(order), on_failure, target=address)

    def kill(self, driver_id: DriverId) -> None:
        """End a driver at once, and take its lease: it may be another supervisor's, or hang."""
        self._services.launcher.kill(driver_id)
        self._revoke(driver_id)

    def dismiss(self, effect: DismissDriver) -> None:
        """Let a driver leave in good order; it is killed when it does not."""
        self._shut_down(effect.driver_id, effect.address)
        self._services.launcher.kill(effect.driver_id, self._settings.shut_down_grace_ms)

    def keep(self, effect: KeepDriver) -> None:
        """Let a driver leave the job and wait for another one; it is killed when it does not hear of it."""
        # first: whoever has seen the end of this job may begin the next one already
        self._services.driver_keeper.keep(
            KeptDriver(
                effect.driver_id,
                self._settings.driver_memory_mib,
                self._submission.configuration,
                effect.jobs,
                effect.next_number,
            )
        )
        self._shut_down(effect.driver_id, effect.address, may_have_left=True)

    def _shut_down(self, driver_id: DriverId, address: str, may_have_left: bool = False) -> None:
        launcher, gateways = self._services.launcher, self._services.gateways
        leases, job_id = self._leases, self._submission.job_id

        def shut_down() -> None:
            try:
                gateways.driver(address).shut_down()
            except YarnflowError as error:
                if may_have_left and isinstance(error, RpcUnavailable):
                    return  # by itself, as the job is over; it may have the next one, or its end is told
                launcher.kill(driver_id)
                if leases is not None:
                    leases.revoke(job_id, driver_id)

        # without a target: it has to be tried, and to end in the driver's end, whatever failed before
        self._perform(shut_down, lambda _error: None)

    def _revoke(self, driver_id: DriverId) -> None:
        leases, job_id = self._leases, self._submission.job_id
        if leases is None:
            return

        def failed(_error: YarnflowError) -> None:
            self._mailbox.schedule(REVOKE_RETRY_MS, lambda: self._revoke(driver_id))

        self._perform(lambda: leases.revoke(job_id, driver_id), failed, Work.LEASE)

    def _perform(
        self, call: Callable[[], None], on_failure: OnFailure, work: Work = Work.CALL, target: str = ""
    ) -> None:
        self._services.effects.perform(self._mailbox, call, lambda _none: None, on_failure, work, target)
