"""Which parts of high availability a process gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ha.test_single_master import ME, Contender
from yarnflow.config.configuration import Configuration
from yarnflow.config.options.ha import HA_TYPE
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import Fence
from yarnflow.entrypoint.ha_services import services_of, session_closer
from yarnflow.entrypoint.standalone.local import local_configuration
from yarnflow.entrypoint.standalone.supervisor import _own_directory, master_configuration

JOB = JobId("a" * 32)


def test_without_high_availability_zookeeper_is_nowhere(tmp_path: Path) -> None:
    services = services_of(Configuration.empty(), b"s" * 32, tmp_path)
    parts = (services.election, services.retrieval, services.cluster_end)
    assert {type(part).__module__ for part in parts} == {"yarnflow.ha.single_master"}
    assert not services.retrieval.may_change
    stores = services.stores(lambda: Fence("l", 1))
    assert not stores.highly_available
    services.lease(JOB).acquire(DriverLeaseInfo(JOB, DriverId("d"), "", "h", 1, 1), 0)
    session_closer(Configuration.empty(), tmp_path)(4711)
    services.close()


@pytest.mark.parametrize(
    ("container_id", "epoch"),
    [
        ("", 1),
        ("container_1410901177871_0001_01_000001", 1),
        ("container_e17_1410901177871_0001_12_000001", 12),
    ],
)
def test_the_next_attempt_of_an_application_comes_after_the_one_before(
    tmp_path: Path, container_id: str, epoch: int
) -> None:
    """It runs the same job from its first attempt on, and sinks know how far the job was."""
    services = services_of(Configuration.empty(), b"s" * 32, tmp_path, container_id=container_id)
    contender = Contender()
    services.election.start(contender, ME)
    (granted,) = contender.told
    assert isinstance(granted, Fence) and granted.epoch == epoch


def test_masters_of_one_machine_share_state_and_not_ports() -> None:
    options = {"high-availability.storageDir": "hdfs://nn/ha/", "high-availability.cluster-id": "/prod"}
    made = master_configuration(Configuration.from_dict(options, "test")).to_dict()
    assert made["jobmanager.rpc.port"] == "6123-6222"
    assert made["execution.checkpointing.dir"] == "hdfs://nn/ha/prod/checkpoints"
    mine = {"jobmanager.rpc.port": "7000", "execution.checkpointing.dir": "hdfs://nn/mine"}
    made = master_configuration(Configuration.from_dict({**options, **mine}, "test")).to_dict()
    assert {key: made[key] for key in mine} == mine


def test_masters_of_one_machine_have_their_own_directories(tmp_path: Path) -> None:
    configuration = Configuration.from_dict({"io.tmp.dirs": str(tmp_path)}, "test")
    with _own_directory(configuration) as first:
        with _own_directory(configuration) as second:
            assert (first.path.name, second.path.name) == ("master-1", "master-2")
            assert first.logs != second.logs
        with _own_directory(configuration) as third:
            assert third.path.name == "master-2", "the place of one that has ended is free"


def test_a_local_cluster_has_one_master_whatever_is_configured(tmp_path: Path) -> None:
    configuration = Configuration.from_dict({"high-availability.type": "zookeeper"}, "test")
    assert local_configuration(configuration, tmp_path / "secret").get(HA_TYPE) == "none"
