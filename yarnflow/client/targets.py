"""Where jobs can be submitted.

Flink counterpart: ``execution.target`` and the ``PipelineExecutorFactory`` services.  A target
is named in one table and loaded only when it is used.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast

from yarnflow.client.cluster import ClusterConnection
from yarnflow.config.configuration import Configuration
from yarnflow.config.option import AnyOption, Scope
from yarnflow.config.options import ALL_OPTIONS, client, cluster, ha, security, yarn
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import InvalidOption

Connect = Callable[..., ClusterConnection]


@dataclass(frozen=True, slots=True)
class Target:
    """One place for jobs."""

    name: str
    description: str
    #: ``module:function`` taking a Configuration; with ``driver_stdout_fd`` when owned, on YARN with
    #: ``note`` and, if programs run there, ``program_files``
    factory: str
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
        self,
        configuration: Configuration,
        driver_stdout_fd: int | None = None,
        note: Callable[[str], None] = print,
        program_files: Sequence[str] = (),
    ) -> ClusterConnection:
        """Reach the cluster, or begin to start it.

        Parameters
        ----------
        driver_stdout_fd : int, optional
            Where drivers of an owned cluster write what the program prints.
        note : callable
            Told what the user may want to know while he waits.
        program_files : sequence of str
            A program that runs beside the JobManager, and its files.
        """
        connect = cast(Connect, _load(self.factory))
        if self.owned:
            return connect(configuration, driver_stdout_fd=driver_stdout_fd)
        if self.runs_programs:
            return connect(configuration, note, program_files)
        return connect(configuration) if self.mode is None else connect(configuration, note)

    def reach(self, configuration: Configuration, job_id: str = "") -> ClusterConnection:
        """Reach a cluster that runs already, for verbs about its jobs.

        Parameters
        ----------
        job_id : str
            The job the verb is about, where it is one job.

        Raises
        ------
        InvalidOption
            Such clusters end with their command.
        """
        if self.owned:
            raise InvalidOption(
                f"a {self.name} cluster lives only as long as its submit command; name a running one with "
                f"-m host:port or -D{yarn.APPLICATION_ID.key}=…"
            )
        if self.mode is None:
            return self.connect(configuration)
        connect = cast(Connect, _load("yarnflow.client.yarn.targets:connect_running"))
        return connect(configuration, self.mode, _silent, job_id)


def _load(function: str) -> object:
    module, _, name = function.partition(":")
    return getattr(import_module(module), name)


def _silent(text: str) -> None:
    pass


TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for target in (
        Target(
            "local",
            "a cluster of its own on this machine",
            "yarnflow.entrypoint.standalone.local:connect",
            owned=True,
        ),
        Target(
            "remote",
            "a standalone cluster, at jobmanager.rpc.address or found in ZooKeeper",
            "yarnflow.client.remote:connect_remote",
        ),
        Target(
            "yarn-per-job",
            "a cluster of its own on YARN, main() in this command",
            "yarnflow.client.yarn.targets:connect_per_job",
            mode=DeploymentMode.PER_JOB,
        ),
        Target(
            "yarn-application",
            "a cluster of its own on YARN, main() beside its JobManager",
            "yarnflow.client.yarn.targets:connect_application",
            mode=DeploymentMode.APPLICATION,
        ),
        Target(
            "yarn-session",
            "a session that runs on YARN",
            "yarnflow.client.yarn.targets:connect_session",
            mode=DeploymentMode.SESSION,
        ),
    )
}


def find_target(name: str) -> Target:
    """Look a target up.

    Raises
    ------
    InvalidOption
        There is none of that name; the message lists those there are.
    """
    target = TARGETS.get(name)
    if target is None:
        near = difflib.get_close_matches(name, TARGETS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        known = ", ".join(f"{target.name} ({target.description})" for target in TARGETS.values())
        raise InvalidOption(f"unknown target {name!r} ({client.TARGET.key}); {hint}Known: {known}")
    return target


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
