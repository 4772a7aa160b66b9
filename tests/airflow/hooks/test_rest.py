"""Questions to the REST interface, in a worker and in the triggerer."""

from __future__ import annotations

import asyncio

import pytest

from tests.airflow.surroundings import JOB
from yarnflow.airflow.hooks import questions, rest
from yarnflow.airflow.hooks.errors import Refused, Unreachable
from yarnflow.airflow.hooks.rest import Access, AsyncRestClient, EventParser, RestClient
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.rest_server import RestServer, rest_server

TOKEN = "t0p-s3cret"


def test_how_a_job_is(server: RestServer) -> None:
    server.add(JOB, JobStatus.RUNNING, "counts").behind = {"records": 7}
    server.completes(JOB, 1)
    server.completes(JOB, 2, savepoint="/savepoints/2")
    with RestClient(Access((server.address,), TOKEN)) as client:
        assert client.ask(questions.job(JOB)).status is JobStatus.RUNNING
        assert client.ask(questions.lag(JOB)) == 7
        newest, oldest = client.ask(questions.checkpoints(JOB))
        assert client.ask(questions.failure(JOB)) is None
    assert (newest.is_savepoint, newest.path, newest.completed_ms) == (True, "/savepoints/2", 2000)
    assert not oldest.is_savepoint


def test_why_a_job_failed(server: RestServer) -> None:
    server.add(JOB)
    server.becomes(JOB, JobStatus.FAILED, ("USER_CODE", "job.py:3: ValueError: bad\nTraceback\n"))
    with RestClient(Access((server.address,), TOKEN)) as client:
        found = client.ask(questions.failure(JOB))
    assert found == questions.Failure("USER_CODE", "job.py:3: ValueError: bad", "Traceback\n")


def test_a_stop(server: RestServer) -> None:
    with RestClient(Access((server.address,), TOKEN)) as client:
        server.add(JOB, JobStatus.RUNNING)
        client.ask(questions.begin_stop(JOB, "1" * 32, "/a"))
        outcome = client.ask(questions.savepoint_outcome(JOB, "1" * 32))
        assert outcome == questions.Outcome(True, "/a/savepoint-1")
        assert client.ask(questions.job(JOB)).stop == questions.Stop("/a/savepoint-1", "1" * 32)
        server.add(JOB, JobStatus.RUNNING)
        server.savepoint_failure = "no room"
        client.ask(questions.begin_stop(JOB, "2" * 32, ""))
        failed = client.ask(questions.savepoint_outcome(JOB, "2" * 32)).failure
        assert failed is not None and failed.message == "no room"
        client.ask(questions.cancel(JOB))
        assert client.ask(questions.job(JOB)).status is JobStatus.CANCELED


def test_the_other_master_is_asked_when_one_is_gone(server: RestServer) -> None:
    server.add(JOB)
    with rest_server() as gone:
        address = gone.address
    with RestClient(Access((address, server.address), TOKEN)) as client:
        assert client.ask(questions.job(JOB)).job_id == JOB

    async def ask() -> JobStatus:
        async with AsyncRestClient(Access((address, server.address), TOKEN)) as client:
            return (await client.ask(questions.job(JOB))).status

    assert asyncio.run(ask()) is JobStatus.CREATED


def test_nobody_answers() -> None:
    with rest_server() as gone:
        address = gone.address
    with RestClient(Access((address,))) as client, pytest.raises(Unreachable, match=address) as raised:
        client.ask(questions.job(JOB))
    assert "\n" not in str(raised.value)
    with RestClient(Access(())) as client, pytest.raises(Unreachable, match="no address is known"):
        client.ask(questions.job(JOB))
    # as somebody has typed it
    with RestClient(Access(("http://there:port",))) as client, pytest.raises(Unreachable, match="there:port"):
        client.ask(questions.job(JOB))


def test_what_is_refused_is_said_without_the_token(server: RestServer) -> None:
    with RestClient(Access((server.address,), "wr0ng")) as client, pytest.raises(Refused) as raised:
        client.ask(questions.job(JOB))
    assert raised.value.status == 401
    assert "a token is needed" in str(raised.value)
    assert "wr0ng" not in str(raised.value)


def test_events_go_on_behind_the_last_one(server: RestServer) -> None:
    server.add(JOB, JobStatus.RUNNING)
    server.completes(JOB, 1)
    server.becomes(JOB, JobStatus.FINISHED)

    async def names(last: str) -> list[str]:
        async with AsyncRestClient(Access((server.address,), TOKEN)) as client:
            async with client.events(JOB, last) as events:
                return [event.name async for event in events]

    assert asyncio.run(names("")) == ["state", "checkpoint", "state"]
    assert asyncio.run(names("2")) == ["state"]


def test_lines_become_events() -> None:
    parser = EventParser()
    lines = ["retry: 2000", "", ": heartbeat", "", "id: 7", "event: state", 'data: {"a":1}']
    assert [parser.feed(line) for line in lines] == [None] * len(lines)
    assert parser.feed("") == rest.Event("state", {"a": 1}, "7")


@pytest.mark.parametrize(
    ("ask", "path"),
    [(questions.cancel(JOB), "yarn-cancel"), (questions.begin_stop(JOB, "1" * 32, "/a"), "yarn-stop")],
)
def test_the_proxy_of_yarn_passes_on_puts_with_the_token_in_the_body(
    ask: questions.Ask[object], path: str
) -> None:
    proxy = "http://rm:8088/proxy/application_1_1"
    sent = rest._Addresses(Access((proxy,), TOKEN)).request(proxy, ask)
    assert (sent["method"], sent["url"]) == ("PUT", f"{proxy}/jobs/{JOB}/{path}")
    assert sent["json"] == {**(ask.body or {}), "token": TOKEN}
