"""What follows when this master's JobManager begins to lead, or does not lead any more.

The leader's address goes to HDFS for clients, its web page to YARN's proxy.  In application mode the
leader runs the user's program unless a leader before has done so: main() counts as done once it has
submitted a job, because that job lives on in the stores, and what main() does after the job cannot be
taken up in the middle.  Flink counterparts: ``DispatcherLeaderProcess``,
``ApplicationDispatcherBootstrap``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.core.messages import JobOverview
from yarnflow.core.yarn import DeploymentMode
from yarnflow.entrypoint.yarn import application_program
from yarnflow.entrypoint.yarn.container import Container
from yarnflow.errors import YarnflowError
from yarnflow.process.channel.messages import MasterRole
from yarnflow.process.clock import SystemClock
from yarnflow.process.dirs import ClusterDirectory
from yarnflow.process.secret import read_secret
from yarnflow.process.supervisor import Supervisor
from yarnflow.staging.deployment import ApplicationDirectory, Connection

logger: Final = logging.getLogger(__name__)

#: address of a JobManager → the jobs it knows, also those that have ended
ListJobs = Callable[[str], Sequence[JobOverview]]


def nobody_led_before(_address: str) -> Sequence[JobOverview]:
    """The jobs that a single master finds: none, as it is the first to lead."""
    return ()


class LeadershipOnYarn:
    """Acts on the roles of one master; called by one thread, apart from the end of the program.

    Parameters
    ----------
    container : Container
    directory : ClusterDirectory
    configuration : Configuration
        The container's.
    supervisor : Supervisor
        Runs the user's program.
    program_ended : callable
        Tells the JobManager that no further job comes: ``(exit status, last lines of output)``.
    list_jobs : callable, optional
        Asks a JobManager for the jobs of a leader before it.
    start_program : callable
        See :func:`~yarnflow.entrypoint.yarn.application_program.start`.
    """

    def __init__(
        self,
        container: Container,
        directory: ClusterDirectory,
        configuration: Configuration,
        supervisor: Supervisor,
        program_ended: Callable[[int, str], None],
        list_jobs: ListJobs | None = None,
        start_program: Callable[..., None] = application_program.start,
    ) -> None:
        self._container = container
        self._deployment = container.deployment
        self._directory = directory
        self._configuration = configuration
        self._supervisor = supervisor
        self._program_ended = program_ended
        self._list_jobs = list_jobs or self._ask
        self._start_program = start_program
        self._web_address = ""
        #: role that was acted on
        self._role: MasterRole | None = None
        #: programs started so far
        self._programs = 0
        #: name of the one that runs for the present leadership
        self._program = ""

    def changed(
        self,
        role: MasterRole,
        files: ApplicationDirectory,
        add_web_page: Callable[[str], object],
    ) -> None:
        """Act on a role; may be called again after an error.

        Raises
        ------
        YarnflowError
            Something could not be done yet.
        """
        if role == self._role:
            return
        self._end_program()
        if role.leads:
            self._publish(role, files)
        if role.web_address and role.web_address != self._web_address:
            add_web_page(f"{role.web_address}/{role.proxy_path}".rstrip("/"))
            self._web_address = role.web_address
        if role.leads and self._deployment.mode is DeploymentMode.APPLICATION:
            self._run_program(role)
        self._role = role

    def _publish(self, role: MasterRole, files: ApplicationDirectory) -> None:
        """Tell clients where the JobManager that leads serves."""
        published = files.read_connection()
        if published is not None and published.epoch > role.epoch:
            logger.warning("The master of application %s leads already.", published.application_id)
            return
        files.publish_connection(
            Connection(
                application_id=self._container.application_id,
                address=role.address,
                web_address=role.web_address,
                leader_id=role.leader_id,
                epoch=role.epoch,
                started_ms=SystemClock().now_ms(),
                highly_available=self._deployment.highly_available,
            )
        )
        logger.info("This master leads (epoch %d); its JobManager serves at %s.", role.epoch, role.address)

    def _run_program(self, role: MasterRole) -> None:
        jobs = self._list_jobs(role.address)
        if jobs:
            logger.info("The program has run before: there are %d jobs.", len(jobs))
            self._program_ended(0, "")
            return
        self._programs += 1
        name = self._program = f"{application_program.PROGRAM}-{self._programs}"

        def ended(exit_status: int, output_tail: str) -> None:
            if self._program != name:
                return  # it was ended, as its JobManager does not lead any more
            # a client that lost its JobManager says nothing about main()
            if exit_status != 0 and not self._answers(role.address):
                logger.info("The program ended with status %d after its JobManager had gone.", exit_status)
                return
            self._program_ended(exit_status, output_tail)

        self._start_program(
            self._container,
            self._directory,
            application_program.program_options(self._configuration, role.address, self._deployment.job_key),
            self._supervisor,
            ended,
            name,
        )

    def _end_program(self) -> None:
        name, self._program = self._program, ""
        if name:
            self._supervisor.end(name)

    def _answers(self, address: str) -> bool:
        try:
            self._list_jobs(address)
        except YarnflowError as error:
            logger.debug("%s: %s", address, error)
            return False
        return True

    def _ask(self, address: str) -> Sequence[JobOverview]:
        from yarnflow.rpc.gateways import ThriftGatewayFactory
        from yarnflow.rpc.member import Member, Role

        secret = read_secret(self._container.secret_file).encode("ascii")
        gateways = ThriftGatewayFactory(
            Member(Role.CLIENT, secret, self._configuration.get(cluster_options.CLUSTER_ID)),
            "supervisor",
            self._configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS),
            self._configuration.get(cluster_options.RPC_FRAME_SIZE_BYTES),
        )
        try:
            return gateways.dispatcher(address).list_jobs()
        finally:
            gateways.close()
