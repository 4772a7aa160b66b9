"""Where a TaskManager looks for its master, and where it listens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.core.messages import LeaderInfo
from yarnflow.entrypoint.master import job_manager as master
from yarnflow.entrypoint.taskmanager import main as taskmanager
from yarnflow.entrypoint.taskmanager.main import MasterGateways, TaskManager, advertised_host, gateways_of
from yarnflow.entrypoint.taskmanager.single_master import StandaloneMaster
from yarnflow.errors import AuthenticationFailed, LeadershipLost, ResourceError, RpcError, RpcUnavailable
from yarnflow.process.dirs import write_json
from yarnflow.process.no_workers import NoResourceProvider
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.member import Member, Role
from yarnflow.testing.driver_launcher import FakeDriverLauncher
from yarnflow.testing.gateways.dispatcher import FakeDispatcher
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.ha.leader_retrieval import FakeLeaderRetrieval, leader_info
from yarnflow.testing.ha.services import FakeHaServices

SECRET = b"0123456789abcdef0123456789abcdef"


def network(*serving: str) -> FakeGateways:
    """Gateways where some addresses have a master."""
    dispatchers = {address: FakeDispatcher() for address in serving}
    for address, dispatcher in dispatchers.items():
        dispatcher.leads = leader_info(1, address)
    return FakeGateways(dispatchers=dispatchers)


def _link(gateways: FakeGateways, directory: Path, port: str = "6123") -> MasterGateways:
    configuration = Configuration.from_dict(
        {"jobmanager.rpc.address": "master", "jobmanager.rpc.port": port}, "test"
    )
    master = StandaloneMaster(directory, configuration, gateways.dispatcher)
    return MasterGateways(gateways, master)


def _publish(directory: Path, pid: int) -> None:
    write_json(directory / "jobmanager.json", {"address": "here:1", "pid": pid})


def _dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_published_address_of_a_living_master(tmp_path: Path) -> None:
    _publish(tmp_path, os.getpid())
    masters = network("here:1", "master:6123")
    assert _link(masters, tmp_path).resource_manager() is masters.resource_managers["here:1"]
    assert masters.opened_dispatchers == ["here:1"]


def test_leftover_of_a_dead_master_is_not_even_tried(tmp_path: Path) -> None:
    _publish(tmp_path, _dead_pid())
    masters = network("here:1", "master:6123")
    assert _link(masters, tmp_path).resource_manager() is masters.resource_managers["master:6123"]
    assert masters.opened_dispatchers == ["master:6123"]


@pytest.mark.parametrize("error", [RpcUnavailable("nobody"), AuthenticationFailed("another cluster")])
def test_leftover_whose_number_another_process_got(tmp_path: Path, error: RpcError) -> None:
    _publish(tmp_path, os.getpid())
    masters = network("master:6123")
    masters.unreachable = error
    assert _link(masters, tmp_path).resource_manager() is masters.resource_managers["master:6123"]


def test_without_a_configured_port_the_published_one_is_the_only_one(tmp_path: Path) -> None:
    masters = network()
    with pytest.raises(ResourceError, match="jobmanager.rpc.port"):
        _link(masters, tmp_path, "0").resource_manager()
    _publish(tmp_path, os.getpid())
    with pytest.raises(RpcUnavailable):
        _link(masters, tmp_path, "0").resource_manager()


@pytest.mark.parametrize("master", ["localhost", "127.0.0.1", "127.0.1.1", "::1"])
def test_cluster_on_one_machine_is_reached_by_loopback(master: str) -> None:
    assert advertised_host(Configuration.from_dict({"jobmanager.rpc.address": master}, "test")) == "127.0.0.1"


class FakeServer:
    hosts: list[str] = []
    port = 1

    def serve(self, services: object) -> None: ...

    def __init__(self, **options: object) -> None:
        FakeServer.hosts.append(str(options["host"]))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["127.0.0.1", "127.0.0.1"]),
        ({"jobmanager.rpc.address": "jm.example.com", "taskmanager.host": "tm"}, ["jm.example.com", "tm"]),
        ({"jobmanager.bind-host": "0.0.0.0", "taskmanager.bind-host": "10.0.0.1"}, ["0.0.0.0", "10.0.0.1"]),
    ],
)
def test_servers_listen_where_they_are_reached(
    options: dict[str, str], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeServer, "hosts", [])
    monkeypatch.setattr(master, "RpcServer", FakeServer)
    monkeypatch.setattr(taskmanager, "RpcServer", FakeServer)
    configuration = Configuration.from_dict(options, "test")
    launcher, provider = FakeDriverLauncher(), NoResourceProvider()
    master.JobManager(configuration, tmp_path, SECRET, launcher, provider, FakeHaServices())
    gateways = gateways_of(configuration, SECRET, "tm-1")
    TaskManager(configuration, tmp_path, "tm-1", "", SECRET, gateways, FakeLeaderRetrieval())
    assert FakeServer.hosts == expected


def test_the_link_follows_the_leader_of_zookeeper() -> None:
    retrieval = FakeLeaderRetrieval()
    factory = ThriftGatewayFactory(Member(Role.TASK_MANAGER, SECRET), "tm", 1_000, 1 << 20)
    link = MasterGateways(factory, retrieval)
    told: list[str] = []
    link.on_new_leader(lambda: told.append("new"))
    with pytest.raises(LeadershipLost, match="no master leads"):
        link.resource_manager()
    retrieval.set_leader(leader_info(2))
    link.resource_manager()
    assert link.accepted_fence.epoch == 2 and told == ["new"]
    retrieval.set_leader(None)
    retrieval.set_leader(leader_info(2))
    assert told == ["new"], "the same leader again"
    retrieval.set_leader(leader_info(3))
    link.job_master()
    assert link.accepted_fence.epoch == 3 and told == ["new", "new"]
    link.forget_leader()
    retrieval.set_leader(leader_info(2), tell=False)
    with pytest.raises(ResourceError, match="older than the last one"):
        link.resource_manager()
    factory.close()


def test_an_answer_of_before_another_master_led_is_not_kept() -> None:
    retrieval = FakeLeaderRetrieval()
    factory = ThriftGatewayFactory(Member(Role.TASK_MANAGER, SECRET), "tm", 1_000, 1 << 20)
    link = MasterGateways(factory, retrieval)
    link.on_new_leader(lambda: None)
    retrieval.set_leader(leader_info(2))
    link.forget_leader()
    ask = retrieval.leader

    def slow() -> LeaderInfo | None:
        retrieval.leader = ask  # type: ignore[method-assign]
        found = ask()
        retrieval.set_leader(leader_info(3))
        return found

    retrieval.leader = slow  # type: ignore[method-assign]
    link.job_master()
    link.job_master()
    assert link.accepted_fence.epoch == 3
    factory.close()
