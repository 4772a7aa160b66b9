"""ZooKeeper as clients have it who do not know the cluster's secret, and as its administrator has it."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError, NotEmptyError
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from integration.conftest import Commands, Started, commands_in, wait_until
from integration.hadoop import HadoopCluster
from integration.upgrade.nodes import anybody_at, member_at
from tests.patience import PATIENCE
from yarnflow.errors import ForeignNode
from yarnflow.process.secret import create_secret, read_secret

_LEADER = "leader/connection_info"


@dataclass(frozen=True)
class Victim:
    """A cluster that is to be attacked; nothing of it is in ZooKeeper before its first process starts."""

    commands: Commands
    quorum: str
    #: its name there
    root: str
    secret_file: Path

    @property
    def options(self) -> list[str]:
        """How its processes and its user's commands find it."""
        parent, _, cluster_id = self.root.rpartition("/")
        return [
            "-Dhigh-availability.type=zookeeper",
            f"-Dhigh-availability.zookeeper.quorum={self.quorum}",
            f"-Dhigh-availability.zookeeper.path.root={parent}",
            f"-Dhigh-availability.cluster-id={cluster_id}",
            f"-Dhigh-availability.storageDir=file://{self.commands.directory}/ha{parent}",
            f"-Dsecurity.cluster-secret-file={self.secret_file}",
            f"-Dio.tmp.dirs={self.commands.directory}",
        ]

    def path(self, name: str) -> str:
        """Absolute path of a node."""
        return f"{self.root}/{name}"

    def start_master(self) -> Started:
        """Start a JobManager."""
        address = ["-Djobmanager.rpc.address=127.0.0.1", "-Djobmanager.rpc.port=0"]
        return self.commands.start("jobmanager", *self.options, *address)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Commands of the cluster's user; afterwards none of their processes is left."""
    with commands_in(tmp_path_factory.mktemp("victim")) as started:
        yield started


@pytest.fixture
def attacker(hadoop: HadoopCluster) -> Iterator[KazooClient]:
    """A session of somebody who has no credentials."""
    with anybody_at(hadoop.zookeeper) as client:
        yield client


def _victim(hadoop: HadoopCluster, commands: Commands) -> Victim:
    name = secrets.token_hex(6)
    secret_file = commands.directory / f"secret-{name}"
    create_secret(secret_file)
    return Victim(commands, hadoop.zookeeper, f"/yarnflow-attacked-{name}/cluster", secret_file)


@pytest.fixture
def victim(hadoop: HadoopCluster, commands: Commands) -> Victim:
    """A cluster of the test's own."""
    return _victim(hadoop, commands)


@pytest.fixture(scope="module")
def running(hadoop: HadoopCluster, commands: Commands) -> Victim:
    """A cluster that runs, for all tests that cannot end it."""
    found = _victim(hadoop, commands)
    found.start_master()
    with member_at(found.quorum, found.root, read_secret(found.secret_file)) as client:
        wait_until(lambda: client.exists(found.path(_LEADER)), "a leader")
    return found


@pytest.mark.gate
def test_cluster_does_not_move_into_nodes_that_others_made_before(
    attacker: KazooClient, victim: Victim
) -> None:
    attacker.ensure_path(victim.path("leader/latch"), acl=OPEN_ACL_UNSAFE)
    master = _attacked_master(attacker, victim)
    assert f"{victim.root} in ZooKeeper is not this cluster's" in master.stderr
    assert len(master.stderr.strip().splitlines()) == 1


def test_cluster_node_that_was_deleted_and_made_anew_is_refused(
    attacker: KazooClient, victim: Victim
) -> None:
    attacker.ensure_path(victim.root.rpartition("/")[0], acl=OPEN_ACL_UNSAFE)
    with member_at(victim.quorum, victim.root, read_secret(victim.secret_file)) as member:
        # as an earlier version leaves it below an open parent that is not the attacker's
        member.create(victim.root)
    attacker.delete(victim.root)
    attacker.ensure_path(victim.path("leader/latch"), acl=OPEN_ACL_UNSAFE)
    _attacked_master(attacker, victim)


@pytest.mark.parametrize(
    "attack",
    [
        lambda client, path: client.get(path),
        lambda client, path: client.get_children(path),
        lambda client, path: client.set(path, b"x"),
        lambda client, path: client.create(f"{path}/of-the-attacker", b"", acl=OPEN_ACL_UNSAFE),
        lambda client, path: client.set_acls(path, OPEN_ACL_UNSAFE),
    ],
    ids=["read", "list", "write", "create below", "change the ACL"],
)
def test_nodes_of_a_cluster_are_its_own(
    attacker: KazooClient, running: Victim, attack: Callable[[KazooClient, str], object]
) -> None:
    with member_at(running.quorum, running.root, read_secret(running.secret_file)) as member:
        nodes = _tree(member, running.root)
    assert {running.root, running.path(_LEADER), running.path("epoch")} <= set(nodes)
    for path in nodes:
        with pytest.raises(NoAuthError):
            attack(attacker, path)


def test_attacker_cannot_take_the_place_of_the_leader(attacker: KazooClient, running: Victim) -> None:
    with pytest.raises(NoAuthError):
        attacker.delete(running.path(_LEADER))
    with pytest.raises(NoAuthError):
        attacker.create(running.path(_LEADER), b"{}", acl=OPEN_ACL_UNSAFE)


@pytest.mark.gate
def test_shared_parent_is_for_new_clusters_only(attacker: KazooClient, running: Victim) -> None:
    parent = running.root.rpartition("/")[0]
    with pytest.raises(NoAuthError):
        attacker.set_acls(parent, [make_digest_acl("attacker", "x", all=True)])
    with pytest.raises(NoAuthError):
        attacker.set(parent, b"x")
    # the cluster can delete its node at its end, and nobody can while something is below it
    with pytest.raises(NotEmptyError):
        attacker.delete(running.root)


@pytest.mark.gate
def test_leader_whom_the_administrator_names_is_not_called(victim: Victim) -> None:
    """With all rights in ZooKeeper, but without the cluster's secret itself."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        forged = {
            "fence": {"leader_id": "forged", "epoch": 999},
            "address": f"127.0.0.1:{port}",
            "version": "0.2.0",
            "cluster_id": "cluster",
            "web_address": "",
            "signature": "hmac-sha256:" + "0" * 64,
        }
        with member_at(victim.quorum, victim.root, read_secret(victim.secret_file)) as administrator:
            administrator.ensure_path(victim.path("leader"))
            administrator.create(victim.path(_LEADER), json.dumps(forged).encode())
            task_manager = victim.commands.start("taskmanager", *victim.options)
            command = victim.commands.start("list", "-t", "remote", *victim.options)
            called: list[bool] = []

            def look() -> bool:
                called.extend(_calls(listener))
                return bool(called) or (_refused(victim) and command.process.poll() is not None)

            try:
                wait_until(look, "the forged leader to be refused, or called")
            finally:
                for started in (task_manager, command):
                    started.process.terminate()
                    started.process.wait(PATIENCE.process_s)
            assert not called, "somebody called the forged leader"
            assert command.process.returncode == ForeignNode.exit_code, command.stderr
            told = f"error: {victim.path(_LEADER)} in ZooKeeper names 127.0.0.1:{port} as the leader"
            assert command.stderr.startswith(told)
            assert len(command.stderr.splitlines()) == 1


def _attacked_master(attacker: KazooClient, victim: Victim) -> Started:
    """A JobManager that has ended rather than leave its place to others."""
    master = victim.start_master()
    replaced: list[str] = []

    def look() -> bool:
        with suppress(NoNodeError):
            attacker.delete(victim.path(_LEADER))
            replaced.append(attacker.create(victim.path(_LEADER), b"{}", acl=OPEN_ACL_UNSAFE))
        return bool(replaced) or master.process.poll() is not None

    wait_until(look, "the JobManager to end, or its place to be taken")
    assert not replaced, "the attacker has put another leader in its place"
    assert master.process.returncode == ForeignNode.exit_code, master.stderr
    return master


def _calls(listener: socket.socket) -> Iterator[bool]:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return
    yield True


def _refused(victim: Victim) -> bool:
    """Return whether a TaskManager has said so in its log."""
    logs = victim.commands.directory.rglob("taskmanager-*.log")
    said = f"{victim.path(_LEADER)} in ZooKeeper names"
    return any(said in log.read_text() for log in logs)


def _tree(client: KazooClient, path: str) -> list[str]:
    found = [path]
    for name in client.get_children(path):
        found += _tree(client, f"{path}/{name}")
    return found
