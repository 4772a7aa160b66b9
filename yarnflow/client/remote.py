"""The ``remote`` target: a standalone cluster that somebody else runs.

Decides how its leader is found: the masters that ``-m`` names are asked; else ZooKeeper, where the
cluster uses it; else there is one master at ``jobmanager.rpc.address``.  Flink counterpart:
``StandaloneClusterDescriptor``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from yarnflow.client.leader import LeaderFollowingDispatcher
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, cluster, security
from yarnflow.core.ha.ports import LeaderRetrieval
from yarnflow.core.ids import JobId
from yarnflow.core.messages import Fence, JobDetails, JobSubmission, JobSubmitted
from yarnflow.core.ports import DispatcherGateway, GatewayFactory
from yarnflow.errors import ConfigError, InvalidOption, RpcUnavailable, YarnflowError
from yarnflow.ha.settings import is_highly_available

#: where options come from that somebody typed for this command
_TYPED: Final = ("-D", "command line")


class RemoteCluster:
    """A standalone cluster.

    Parameters
    ----------
    addresses : tuple of str
        ``host:port`` of its masters, as far as they are known.
    factory : GatewayFactory
        Opens connections.
    retrieval : LeaderRetrieval, optional
        Knows who leads; closed with the cluster.
    follows : bool
        There are standby masters: the leader is looked for.
    timeout_ms : int
        How long it is (``client.timeout``).
    on_stop : callable
        Called when the cluster is let go of.
    """

    def __init__(
        self,
        addresses: tuple[str, ...],
        factory: GatewayFactory,
        retrieval: LeaderRetrieval | None = None,
        *,
        follows: bool = False,
        timeout_ms: int = 60_000,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._addresses = addresses
        self._factory = factory
        self._retrieval = retrieval
        self._follows = follows or len(addresses) != 1
        self._timeout_ms = timeout_ms
        self._on_stop = on_stop
        self._gateway: DispatcherGateway | None = None
        self._following: LeaderFollowingDispatcher | None = None

    @property
    def owned(self) -> bool:
        """It stays when the command ends."""
        return False

    @property
    def named_by(self) -> str:
        """Its masters' addresses; other commands find it in ZooKeeper as this one did."""
        return f"-m {','.join(self._addresses)}" if self._addresses else ""

    def submit(self, submission: JobSubmission, required_slots: int) -> JobSubmitted:
        """Hand a job over; the cluster's TaskManagers are started by whoever runs it."""
        return self.gateway().submit_job(submission)

    @property
    def programs(self) -> None:
        pass

    def cluster_of(self, job_id: JobId) -> RemoteCluster:
        """It runs all of its jobs itself."""
        return self

    def gateway(self) -> DispatcherGateway:
        """The Dispatcher of the leader, whoever that is at the time of a call."""
        if self._gateway is None:
            self._gateway = self._connect()
        return self._gateway

    def present_gateway(self) -> DispatcherGateway | None:
        """That of the leader, or of the only master."""
        gateway = self.gateway()
        return gateway if self._following is None else self._following.present

    def followed(self) -> Fence | None:
        """The leader, where there are standbys."""
        return None if self._following is None else self._following.followed

    def _connect(self) -> DispatcherGateway:
        gateway: DispatcherGateway
        try:
            if self._follows:
                gateway = following = self._following = LeaderFollowingDispatcher(
                    self._factory.dispatcher,
                    lambda: self._addresses,
                    self._retrieval,
                    timeout_ms=self._timeout_ms,
                )
                following.connect()
            else:
                gateway = self._factory.dispatcher(self._addresses[0])
                gateway.leader()
        except RpcUnavailable as error:
            where = ", ".join(self._addresses) or "the address that is in ZooKeeper"
            raise RpcUnavailable(
                f"no JobManager answers at {where}: {error}; "
                "start one with `yarnflow jobmanager`, name another with -m host:port, or one on YARN "
                "with -t yarn-session or -Dyarn.application.id=…"
            ) from error
        return gateway

    def failure(self) -> YarnflowError | None:
        return None

    def final_details(self, job_id: JobId) -> JobDetails | None:
        return None

    def stop(self, *, forced: bool, failed: bool) -> str:
        self._factory.close()
        self._on_stop()
        return ""


def leader_in_zookeeper(
    configuration: Configuration, secret: bytes
) -> tuple[LeaderRetrieval, Callable[[], None]]:
    """Who leads according to ZooKeeper, and how to let go of it."""
    from yarnflow.ha.services import ZooKeeperRetrieval, ZooKeeperSettings, open_zookeeper

    zookeeper = open_zookeeper(ZooKeeperSettings.of(configuration), secret, None)
    retrieval = ZooKeeperRetrieval(zookeeper)

    def close() -> None:
        retrieval.close()
        zookeeper.close()

    return retrieval, close


def connect_remote(
    configuration: Configuration,
    find_leader: Callable[
        [Configuration, bytes], tuple[LeaderRetrieval, Callable[[], None]]
    ] = leader_in_zookeeper,
) -> RemoteCluster:
    """Factory of the ``remote`` target.

    Parameters
    ----------
    configuration : Configuration
    find_leader : callable
        How the leader is found where the cluster uses ZooKeeper.

    Raises
    ------
    ConfigError
        An address is no host with one port, or the secret cannot be read.
    RpcUnavailable
        No cluster is named, and this user has none on this machine.
    ZooKeeperUnavailable
        The cluster is to be found in ZooKeeper, and no server of it answers.
    """
    highly_available = is_highly_available(configuration)
    typed = configuration.source_of(cluster.JOBMANAGER_RPC_ADDRESS) in _TYPED
    asks_zookeeper = highly_available and not typed
    addresses = () if asks_zookeeper else master_addresses(configuration)
    from yarnflow.process.dirs import standalone_secret_file
    from yarnflow.process.secret import read_secret

    path = standalone_secret_file(configuration)
    if not path.exists() and not configuration.is_set(security.CLUSTER_SECRET_FILE):
        if typed:
            raise ConfigError(
                f"the secret of that cluster is not on this machine (no {path}); copy it here and set "
                f"{security.CLUSTER_SECRET_FILE.key}"
            )
        raise RpcUnavailable(
            "there is no standalone cluster of this user on this machine; start one with `yarnflow "
            "jobmanager`, or name one by -m host:port, on YARN by -t yarn-per-job and the job's id"
        )
    # not before there is something to talk to: loading it takes most of a command's time
    from yarnflow.rpc.gateways import ThriftGatewayFactory
    from yarnflow.rpc.member import Member, Role

    secret = read_secret(path).encode("ascii")
    timeout_ms = configuration.get(client.CLIENT_TIMEOUT_MS)
    retrieval, close = find_leader(configuration, secret) if asks_zookeeper else (None, lambda: None)
    # a secret file that is named says nothing of the cluster's name; the one that is found by it does
    named = configuration.is_set(cluster.CLUSTER_ID) or not configuration.is_set(security.CLUSTER_SECRET_FILE)
    factory = ThriftGatewayFactory(
        Member(Role.CLIENT, secret, configuration.get(cluster.CLUSTER_ID) if named else ""),
        "client",
        configuration.get(cluster.RPC_ASK_TIMEOUT_MS),
        configuration.get(cluster.RPC_FRAME_SIZE_BYTES),
    )
    return RemoteCluster(
        addresses, factory, retrieval, follows=highly_available, timeout_ms=timeout_ms, on_stop=close
    )


def master_addresses(configuration: Configuration) -> tuple[str, ...]:
    """``host:port`` of every master that ``jobmanager.rpc.address`` names.

    Raises
    ------
    InvalidOption
        A port is not one port.
    """
    found = []
    for name in configuration.get(cluster.JOBMANAGER_RPC_ADDRESS).split(","):
        host, colon, port = name.strip().rpartition(":")
        if not colon:
            host, port = name.strip(), configuration.get(cluster.JOBMANAGER_RPC_PORT)
        if not port.isdigit() or not 0 < int(port) < 65536 or not host:
            raise InvalidOption(
                f"{cluster.JOBMANAGER_RPC_PORT.key} is {port!r}: a client needs the one port the JobManager "
                "serves at; name it with -m host:port"
            )
        found.append(f"{host}:{port}")
    return tuple(dict.fromkeys(found))
