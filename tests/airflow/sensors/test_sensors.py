"""Sensors for state, age of the last checkpoint, and lag."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from tests.airflow.surroundings import JOB, OTHER, Connections, info, listed, token
from yarnflow.airflow.hooks.errors import JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.sensors.job import (
    JobSensor,
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


@pytest.mark.parametrize("gone", [False, True])
def test_the_end_of_a_job_that_was_found_by_its_key(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], gone: bool
) -> None:
    """The next one is waited for, in each mode of a sensor; what is named by its id does not come back."""
    by_key, by_id = (
        YarnflowJobStateSensor(task_id="t", **named) for named in ({"job_key": "k"}, {"job_id": JOB})
    )
    assert not by_key.poke(context)
    if gone:
        cluster.forget(JOB)
    else:
        cluster.becomes(JOB, JobStatus.CANCELED)
    assert not by_key.poke(context)
    with pytest.raises(JobNotSuccessful, match="nowhere to be found" if gone else "ended CANCELED"):
        by_id.poke(context)
    command.answers_instead("list", listed(OTHER, web_address=cluster.address, job_key="k"))
    cluster.add(OTHER, JobStatus.RUNNING)
    assert by_key.poke(context)


def test_the_age_of_the_last_checkpoint(cluster: RestServer, context: dict[str, Any]) -> None:
    sensor = YarnflowCheckpointSensor(task_id="t", job_id=JOB, max_age=timedelta(minutes=1))
    assert not sensor.poke(context)
    cluster.completes(JOB, 1)
    assert not sensor.poke(context)
    cluster.completes(JOB, int(time.time()))
    assert sensor.poke(context)


def test_a_job_that_has_nothing_to_do_needs_no_checkpoint(
    cluster: RestServer, context: dict[str, Any]
) -> None:
    sensor = YarnflowCheckpointSensor(task_id="t", job_id=JOB, max_age=timedelta(minutes=1))
    cluster.completes(JOB, 1)
    assert not sensor.poke(context)
    cluster.job(JOB).up_to_date_ms = int(time.time() * 1000)
    assert sensor.poke(context)


@pytest.mark.parametrize("max_age", ["5", None, True, timedelta(seconds=-1)])
def test_an_age_that_is_none_is_told_before_there_is_a_job(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], max_age: Any
) -> None:
    with pytest.raises(YarnflowTaskError, match="max_age=.* is no number of seconds above 0"):
        YarnflowCheckpointSensor(task_id="t", job_key="none", max_age=max_age).poke(context)
    assert command.verbs() == []


def test_a_savepoint_is_as_good_as_a_checkpoint(cluster: RestServer, context: dict[str, Any]) -> None:
    cluster.completes(JOB, int(time.time()), savepoint="/sp/1")
    assert YarnflowCheckpointSensor(task_id="t", job_id=JOB, max_age=timedelta(minutes=1)).poke(context)


def test_a_key_that_a_template_gives_as_a_number(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers_instead("list", listed(JOB, web_address=cluster.address, job_key="20260101"))
    cluster.becomes(JOB, JobStatus.RUNNING)
    sensor = YarnflowJobStateSensor(task_id="t", job_key="{{ ds_nodash }}")
    sensor.job_key = 20260101  # type: ignore[assignment]
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
    command.answers_instead("list", error=("APPLICATION_NOT_FOUND", "no cluster"))
    sensor = YarnflowLagSensor(task_id="t", job_key="k", max_records=10)
    assert not sensor.poke(context)


def test_another_leader(cluster: RestServer, command: FakeCommand, context: dict[str, Any]) -> None:
    sensor = YarnflowLagSensor(task_id="t", job_key="k", max_records=10)
    assert not sensor.poke(context)
    cluster.close()
    assert not sensor.poke(context)
    with rest_server(token="t0p-s3cret") as other:
        other.add(JOB, JobStatus.RUNNING).behind = {"records": 1}
        command.answers_instead("token", token(other.address))
        assert sensor.poke(context)


def test_one_name_is_needed(cluster: RestServer, context: dict[str, Any]) -> None:
    with pytest.raises(YarnflowTaskError, match="give job_id or job_key"):
        YarnflowJobStateSensor(task_id="t").poke(context)


@pytest.mark.parametrize("name", ["RUNING", "running"])
def test_a_state_that_is_none(name: str, cluster: RestServer, context: dict[str, Any]) -> None:
    with pytest.raises(YarnflowTaskError, match=f"states: '{name}' is none of .*RUNNING, "):
        YarnflowJobStateSensor(task_id="t", job_id=JOB, states=[name]).poke(context)


def test_what_is_no_id_of_a_job(command: FakeCommand, cluster: RestServer, context: dict[str, Any]) -> None:
    with pytest.raises(YarnflowTaskError, match="task t: 'stream' is not a job id"):
        YarnflowLagSensor(task_id="t", job_id="stream", max_records=10).poke(context)
    assert command.verbs() == []


SENSORS: list[tuple[type[JobSensor], dict[str, Any]]] = [
    (YarnflowCheckpointSensor, {"max_age": timedelta(minutes=1)}),
    (YarnflowLagSensor, {"max_records": 10}),
]


@pytest.mark.parametrize(("sensor", "arguments"), SENSORS)
def test_a_named_job_that_is_over_is_not_waited_for(
    sensor: type[JobSensor], arguments: dict[str, Any], cluster: RestServer, context: dict[str, Any]
) -> None:
    cluster.becomes(JOB, JobStatus.FINISHED)
    with pytest.raises(JobNotSuccessful, match=f"job {JOB} ended FINISHED, and does not get there"):
        sensor(task_id="t", job_id=JOB, **arguments).poke(context)


@pytest.mark.parametrize(("sensor", "arguments"), SENSORS)
def test_a_named_job_that_nobody_knows_is_not_waited_for(
    sensor: type[JobSensor], arguments: dict[str, Any], cluster: RestServer, context: dict[str, Any]
) -> None:
    with pytest.raises(JobNotSuccessful, match=f"job {OTHER} is nowhere to be found"):
        sensor(task_id="t", job_id=OTHER, **arguments).poke(context)


@pytest.mark.parametrize(("sensor", "arguments"), SENSORS)
def test_the_next_job_of_a_key_is_waited_for(
    sensor: type[JobSensor],
    arguments: dict[str, Any],
    cluster: RestServer,
    command: FakeCommand,
    context: dict[str, Any],
) -> None:
    waiting = sensor(task_id="t", job_key="k", **arguments)
    cluster.becomes(JOB, JobStatus.FAILED)
    assert not waiting.poke(context)
    cluster.add(OTHER, JobStatus.RUNNING).behind = {"records": 1}
    cluster.completes(OTHER, int(time.time()))
    command.answers_instead("list", listed(OTHER, web_address=cluster.address, job_key="k"))
    assert waiting.poke(context)


@pytest.mark.parametrize(("sensor", "arguments"), SENSORS)
def test_a_named_job_whose_cluster_of_the_connection_is_gone(
    sensor: type[JobSensor],
    arguments: dict[str, Any],
    cluster: RestServer,
    connections: Connections,
    command: FakeCommand,
    context: dict[str, Any],
) -> None:
    connections.add(command=str(command.path), host=cluster.address, password="t0p-s3cret")
    waiting = sensor(task_id="t", job_id=JOB, **arguments)
    cluster.close()
    assert not waiting.poke(context)
    command.answers_instead("info", info(JOB, "FINISHED"))
    with pytest.raises(JobNotSuccessful, match="ended FINISHED, and does not get there"):
        waiting.poke(context)


@pytest.mark.parametrize("given", ["10", 10])
def test_a_number_of_records_may_be_a_text(cluster: RestServer, context: dict[str, Any], given: Any) -> None:
    cluster.job(JOB).behind = {"records": 10}
    assert YarnflowLagSensor(task_id="t", job_key="k", max_records=given).poke(context)


@pytest.mark.parametrize("given", ["many", "-1", "", None, 1.5])
def test_what_is_no_number_of_records(cluster: RestServer, context: dict[str, Any], given: Any) -> None:
    with pytest.raises(YarnflowTaskError, match="max_records=.* is no number of records"):
        YarnflowLagSensor(task_id="t", job_key="k", max_records=given).poke(context)
