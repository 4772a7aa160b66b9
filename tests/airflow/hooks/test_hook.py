"""The hook: where a job is, and how it ended."""

from __future__ import annotations

import pytest
from airflow.sdk import Connection

from tests.airflow.surroundings import JOB, OTHER, Connections, info, listed, token
from yarnflow.airflow.hooks.errors import CommandFailed, ConnectionUnusable, JobNotSuccessful
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer, rest_server

GONE = ("JOB_NOT_FOUND", "no job")


def test_the_newest_job_of_a_key(hook: YarnflowHook, command: FakeCommand) -> None:
    command.answers("list", listed(OTHER, JOB, job_key="k", web_address="http://there"))
    found = hook.find(job_key="k")
    assert found is not None
    assert (found.job_id, found.application_id, found.web_address) == (
        JOB,
        "application_1_0001",
        "http://there",
    )
    assert hook.find(job_key="other") is None
    command.forget("list")
    command.answers("list", error=("RPC_UNAVAILABLE", "no cluster"))
    assert hook.find(job_id=JOB) is None
    command.forget("list")
    command.answers("list", error=("YARN_UNAVAILABLE", "no ResourceManager"))
    with pytest.raises(CommandFailed, match="no ResourceManager"):
        hook.find(job_id=JOB)


def test_a_job_that_lives(hook: YarnflowHook, command: FakeCommand, server: RestServer) -> None:
    command.answers("token", token(server.address))
    server.add(JOB, JobStatus.RUNNING)
    assert hook.state(JOB).status is JobStatus.RUNNING
    assert hook.state(JOB).status is JobStatus.RUNNING
    assert command.verbs() == ["token"]


def test_its_application_is_named_where_it_is_known(
    hook: YarnflowHook, command: FakeCommand, server: RestServer
) -> None:
    command.answers("token", token(server.address))
    server.add(JOB, JobStatus.RUNNING)
    hook.runs_in(JOB, "application_1_7")
    hook.state(JOB)
    assert "-Dyarn.application.id=application_1_7" in command.calls[0].arguments


def test_addresses_of_the_connection_need_no_command(
    connections: Connections, server: RestServer
) -> None:
    connections.add(host=server.address.removeprefix("http://"), password="t0p-s3cret")
    server.add(JOB, JobStatus.RUNNING)
    assert YarnflowHook().state(JOB).status is JobStatus.RUNNING


def test_yarn_knows_how_it_ended(hook: YarnflowHook, command: FakeCommand) -> None:
    command.answers("token", error=GONE)
    error = {"code": "USER_CODE", "message": "ValueError: bad", "details": ""}
    command.answers("info", info(JOB, "FAILED", error))
    found = hook.state(JOB)
    assert found.failure is not None
    assert (found.status, found.failure.message) == (JobStatus.FAILED, "ValueError: bad")


def test_the_history_server_knows_how_it_ended(connections: Connections, command: FakeCommand) -> None:
    with rest_server() as history:
        connections.add(command=str(command.path), history_server=history.address)
        command.answers("token", error=GONE)
        command.answers("info", error=GONE)
        history.add(JOB, JobStatus.FINISHED)
        assert YarnflowHook().state(JOB).status is JobStatus.FINISHED
        with pytest.raises(JobNotSuccessful, match="nowhere to be found"):
            YarnflowHook().state(OTHER)


def test_yarn_that_does_not_answer_is_no_end(hook: YarnflowHook, command: FakeCommand) -> None:
    command.answers("token", error=GONE)
    command.answers("info", error=("YARN_UNAVAILABLE", "no ResourceManager"))
    with pytest.raises(CommandFailed, match="no ResourceManager"):
        hook.state(JOB)


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({"conn_type": "http"}, "is of the type http"),
        ({"conn_type": "yarnflow", "extra": "target=local"}, "its extra is not a JSON object"),
        ({"conn_type": "yarnflow", "extra": "[1]"}, "its extra is not a JSON object"),
    ],
)
def test_a_connection_of_another_kind(
    connections: Connections, connection: dict[str, str], said: str
) -> None:
    connections.by_id["c"] = Connection(conn_id="c", **connection)
    with pytest.raises(ConnectionUnusable, match=said):
        _ = YarnflowHook("c").settings


def test_the_button_of_the_form(hook: YarnflowHook, command: FakeCommand) -> None:
    command.answers("list", listed(JOB, OTHER))
    assert hook.test_connection() == (True, "2 jobs run")
    command.forget("list")
    command.answers("list", error=("YARN_UNAVAILABLE", "no ResourceManager"))
    assert hook.test_connection() == (False, "no ResourceManager")
