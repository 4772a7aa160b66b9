"""How the leader of a standalone cluster is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.cli.common import with_target
from yarnflow.client import remote
from yarnflow.client.leader import LeaderFollowingDispatcher
from yarnflow.client.remote import RemoteCluster, connect_remote, master_addresses
from yarnflow.config.configuration import Configuration
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import ConfigError, InvalidOption, RpcUnavailable, YarnflowError
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

QUORUM = {"high-availability.type": "zookeeper", "high-availability.zookeeper.quorum": "z:2181"}


class Factory:
    """Opens gateways to one dispatcher; some addresses answer nobody."""

    def __init__(self, *silent: str) -> None:
        self.silent = silent
        self.opened: list[str] = []
        self.closed = False

    def dispatcher(self, address: str) -> FakeDispatcher:
        self.opened.append(address)
        made = FakeDispatcher()
        if address in self.silent:
            made.leader = lambda: _raise(RpcUnavailable("nobody listens"))  # type: ignore[method-assign]
        else:
            made.leader = lambda: LeaderInfo(Fence("l", 1), address, "0", "c")  # type: ignore[method-assign]
        return made

    def close(self) -> None:
        self.closed = True


def _raise(error: YarnflowError) -> LeaderInfo:
    raise error


def cluster(factory: Factory, *addresses: str, **options: object) -> RemoteCluster:
    return RemoteCluster(addresses, factory, **options)  # type: ignore[arg-type]


def test_one_master_is_called_and_nobody_looked_for() -> None:
    found = cluster(Factory(), "a:1")
    assert isinstance(found.gateway(), FakeDispatcher)
    assert found.named_by == "-m a:1"


@pytest.mark.parametrize(("addresses", "follows"), [(("a:1", "b:1"), False), (("a:1",), True)])
def test_with_standbys_the_leader_is_followed(addresses: tuple[str, ...], follows: bool) -> None:
    found = cluster(Factory("a:1") if len(addresses) > 1 else Factory(), *addresses, follows=follows)
    gateway = found.gateway()
    assert isinstance(gateway, LeaderFollowingDispatcher)
    assert gateway.followed == Fence("l", 1)
    assert found.named_by == f"-m {','.join(addresses)}"


@pytest.mark.parametrize("addresses", [("a:1",), ("a:1", "b:1")])
def test_nobody_there_is_said_at_once(addresses: tuple[str, ...]) -> None:
    said = f"no JobManager answers at {', '.join(addresses)}: .*start one with"
    with pytest.raises(RpcUnavailable, match=said):
        cluster(Factory(*addresses), *addresses).gateway()


def test_everything_is_closed() -> None:
    factory = Factory()
    stopped: list[int] = []
    cluster(factory, "a:1", on_stop=lambda: stopped.append(1)).stop(forced=False, failed=False)
    assert factory.closed and stopped == [1]


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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Whether ZooKeeper was asked."""
    calls: list[str] = []

    class Retrieval:
        def leader(self) -> LeaderInfo | None:
            return None

    def retrieval(configuration: Configuration, secret: bytes) -> object:
        calls.append(secret.decode())
        return Retrieval(), lambda: calls.append("closed")

    monkeypatch.setattr(remote, "_retrieval", retrieval)
    return calls


def _configuration(tmp_path: Path, values: dict[str, str]) -> Configuration:
    secret = tmp_path / "secret"
    secret.write_text("a" * 64)
    secret.chmod(0o600)
    return Configuration.from_dict({**values, "security.cluster-secret-file": str(secret)}, "file")


def test_the_leader_is_in_zookeeper(tmp_path: Path, asked: list[str]) -> None:
    found = connect_remote(_configuration(tmp_path, QUORUM))
    assert asked == ["a" * 64] and found.named_by == ""
    found.stop(forced=False, failed=False)
    assert asked[-1] == "closed"


def test_masters_that_are_named_are_asked_and_not_zookeeper(tmp_path: Path, asked: list[str]) -> None:
    found = connect_remote(with_target(_configuration(tmp_path, QUORUM), None, "a:1,b:2"))
    assert not asked and found.named_by == "-m a:1,b:2"


def test_without_high_availability_nobody_asks_zookeeper(tmp_path: Path, asked: list[str]) -> None:
    connect_remote(_configuration(tmp_path, {})).stop(forced=False, failed=False)
    assert not asked


def test_without_a_secret(tmp_path: Path) -> None:
    values = {"io.tmp.dirs": str(tmp_path)}
    with pytest.raises(ConfigError, match="no standalone cluster of this user"):
        connect_remote(Configuration.from_dict(values, "test"))
