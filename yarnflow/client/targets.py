"""Where jobs can be submitted.

Flink counterpart: ``execution.target`` and the ``PipelineExecutorFactory`` services.  Here are the
targets that a client reaches; whoever can start clusters in its own process adds its own
(:mod:`yarnflow.cli.targets`).  What a target needs is imported only when it is used.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from yarnflow.client.cluster import ClusterConnection
from yarnflow.config.configuration import Configuration
from yarnflow.config.option import AnyOption, Scope
from yarnflow.config.options import ALL_OPTIONS, client, cluster, ha, security
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import InvalidOption


@dataclass(frozen=True, slots=True)
class SubmitSurroundings:
    """What a submit has for the cluster that it reaches or starts; each target takes what it needs."""

    #: where drivers of an owned cluster write what the program prints
    driver_stdout_fd: int | None = None
    #: told what the user may want to know while he waits
    note: Callable[[str], None] = print
    #: a program that runs beside the JobManager, and its files
    program_files: Sequence[str] = ()


Connect = Callable[[Configuration, SubmitSurroundings], ClusterConnection]


@dataclass(frozen=True, slots=True)
class Target:
    """One place for jobs."""

    name: str
    description: str
    #: reaches the cluster, or begins to start it
    factory: Connect
    #: the cluster ends with the command
    owned: bool = False
    #: on YARN: how clusters are deployed there
    mode: DeploymentMode | None = None

    @property
    def deploys(self) -> bool:
        """Each submit makes a cluster of its own, so the cluster's options are taken from it."""
        return self.owned or self.deploys_on_yarn

    @property
    def deploys_on_yarn(self) -> bool:
        """Each submit makes an application on YARN."""
        return self.mode in (DeploymentMode.PER_JOB, DeploymentMode.APPLICATION)

    @property
    def runs_programs(self) -> bool:
        """The program's main runs beside the JobManager and not in the command."""
        return self.mode is DeploymentMode.APPLICATION

    def connect(
        self, configuration: Configuration, surroundings: SubmitSurroundings = SubmitSurroundings()
    ) -> ClusterConnection:
        """Reach the cluster, or begin to start it."""
        return self.factory(configuration, surroundings)

    def reach(self, configuration: Configuration, job_id: str = "") -> ClusterConnection:
        """Reach a cluster that runs already and is not owned, for verbs about its jobs.

        Parameters
        ----------
        job_id : str
            The job the verb is about, where it is one job.
        """
        assert not self.owned, "it would start one"
        if self.mode is None:
            return self.connect(configuration)
        from yarnflow.client.yarn.session_client import connect_running

        return connect_running(configuration, self.mode, _silent, job_id)


def _silent(text: str) -> None:
    pass


def _remote(configuration: Configuration, _: SubmitSurroundings) -> ClusterConnection:
    from yarnflow.client.remote import connect_remote

    return connect_remote(configuration)


def _yarn_per_job(configuration: Configuration, surroundings: SubmitSurroundings) -> ClusterConnection:
    from yarnflow.client.yarn.deployer import connect_per_job

    return connect_per_job(configuration, surroundings.note)


def _yarn_application(configuration: Configuration, surroundings: SubmitSurroundings) -> ClusterConnection:
    from yarnflow.client.yarn.deployer import connect_application

    return connect_application(configuration, surroundings.note, surroundings.program_files)


def _yarn_session(configuration: Configuration, surroundings: SubmitSurroundings) -> ClusterConnection:
    from yarnflow.client.yarn.session_client import connect_session

    return connect_session(configuration, surroundings.note)


REMOTE: Final = Target(
    "remote", "a standalone cluster, at jobmanager.rpc.address or found in ZooKeeper", _remote
)
YARN_PER_JOB: Final = Target(
    "yarn-per-job",
    "a cluster of its own on YARN, main() in this command",
    _yarn_per_job,
    mode=DeploymentMode.PER_JOB,
)
YARN_APPLICATION: Final = Target(
    "yarn-application",
    "a cluster of its own on YARN, main() beside its JobManager",
    _yarn_application,
    mode=DeploymentMode.APPLICATION,
)
YARN_SESSION: Final = Target(
    "yarn-session", "a session that runs on YARN", _yarn_session, mode=DeploymentMode.SESSION
)
CLIENT_TARGETS: Final = (REMOTE, YARN_PER_JOB, YARN_APPLICATION, YARN_SESSION)


def find_target(name: str, targets: Sequence[Target]) -> Target:
    """Look a target up.

    Raises
    ------
    InvalidOption
        There is none of that name; the message lists those there are.
    """
    by_name = {target.name: target for target in targets}
    target = by_name.get(name)
    if target is None:
        near = difflib.get_close_matches(name, by_name, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        known = ", ".join(f"{target.name} ({target.description})" for target in targets)
        raise InvalidOption(f"unknown target {name!r} ({client.TARGET.key}); {hint}Known: {known}")
    return target


#: options that tell where a standalone cluster is, and by which secret
WHERE_STANDALONE: Final[tuple[AnyOption, ...]] = (
    cluster.JOBMANAGER_RPC_ADDRESS,
    cluster.JOBMANAGER_RPC_PORT,
    cluster.CLUSTER_ID,
    security.CLUSTER_SECRET_FILE,
    ha.HA_TYPE,
)


def names_standalone(configuration: Configuration) -> bool:
    """Whether any option, typed or configured, tells where a standalone cluster is."""
    return any(map(configuration.is_set, WHERE_STANDALONE))


#: options of a cluster that its clients read as well
_READ_BY_CLIENTS: Final[frozenset[AnyOption]] = frozenset(
    {
        cluster.CLUSTER_ID,
        cluster.JOBMANAGER_RPC_ADDRESS,
        cluster.JOBMANAGER_RPC_PORT,
        cluster.RPC_ASK_TIMEOUT_MS,
        cluster.RPC_FRAME_SIZE_BYTES,
        cluster.IO_TMP_DIRS,
        cluster.LOG_CONFIG_FILE,
        security.CLUSTER_SECRET_FILE,
        # how the leader is found
        ha.HA_TYPE,
        ha.ZOOKEEPER_QUORUM,
        ha.ZOOKEEPER_ROOT,
        ha.ZOOKEEPER_SESSION_TIMEOUT_MS,
        ha.ZOOKEEPER_CONNECTION_TIMEOUT_MS,
        ha.ZOOKEEPER_RETRY_WAIT_MS,
        ha.ZOOKEEPER_MAX_RETRY_WAIT_MS,
        ha.ZOOKEEPER_ACL,
    }
)


#: what a user types for one command, in whatever form
_TYPED: Final = ("-D", "command line")


def refuse_unread_options(target: Target, configuration: Configuration) -> None:
    """Refuse options that were typed for this submit and that nobody would read.

    Those of ``yarnflow-conf.yaml`` and of the environment are passed over: they are for every command.

    Raises
    ------
    InvalidOption
        The message names the first of them.
    """
    for option in ALL_OPTIONS:
        source = configuration.source_of(option)
        if source not in _TYPED:
            continue
        if option.scope is Scope.DEPLOYMENT and not target.deploys_on_yarn:
            raise InvalidOption(
                f"{option.key} ({source}): an option of an application on YARN, and target {target.name} "
                "makes none; leave it out, or submit with -t yarn-per-job or yarn-application"
            )
        of_task_managers = option.scope is Scope.TASK_MANAGER
        of_cluster = of_task_managers or option.scope is Scope.CLUSTER
        if of_cluster and not target.deploys and option not in _READ_BY_CLIENTS:
            owner = "TaskManagers" if of_task_managers else "JobManager and TaskManagers"
            raise InvalidOption(
                f"{option.key} ({source}): an option of the cluster, which runs already and does not take it "
                f"from a job; set it in yarnflow-conf.yaml of its {owner} and start them again"
            )
