"""The hook: where a job is, and how it ended."""

from __future__ import annotations

import asyncio

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from tests.airflow.surroundings import JOB, OTHER, Connections, info, listed, token
from yarnflow.airflow.hooks.errors import (
    CommandFailed,
    ConnectionUnusable,
    JobNotSuccessful,
    Refused,
    Unreachable,
)
from yarnflow.airflow.hooks.submission import Submit
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
    command.answers_instead("list", error=("APPLICATION_NOT_FOUND", "no application of yarnflow runs"))
    assert hook.find(job_id=JOB) is None
    assert asyncio.run(hook.afind("k")) is None


@pytest.mark.parametrize(
    "trouble", [("YARN_UNAVAILABLE", "no ResourceManager"), ("RPC_UNAVAILABLE", "no cluster answers")]
)
def test_nobody_who_answers_is_no_proof_that_there_is_no_job(
    hook: YarnflowHook, command: FakeCommand, trouble: tuple[str, str]
) -> None:
    command.answers("list", error=trouble)
    with pytest.raises(CommandFailed, match=trouble[1]):
        hook.find(job_id=JOB)
    with pytest.raises(CommandFailed, match=trouble[1]):
        asyncio.run(hook.afind("k"))


def test_a_cluster_that_does_not_answer_may_have_the_job(hook: YarnflowHook, command: FakeCommand) -> None:
    document = listed(OTHER, job_key="k")
    silent = {**document["clusters"][0], "name": "application_1_0009", "error": "nobody leads"}
    command.answers("list", {**document, "clusters": [*document["clusters"], silent]})
    found = hook.find(job_key="k")
    assert found is not None and found.job_id == OTHER
    said = f"whether a job {JOB} lives is not known now: application_1_0009: nobody leads"
    with pytest.raises(CommandFailed, match=said):
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


@pytest.mark.parametrize("answers", [False, True])
def test_a_history_server_that_does_not_answer_is_no_proof_that_nobody_knows(
    connections: Connections, command: FakeCommand, answers: bool
) -> None:
    with rest_server(token="of-another") as other:
        connections.add(command=str(command.path), history_server=other.address)
        command.answers("token", error=GONE)
        command.answers("info", error=GONE)
        if not answers:
            other.close()
        kind = Refused if answers else Unreachable
        with pytest.raises(kind, match=other.address):
            YarnflowHook().state(JOB)
        with pytest.raises(kind, match=other.address):
            asyncio.run(YarnflowHook().aended(JOB))


def test_a_cluster_that_is_only_silent_has_not_lost_its_job(
    connections: Connections, command: FakeCommand, server: RestServer
) -> None:
    """The command knows of no application: the cluster is that of the addresses."""
    connections.add(command=str(command.path), host=server.address, password="t0p-s3cret")
    command.answers("info", error=("APPLICATION_NOT_FOUND", "no application of yarnflow runs"))
    server.close()
    with pytest.raises(Unreachable, match="no REST interface answers"):
        YarnflowHook().state(JOB)


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


def test_a_trigger_of_a_dag_that_is_tested_finds_its_connection(
    hook: YarnflowHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In `airflow dags test` Airflow answers no asynchronous question."""

    async def aget(conn_id: str) -> Connection:
        raise AirflowNotFoundException(conn_id)

    monkeypatch.setattr(YarnflowHook, "aget_connection", staticmethod(aget))
    assert asyncio.run(hook.load()).conn_id == "yarnflow_default"
    with pytest.raises(ConnectionUnusable, match="there is no connection nowhere"):
        asyncio.run(YarnflowHook("nowhere").load())


def test_the_button_of_the_form(hook: YarnflowHook, command: FakeCommand) -> None:
    command.answers("list", listed(JOB, OTHER))
    assert hook.test_connection() == (True, "2 jobs run")
    command.answers_instead("list", error=("YARN_UNAVAILABLE", "no ResourceManager"))
    assert hook.test_connection() == (False, "no ResourceManager")


def test_the_button_asks_the_addresses_as_well(
    connections: Connections, command: FakeCommand, server: RestServer
) -> None:
    command.answers("list", listed())
    here = "connection yarnflow_default: "
    for password, told in (
        ("t0p-s3cret", (True, "no job runs now")),
        ("another", f"{here}its REST token is not accepted; what `yarnflow token` prints"),
        ("r3ad", f"{here}its REST token may only read"),
        ("", f"{here}it has no REST token; what `yarnflow token` prints belongs"),
    ):
        server.read_token = "r3ad"
        connections.add(command=str(command.path), host=server.address, password=password)
        found = YarnflowHook().test_connection()
        if isinstance(told, tuple):
            assert found == told
        else:
            assert not found[0] and told in found[1]
    assert set(server.requests) == {("GET", "/overview"), ("PATCH", f"/jobs/{'0' * 32}?mode=cancel")}


@pytest.mark.parametrize(
    ("target", "code", "is_good"),
    [
        ("yarn-per-job", "APPLICATION_NOT_FOUND", True),
        ("local", "RPC_UNAVAILABLE", True),
        ("yarn-session", "APPLICATION_NOT_FOUND", False),
        ("remote", "RPC_UNAVAILABLE", False),
        ("yarn-per-job", "RPC_UNAVAILABLE", False),
        ("yarn-per-job", "YARN_UNAVAILABLE", False),
    ],
)
def test_where_each_job_has_a_cluster_of_its_own_the_button_wants_none(
    connections: Connections, command: FakeCommand, target: str, code: str, is_good: bool
) -> None:
    command.answers("list", error=(code, "there is none"))
    connections.add(command=str(command.path), target=target)
    assert YarnflowHook().test_connection() == (is_good, "no job runs now" if is_good else "there is none")


@pytest.mark.parametrize("name", ["conf_dir", "hadoop_conf_dir"])
def test_the_button_looks_at_directories(connections: Connections, command: FakeCommand, name: str) -> None:
    connections.add(command=str(command.path), **{name: "/nope"})
    said = f"connection yarnflow_default: {name} /nope is no directory here"
    assert YarnflowHook().test_connection() == (False, said)


@pytest.mark.parametrize("target", ["yarn-per-job", "yarn-application"])
def test_addresses_are_not_those_of_a_cluster_of_its_own(
    connections: Connections, command: FakeCommand, server: RestServer, target: str
) -> None:
    command.answers("list", listed())
    connections.add(command=str(command.path), host=server.address, password="t0p-s3cret", target=target)
    is_good, said = YarnflowHook().test_connection()
    assert not is_good and f"has REST addresses, and target {target} starts a cluster for each job" in said


def test_arguments_that_are_too_long_are_no_fault_of_the_connection(hook: YarnflowHook) -> None:
    with pytest.raises(CommandFailed, match="^arguments and options of the command yarnflow are longer"):
        hook.submit(Submit("job.py", ["x" * 200_000]))


@pytest.mark.parametrize("program", ["", "--help", "-Dx=1"])
def test_what_is_no_path_of_a_program(hook: YarnflowHook, program: str) -> None:
    for ask in (hook.submit, hook.check_program):
        with pytest.raises(CommandFailed, match=f"application={program!r} is no path of a program"):
            ask(Submit(program))


def test_a_leader_that_is_gone_when_its_job_is_canceled(
    hook: YarnflowHook, command: FakeCommand, server: RestServer
) -> None:
    command.answers("token", token("http://127.0.0.1:1"))
    command.answers("token", token(server.address))
    server.add(JOB, JobStatus.RUNNING)
    hook.cancel(JOB)
    assert server.job(JOB).status is JobStatus.CANCELED
