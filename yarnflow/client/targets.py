"""Where jobs can be submitted.

Flink counterpart: ``execution.target`` and the ``PipelineExecutorFactory`` services.  A target
is named in one table and loaded only when it is used.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast

from yarnflow.client.cluster import ClusterConnection
from yarnflow.config.configuration import Configuration
from yarnflow.config.option import AnyOption, Scope
from yarnflow.config.options import ALL_OPTIONS, client, cluster, security
from yarnflow.core.ports import DispatcherGateway, GatewayFactory
from yarnflow.errors import ConfigError, InvalidOption, RpcUnavailable, YarnflowError

Connect = Callable[..., ClusterConnection]


@dataclass(frozen=True, slots=True)
class Target:
    """One place for jobs."""

    name: str
    description: str
    #: ``module:function`` taking a Configuration (and ``driver_stdout_fd`` when owned)
    factory: str
    #: the cluster ends with the command
    owned: bool = False

    def connect(self, configuration: Configuration, driver_stdout_fd: int | None = None) -> ClusterConnection:
        """Reach the cluster, or begin to start it."""
        module, _, function = self.factory.partition(":")
        connect = cast(Connect, getattr(import_module(module), function))
        if self.owned:
            return connect(configuration, driver_stdout_fd=driver_stdout_fd)
        return connect(configuration)


TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for target in (
        Target(
            "local",
            "a cluster of its own on this machine",
            "yarnflow.entrypoint.local:connect",
            owned=True,
        ),
        Target(
            "remote",
            "the standalone cluster at jobmanager.rpc.address",
            "yarnflow.client.targets:connect_remote",
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


class RemoteCluster:
    """A standalone cluster that somebody else runs.

    Parameters
    ----------
    address : str
        ``host:port`` of the JobManager.
    factory : GatewayFactory
        Opens connections.
    """

    def __init__(self, address: str, factory: GatewayFactory) -> None:
        self._address = address
        self._factory = factory
        self._gateway: DispatcherGateway | None = None

    @property
    def owned(self) -> bool:
        """It stays when the command ends."""
        return False

    def provide(self, required_slots: int) -> None:
        """Its TaskManagers are started by whoever runs it."""

    def gateway(self) -> DispatcherGateway:
        """The Dispatcher of the leader there."""
        if self._gateway is None:
            gateway = self._factory.dispatcher(self._address)
            try:
                gateway.leader()
            except RpcUnavailable as error:
                raise RpcUnavailable(
                    f"no JobManager answers at {self._address}: {error}; "
                    "start one with `yarnflow jobmanager`, or name another with -m host:port"
                ) from error
            self._gateway = gateway
        return self._gateway

    def failure(self) -> YarnflowError | None:
        """Only calls can tell."""
        return None

    def stop(self, *, forced: bool, failed: bool) -> str:
        """Close the connections."""
        self._factory.close()
        return ""


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
    }
)


def refuse_cluster_options(configuration: Configuration) -> None:
    """Refuse ``-D`` options that only a cluster's own processes read, for one that runs already.

    Those of ``yarnflow-conf.yaml`` are passed over: the file is for everybody.

    Raises
    ------
    InvalidOption
        The message names the first of them.
    """
    for option in ALL_OPTIONS:
        if (
            option.scope in (Scope.CLUSTER, Scope.TASK_MANAGER)
            and option not in _READ_BY_CLIENTS
            and configuration.source_of(option) == "-D"
        ):
            owner = "TaskManagers" if option.scope is Scope.TASK_MANAGER else "JobManager and TaskManagers"
            raise InvalidOption(
                f"-D {option.key}: an option of the cluster, which runs already and does not take it from a "
                f"job; set it in yarnflow-conf.yaml of its {owner} and start them again"
            )


def connect_remote(configuration: Configuration) -> RemoteCluster:
    """Factory of the ``remote`` target.

    Raises
    ------
    ConfigError
        The port is not one port, or the secret cannot be read.
    """
    port = configuration.get(cluster.JOBMANAGER_RPC_PORT)
    if not port.isdigit() or port == "0":
        raise InvalidOption(
            f"{cluster.JOBMANAGER_RPC_PORT.key} is {port!r}: a client needs the one port the JobManager "
            "serves at; name it with -m host:port"
        )
    from yarnflow.process.dirs import standalone_secret_file
    from yarnflow.process.secret import read_secret
    from yarnflow.rpc.gateways import ThriftGatewayFactory

    path = standalone_secret_file(configuration)
    if not path.exists() and not configuration.is_set(security.CLUSTER_SECRET_FILE):
        raise ConfigError(
            f"there is no standalone cluster of this user on this machine (no {path}); start one with "
            f"`yarnflow jobmanager`, or copy the secret of another one here and set "
            f"{security.CLUSTER_SECRET_FILE.key}"
        )
    secret = read_secret(path)
    factory = ThriftGatewayFactory(
        secret.encode("ascii"),
        "client",
        configuration.get(cluster.RPC_ASK_TIMEOUT_MS),
        configuration.get(cluster.RPC_FRAME_SIZE_BYTES),
    )
    return RemoteCluster(f"{configuration.get(cluster.JOBMANAGER_RPC_ADDRESS)}:{port}", factory)
