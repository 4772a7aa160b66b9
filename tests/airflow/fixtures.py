"""Fixtures for tests of the provider: Airflow's classes without a running Airflow, and clusters for tasks.

What a task gets from Airflow's worker (XCom, the task state store) is a fake here; real ones are in
``integration/airflow``.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# read when Airflow is imported, which makes files there
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="yarnflow-airflow-")
atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)
os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "true"

from airflow.sdk import Connection  # noqa: E402
from airflow.sdk.bases.operator import ExecutorSafeguard  # noqa: E402
from airflow.sdk.exceptions import AirflowNotFoundException  # noqa: E402

from tests.airflow.operators.jobs import PATH  # noqa: E402
from tests.airflow.surroundings import JOB, Connections, listed, new_context, submitted, token  # noqa: E402
from yarnflow.airflow.hooks import yarnflow as hook_module  # noqa: E402
from yarnflow.airflow.hooks.yarnflow import YarnflowHook  # noqa: E402
from yarnflow.airflow.operators import earlier  # noqa: E402
from yarnflow.core.states import JobStatus  # noqa: E402
from yarnflow.testing.outside.command import FakeCommand  # noqa: E402
from yarnflow.testing.outside.rest_server import RestServer, rest_server  # noqa: E402

GONE = ("JOB_NOT_FOUND", "no job")


@pytest.fixture(autouse=True)
def _called_by_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may call ``execute`` themselves."""
    monkeypatch.setattr(ExecutorSafeguard, "test_mode", True)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """Airflow's connections."""
    known = Connections()

    def get(conn_id: str) -> Connection:
        if conn_id not in known.by_id:
            raise AirflowNotFoundException(f"The conn_id `{conn_id}` isn't defined")
        return known.by_id[conn_id]

    async def aget(conn_id: str) -> Connection:
        return get(conn_id)

    monkeypatch.setattr(YarnflowHook, "get_connection", staticmethod(get))
    monkeypatch.setattr(YarnflowHook, "aget_connection", staticmethod(aget))
    return known


@pytest.fixture
def command(tmp_path: Path) -> FakeCommand:
    """The command ``yarnflow``."""
    directory = tmp_path / "command"
    directory.mkdir()
    return FakeCommand(directory)


@pytest.fixture
def server() -> Iterator[RestServer]:
    """A cluster's REST interface, with a token."""
    with rest_server(token="t0p-s3cret") as running:
        yield running


@pytest.fixture
def hook(connections: Connections, command: FakeCommand) -> YarnflowHook:
    """One whose connection has nothing but the command."""
    connections.add(command=str(command.path))
    return YarnflowHook()


@pytest.fixture
def context() -> dict[str, Any]:
    """What a task gets."""
    return new_context()


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
