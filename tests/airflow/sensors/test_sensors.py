"""Sensors for state, age of the last checkpoint, and lag."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from tests.airflow.surroundings import JOB, Connections, listed, token
from yarnflow.airflow.hooks.errors import JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.sensors.job import (
    YarnflowCheckpointSensor,
    YarnflowJobStateSensor,
    YarnflowLagSensor,
)
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer, rest_server


@pytest.fixture
def cluster(connections: Connections, command: FakeCommand, server: RestServer) -> RestServer:
    """One with a job of the key k."""
    connections.add(command=str(command.path))
    command.answers("list", listed(JOB, web_address=server.address, job_key="k"))
    command.answers("token", token(server.address))
    command.answers("info", error=("JOB_NOT_FOUND", "no job"))
    server.add(JOB)
    return server


def test_a_state(cluster: RestServer, command: FakeCommand, context: dict[str, Any]) -> None:
    sensor = YarnflowJobStateSensor(task_id="t", job_key="k")
    assert not sensor.poke(context)
    cluster.becomes(JOB, JobStatus.RUNNING)
    assert sensor.poke(context)
    assert command.verbs() == ["list", "token"]
    cluster.becomes(JOB, JobStatus.CANCELED)
    with pytest.raises(JobNotSuccessful, match="ended CANCELED, and will not be RUNNING"):
        sensor.poke(context)


def test_the_age_of_the_last_checkpoint(cluster: RestServer, context: dict[str, Any]) -> None:
    sensor = YarnflowCheckpointSensor(task_id="t", job_id=JOB, max_age=timedelta(minutes=1))
    assert not sensor.poke(context)
    cluster.completes(JOB, 1)
    assert not sensor.poke(context)
    cluster.completes(JOB, int(time.time()))
    assert sensor.poke(context)


def test_how_far_it_is_behind(cluster: RestServer, context: dict[str, Any]) -> None:
    sensor = YarnflowLagSensor(task_id="t", job_key="k", max_records=10)
    assert not sensor.poke(context)
    cluster.job(JOB).behind = {"records": 11}
    assert not sensor.poke(context)
    cluster.job(JOB).behind = {"records": 10}
    assert sensor.poke(context)


def test_a_job_that_is_not_there_yet(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.forget("list")
    command.answers("list", error=("RPC_UNAVAILABLE", "no cluster"))
    sensor = YarnflowLagSensor(task_id="t", job_key="k", max_records=10)
    assert not sensor.poke(context)


def test_another_leader(cluster: RestServer, command: FakeCommand, context: dict[str, Any]) -> None:
    sensor = YarnflowLagSensor(task_id="t", job_key="k", max_records=10)
    assert not sensor.poke(context)
    cluster.close()
    assert not sensor.poke(context)
    with rest_server(token="t0p-s3cret") as other:
        other.add(JOB, JobStatus.RUNNING).behind = {"records": 1}
        command.forget("token")
        command.answers("token", token(other.address))
        assert sensor.poke(context)


def test_one_name_is_needed(cluster: RestServer, context: dict[str, Any]) -> None:
    with pytest.raises(YarnflowTaskError, match="give job_id or job_key"):
        YarnflowJobStateSensor(task_id="t").poke(context)
