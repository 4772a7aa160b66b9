"""Handshakes that somebody without the secret passes on, so that both ends take him for the other one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.attack.attacker import start_attack
from integration.conftest import Commands, Started, commands_in, wait_until
from integration.processes import JOB_MANAGER, none_is_left
from integration.rest.client import Rest
from integration.servers import free_ports
from tests.patience import PATIENCE
from yarnflow import errors


@dataclass
class Cluster:
    """A JobManager and a TaskManager at ports that are known."""

    commands: Commands
    master_port: int
    worker_port: int
    job_manager: Started | None = None

    @property
    def where(self) -> list[str]:
        """Options by which its processes and commands find it."""
        return [f"-Dio.tmp.dirs={self.commands.directory}", f"-Djobmanager.rpc.port={self.master_port}"]

    def start(self, verb: str) -> Started:
        """Start one of its processes."""
        return self.commands.start(
            verb,
            *self.where,
            f"-Dtaskmanager.rpc.port={self.worker_port}",
            "-Drest.authentication.enabled=true",
            "-Drest.bind-port=0",
            # a TaskManager notices soon that its JobManager is gone
            "-Dheartbeat.interval=500 ms",
            "-Dheartbeat.timeout=5 s",
        )

    def start_master(self) -> None:
        """Start the JobManager, and wait until it serves."""
        self.job_manager = self.start("jobmanager")
        wait_until(lambda: self._files("jobmanager.json"), "the JobManager to serve")

    def await_worker(self) -> None:
        """Wait until the JobManager has the TaskManager."""
        wait_until(self._has_worker, "the TaskManager to register")

    def kill_master(self) -> None:
        """Leave its port to whoever comes first."""
        assert self.job_manager is not None
        self.job_manager.process.kill()
        self.job_manager.process.wait()
        wait_until(lambda: none_is_left(self.commands.mark, JOB_MANAGER), "the JobManager to be gone")
        for file in self._files("jobmanager.json"):
            file.unlink()

    def _has_worker(self) -> bool:
        # the first is written again when it leads
        for served, tokens in zip(self._files("jobmanager.json"), self._files("rest-tokens.json")):
            address = json.loads(served.read_text())["web_address"]
            overview = Rest(address, json.loads(tokens.read_text())["read"]).get("/overview")
            return bool(overview["taskmanagers"] == 1)
        return False

    def _files(self, name: str) -> list[Path]:
        return list(self.commands.directory.glob(f"yarnflow-*/standalone-*/{name}"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of these tests' own, as they kill its JobManager."""
    with commands_in(tmp_path_factory.mktemp("cluster")) as commands:
        master_port, worker_port = free_ports(2)
        made = Cluster(commands, master_port, worker_port)
        made.start_master()
        made.start("taskmanager")
        made.await_worker()
        yield made


@contextmanager
def relay(port: int, server_port: int, method: str) -> Iterator[Callable[[], str]]:
    """Have the attacker listen at a port and pass on to another; gives how it ended, once it has."""
    attack = start_attack("relay", port, server_port, method)
    try:
        assert attack.stdout is not None and attack.stdout.readline() == "listening\n"
        yield lambda: attack.communicate(timeout=PATIENCE.command_s)[0]
    finally:
        attack.kill()
        attack.wait()


@pytest.mark.gate
def test_a_task_manager_is_not_reflected_to_itself(cluster: Cluster) -> None:
    """The JobManager is down, and another user has its port."""
    cluster.kill_master()
    try:
        with relay(cluster.master_port, cluster.worker_port, "TaskExecutor.log_files") as ended:
            outcome = ended()
            assert outcome.startswith("turned away: yarnflow refused: WRONG_PROCESS: the TaskManager at "), (
                outcome
            )
            assert "here is the TaskManager of cluster 'default'" in outcome
    finally:
        # and it goes on as soon as there is a JobManager again
        cluster.start_master()
        cluster.await_worker()


@pytest.mark.gate
def test_a_command_is_not_passed_on_to_the_job_manager(cluster: Cluster) -> None:
    """It dials an address of another user's, who speaks in its place."""
    (port,) = free_ports(1)
    with relay(port, cluster.master_port, "Dispatcher.rest_access") as ended:
        listed = cluster.commands.run(
            "list", "-m", f"127.0.0.1:{port}", f"-Dio.tmp.dirs={cluster.commands.directory}"
        )
        outcome = ended()
    assert outcome.startswith("turned away: yarnflow refused: WRONG_PROCESS: the client at "), outcome
    assert f"127.0.0.1:{port}" in listed.stderr and f"127.0.0.1:{cluster.master_port}" in listed.stderr
    assert "passes connections on" in listed.stderr and listed.stderr.count("\n") == 1
    assert listed.process.returncode in (errors.WrongProcess.exit_code, errors.RpcUnavailable.exit_code)
