"""Clusters that the tasks find."""

from __future__ import annotations

import pytest

from tests.airflow.operators.jobs import PATH
from tests.airflow.surroundings import JOB, Connections, listed, submitted, token
from yarnflow.airflow.hooks import yarnflow as hook_module
from yarnflow.airflow.operators import earlier
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer

GONE = ("JOB_NOT_FOUND", "no job")


@pytest.fixture
def cluster(
    connections: Connections, command: FakeCommand, server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> RestServer:
    """One that the command finds, and that takes a job."""
    monkeypatch.setattr(earlier, "_LOOK_AGAIN_S", 0.01)
    connections.add(command=str(command.path), target="yarn-per-job")
    command.answers("submit", submitted(JOB), notes=("Submitting.",))
    command.answers("list", listed(JOB, web_address=server.address, job_key="k"))
    command.answers("token", token(server.address))
    command.answers("info", error=GONE)
    return server


@pytest.fixture
def cluster_with_job(
    connections: Connections, command: FakeCommand, server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> RestServer:
    """One with a running job of the key k."""
    monkeypatch.setattr(hook_module, "_LOOK_AGAIN_S", 0.01)
    connections.add(command=str(command.path))
    command.answers("list", listed(JOB, web_address=server.address, job_key="k"))
    command.answers("token", token(server.address))
    command.answers("info", error=GONE)
    command.answers("stop", {"job_id": JOB, "savepoint_path": PATH, "request_id": "r"})
    command.answers("savepoint", {"job_id": JOB, "savepoint_path": PATH, "request_id": "r"})
    server.add(JOB, JobStatus.RUNNING)
    return server
