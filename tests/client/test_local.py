"""Which of the clusters on this machine a command means, and which are passed over."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.client.fakes import FakeConnection
from yarnflow.client.local import (
    RunningLocalCluster,
    cluster_with,
    clusters_here,
    local_clusters,
    running_local_clusters,
)
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.errors import ConfigError, InvalidOption, JobNotFound, RpcUnavailable, YarnflowError
from yarnflow.process.dirs import ClusterDirectory, create_cluster_directory, write_json
from yarnflow.process.secret import create_secret
from yarnflow.testing.gateways.dispatcher import FakeDispatcher
from yarnflow.testing.gateways.factory import FakeGateways

JOB, OTHER = JobId("ab" * 16), JobId("cd" * 16)


def job(job_id: JobId) -> JobSubmission:
    return JobSubmission(job_id, "flights", ProgramKind.GRAPH, "{}", {})


@dataclass
class Machine:
    """Local clusters below one temporary directory, each with a Dispatcher that is a fake."""

    tmp_dir: Path
    gateways: FakeGateways = field(default_factory=FakeGateways)
    #: what connections were opened with
    secrets: list[bytes] = field(default_factory=list)

    @property
    def configuration(self) -> Configuration:
        return Configuration.from_dict({"io.tmp.dirs": str(self.tmp_dir)}, "test")

    def start(self, address: str, *job_ids: JobId) -> ClusterDirectory:
        directory = create_cluster_directory(str(self.tmp_dir), "local")
        create_secret(directory.secret_file)
        write_json(directory.jobmanager_file, {"address": address, "pid": 1})
        dispatcher = self.gateways.dispatchers[address] = FakeDispatcher()
        dispatcher.submissions += map(job, job_ids)
        return directory

    def open(self, secret: bytes) -> FakeGateways:
        self.secrets.append(secret)
        return self.gateways

    def running(self) -> list[RunningLocalCluster]:
        return running_local_clusters(self.configuration, self.open)

    def here(self, standalone: Callable[[], FakeConnection]) -> list[str]:
        return [found.named_by for found in clusters_here(self.configuration, standalone, self.open)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_running_cluster_is_called_at_its_address_with_its_secret(machine: Machine) -> None:
    directory = machine.start("localhost:7", JOB)
    (found,) = machine.running()
    assert machine.secrets == [directory.secret_file.read_text().strip().encode()]
    assert [each.job_id for each in found.gateway().list_jobs()] == [JOB]
    assert machine.gateways.opened_dispatchers == ["localhost:7"] and found.named_by == "-t local"
    found.stop(forced=False, failed=False)
    assert machine.gateways.closes == 1


def _killed(directory: ClusterDirectory) -> None:
    os.close(directory._lock_fd)


def _open_to_others(directory: ClusterDirectory) -> None:
    directory.path.chmod(0o755)


def _another_users(directory: ClusterDirectory) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(directory.path, 12345, -1)


def _a_link(directory: ClusterDirectory) -> None:
    elsewhere = directory.path.with_name("elsewhere")
    directory.path.rename(elsewhere)
    directory.path.symlink_to(elsewhere)


def _not_serving(directory: ClusterDirectory) -> None:
    directory.jobmanager_file.unlink()


def _ending(directory: ClusterDirectory) -> None:
    directory.secret_file.unlink()


@pytest.mark.parametrize(
    "change", [_killed, _open_to_others, _another_users, _a_link, _not_serving, _ending]
)
def test_what_does_not_run_or_is_not_this_users_is_passed_over(
    change: Callable[[ClusterDirectory], None], machine: Machine
) -> None:
    change(machine.start("localhost:7", JOB))
    machine.start("localhost:8", JOB)
    assert [str(found).split()[2] for found in machine.running()] == ["localhost:8"]


def test_a_cluster_that_does_not_answer_is_passed_over(machine: Machine) -> None:
    machine.start("localhost:7")
    machine.gateways.dispatchers["localhost:7"].down = RpcUnavailable("nobody listens")
    assert machine.running() == [] and machine.gateways.closes == 1


def test_a_secret_that_others_can_read_is_an_error(machine: Machine) -> None:
    machine.start("localhost:7").secret_file.chmod(0o644)
    with pytest.raises(ConfigError, match="can be read by others"):
        machine.running()


def test_the_end_of_a_cluster_is_known(machine: Machine) -> None:
    directory = machine.start("localhost:7")
    (found,) = machine.running()
    assert found.failure() is None
    directory.remove(keep_evidence=False)
    assert "localhost:7 has ended" in str(found.failure())


@pytest.mark.parametrize(("job_id", "kind"), [(JOB, JobNotFound), ("", RpcUnavailable)])
def test_no_local_cluster_is_said_in_a_line(
    job_id: str, kind: type[YarnflowError], machine: Machine
) -> None:
    with pytest.raises(kind, match=f"no local cluster of this user runs .looked in {machine.tmp_dir}"):
        local_clusters(machine.configuration, job_id, machine.open)


def test_the_job_says_which_cluster_is_meant(machine: Machine) -> None:
    machine.start("localhost:7", OTHER)
    machine.start("localhost:8", JOB)
    chosen = cluster_with(local_clusters(machine.configuration, JOB, machine.open), JOB)
    assert "localhost:8" in str(chosen)
    assert machine.gateways.closes == 1, "the other one was let go of"


def test_a_cluster_that_ends_meanwhile_does_not_have_the_job(machine: Machine) -> None:
    machine.start("localhost:7", JOB)
    machine.start("localhost:8", JOB)
    clusters = machine.running()
    machine.gateways.dispatchers["localhost:7"].down = RpcUnavailable("gone")
    assert "localhost:8" in str(cluster_with(clusters, JOB))


def test_a_job_that_none_has_is_said_with_their_names(machine: Machine) -> None:
    machine.start("localhost:7", OTHER)
    machine.start("localhost:8")
    with pytest.raises(JobNotFound, match=f"no job {JOB} on the 2 clusters") as caught:
        cluster_with(machine.running(), JOB)
    assert "localhost:7" in str(caught.value) and "localhost:8" in str(caught.value)
    assert machine.gateways.closes == 2


@pytest.mark.parametrize(
    ("job_id", "said"), [(JOB, f"2 clusters of this user have job {JOB}"), ("", "or name the job")]
)
def test_several_clusters_are_not_chosen_from(job_id: str, said: str, machine: Machine) -> None:
    machine.start("localhost:7", JOB)
    machine.start("localhost:8", JOB)
    with pytest.raises(InvalidOption, match=said):
        cluster_with(machine.running(), job_id)


def test_the_only_cluster_is_asked_by_the_verb_itself(machine: Machine) -> None:
    machine.start("localhost:7")
    clusters = machine.running()
    assert cluster_with(clusters, JOB) is clusters[0]


def _answering() -> FakeConnection:
    return FakeConnection(FakeDispatcher(), owned=False)


def _refused(error: YarnflowError) -> Callable[[], FakeConnection]:
    def reach() -> FakeConnection:
        raise error

    return reach


def test_clusters_of_both_kinds_are_here(machine: Machine) -> None:
    assert machine.here(_answering) == ["-m host:1"]
    machine.start("localhost:7")
    assert machine.here(_answering) == ["-t local", "-m host:1"]


@pytest.mark.parametrize("error", [ConfigError("no secret"), RpcUnavailable("nobody listens")])
def test_a_standalone_cluster_that_is_not_here_is_no_error_beside_a_local_one(
    error: YarnflowError, machine: Machine
) -> None:
    machine.start("localhost:7")
    assert machine.here(_refused(error)) == ["-t local"]


@pytest.mark.parametrize("error", [ConfigError("no secret"), RpcUnavailable("nobody listens")])
def test_no_cluster_of_either_kind(error: YarnflowError, machine: Machine) -> None:
    with pytest.raises(type(error), match=f"no local cluster of this user runs, and {error}"):
        machine.here(_refused(error))


def test_a_standalone_cluster_that_does_not_answer_is_let_go_of(machine: Machine) -> None:
    class Silent(FakeConnection):
        def gateway(self) -> FakeDispatcher:
            raise RpcUnavailable("nobody listens")

    silent = Silent(FakeDispatcher(), owned=False)
    with pytest.raises(RpcUnavailable):
        machine.here(lambda: silent)
    assert silent.stops == [(False, False)]
