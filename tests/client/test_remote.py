"""How the leader of a standalone cluster is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from yarnflow.cli.common import with_target
from yarnflow.client.leader import LeaderFollowingDispatcher
from yarnflow.client.remote import RemoteCluster, connect_remote, master_addresses
from yarnflow.config.configuration import Configuration
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import ConfigError, InvalidOption, RpcUnavailable
from yarnflow.testing.gateways.dispatcher import FakeDispatcher
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.ha.leader_retrieval import FakeLeaderRetrieval

QUORUM = {"high-availability.type": "zookeeper", "high-availability.zookeeper.quorum": "z:2181"}


def gateways(*addresses: str) -> FakeGateways:
    """To one master; at other addresses nobody answers."""
    dispatchers = {address: FakeDispatcher() for address in addresses}
    for address, dispatcher in dispatchers.items():
        dispatcher.leads = LeaderInfo(Fence("l", 1), address, "0", "c")
    return FakeGateways(dispatchers=dispatchers)


def cluster(factory: FakeGateways, *addresses: str, **options: object) -> RemoteCluster:
    return RemoteCluster(addresses, factory, **options)  # type: ignore[arg-type]


def test_one_master_is_called_and_nobody_looked_for() -> None:
    found = cluster(gateways("a:1"), "a:1")
    assert isinstance(found.gateway(), FakeDispatcher)
    assert found.named_by == "-m a:1"


@pytest.mark.parametrize(("addresses", "follows"), [(("a:1", "b:1"), False), (("a:1",), True)])
def test_with_standbys_the_leader_is_followed(addresses: tuple[str, ...], follows: bool) -> None:
    found = cluster(gateways(addresses[-1]), *addresses, follows=follows)
    gateway = found.gateway()
    assert isinstance(gateway, LeaderFollowingDispatcher)
    assert gateway.followed == Fence("l", 1)
    assert found.named_by == f"-m {','.join(addresses)}"


@pytest.mark.parametrize("addresses", [("a:1",), ("a:1", "b:1")])
def test_nobody_there_is_said_at_once(addresses: tuple[str, ...]) -> None:
    said = f"no JobManager answers at {', '.join(addresses)}: .*start one with"
    with pytest.raises(RpcUnavailable, match=said):
        cluster(gateways(), *addresses).gateway()


def test_everything_is_closed() -> None:
    factory = gateways("a:1")
    stopped: list[int] = []
    cluster(factory, "a:1", on_stop=lambda: stopped.append(1)).stop(forced=False, failed=False)
    assert factory.closes == 1 and stopped == [1]


@pytest.mark.parametrize(
    ("values", "addresses"),
    [
        ({}, ("localhost:6123",)),
        ({"jobmanager.rpc.address": "h", "jobmanager.rpc.port": "7"}, ("h:7",)),
        ({"jobmanager.rpc.address": "h:1, g:2,h:1"}, ("h:1", "g:2")),
        ({"jobmanager.rpc.address": "h:1,g", "jobmanager.rpc.port": "7"}, ("h:1", "g:7")),
    ],
)
def test_addresses(values: dict[str, str], addresses: tuple[str, ...]) -> None:
    assert master_addresses(Configuration.from_dict(values, "test")) == addresses


@pytest.mark.parametrize("port", ["0", "50100-50200"])
def test_a_client_needs_one_port(port: str) -> None:
    with pytest.raises(InvalidOption, match="needs the one port"):
        master_addresses(Configuration.from_dict({"jobmanager.rpc.port": port}, "test"))


def test_several_masters_on_the_command_line() -> None:
    configuration = with_target(Configuration.empty(), None, "a:1,b:2")
    assert master_addresses(configuration) == ("a:1", "b:2")


class ZooKeeper:
    """Nobody leads according to it."""

    def __init__(self) -> None:
        #: secrets it was asked with, and that it was let go of
        self.calls: list[str] = []

    def __call__(
        self, configuration: Configuration, secret: bytes
    ) -> tuple[FakeLeaderRetrieval, Callable[[], None]]:
        self.calls.append(secret.decode())
        return FakeLeaderRetrieval(), lambda: self.calls.append("closed")


def _configuration(tmp_path: Path, values: dict[str, str]) -> Configuration:
    secret = tmp_path / "secret"
    secret.write_text("a" * 64)
    secret.chmod(0o600)
    return Configuration.from_dict({**values, "security.cluster-secret-file": str(secret)}, "file")


def test_the_leader_is_in_zookeeper(tmp_path: Path) -> None:
    zookeeper = ZooKeeper()
    found = connect_remote(_configuration(tmp_path, QUORUM), zookeeper)
    assert zookeeper.calls == ["a" * 64] and found.named_by == ""
    found.stop(forced=False, failed=False)
    assert zookeeper.calls[-1] == "closed"


def test_masters_that_are_named_are_asked_and_not_zookeeper(tmp_path: Path) -> None:
    zookeeper = ZooKeeper()
    found = connect_remote(with_target(_configuration(tmp_path, QUORUM), None, "a:1,b:2"), zookeeper)
    assert not zookeeper.calls and found.named_by == "-m a:1,b:2"


def test_without_high_availability_nobody_asks_zookeeper(tmp_path: Path) -> None:
    zookeeper = ZooKeeper()
    connect_remote(_configuration(tmp_path, {}), zookeeper).stop(forced=False, failed=False)
    assert not zookeeper.calls


def test_without_a_secret(tmp_path: Path) -> None:
    values = {"io.tmp.dirs": str(tmp_path)}
    with pytest.raises(RpcUnavailable, match="no standalone cluster of this user"):
        connect_remote(Configuration.from_dict(values, "test"))
    with pytest.raises(ConfigError, match="the secret of that cluster is not on this machine.*copy it here"):
        connect_remote(with_target(Configuration.from_dict(values, "test"), None, "a:1"))
