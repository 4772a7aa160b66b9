"""A job is followed through all that happens around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from tests.airflow.surroundings import JOB
from yarnflow.airflow.hooks.documents import EndedJob
from yarnflow.airflow.hooks.errors import CommandFailed, Refused, Unreachable
from yarnflow.airflow.hooks.questions import Failure
from yarnflow.airflow.hooks.rest import Access, AsyncRestClient, Event
from yarnflow.airflow.jobs import follow
from yarnflow.airflow.jobs.follow import Change, JobFollower
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.rest_server import RestServer, rest_server

TOKEN = "t0p-s3cret"


class Source:
    """Says where the cluster is now."""

    def __init__(self, server: RestServer) -> None:
        self.server = server
        self.asked: list[bool] = []
        self.ended: EndedJob | None = None
        self.trouble: CommandFailed | None = None

    async def aaccess(self, job_id: str, *, again: bool = False) -> Access:
        self.asked.append(again)
        if self.trouble is not None:
            raise self.trouble
        return Access((self.server.address,), self.server.token)

    async def aended(self, job_id: str) -> EndedJob | None:
        return self.ended


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_PAUSE_S", 0.01)
    monkeypatch.setattr(follow, "_LONGEST_PAUSE_S", 0.01)


def changes(
    source: Source, then: dict[int, Callable[[], None]] | None = None, *, lost_after_s: float = 600.0
) -> tuple[list[Change], list[str]]:
    """All changes up to the last one, and what was noted; something happens when so many were seen."""
    notes: list[str] = []
    seen: list[Change] = []

    async def collect() -> None:
        follower = JobFollower(source, JOB, notes.append, poll_s=0.01, lost_after_s=lost_after_s)
        # a follower that is wrong may follow for ever
        async with asyncio.timeout(300), aclosing(follower.changes()) as found:
            async for change in found:
                seen.append(change)
                happens = (then or {}).get(len(seen))
                if happens is not None:
                    happens()

    asyncio.run(collect())
    return seen, notes


def statuses(seen: list[Change]) -> list[JobStatus]:
    return [change.status for change in seen if change.status is not None]


def test_states_and_checkpoints_to_the_end(server: RestServer) -> None:
    server.add(JOB)
    seen, notes = changes(
        Source(server),
        {
            1: lambda: server.becomes(JOB, JobStatus.RUNNING),
            2: lambda: server.completes(JOB, 1),
            3: lambda: server.becomes(JOB, JobStatus.FINISHED),
        },
    )
    assert statuses(seen) == [JobStatus.CREATED, JobStatus.RUNNING, JobStatus.FINISHED]
    assert [change.checkpoint.checkpoint_id for change in seen if change.checkpoint] == [1]
    assert notes == []


def test_why_it_failed_is_told_with_its_end(server: RestServer) -> None:
    server.add(JOB, JobStatus.RUNNING)
    failure = ("USER_CODE", "job.py:3: ValueError: bad\nTraceback")
    seen, _ = changes(Source(server), {1: lambda: server.becomes(JOB, JobStatus.FAILED, failure)})
    told = Failure("USER_CODE", "job.py:3: ValueError: bad", "Traceback")
    assert seen[-1] == Change(JobStatus.FAILED, told)


def test_a_broken_connection_loses_nothing_and_repeats_nothing(server: RestServer) -> None:
    server.add(JOB, JobStatus.RUNNING)

    def break_off() -> None:
        server.break_connections()
        server.completes(JOB, 1)

    seen, _ = changes(Source(server), {1: break_off, 2: lambda: server.becomes(JOB, JobStatus.FINISHED)})
    assert statuses(seen) == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert [change.checkpoint.checkpoint_id for change in seen if change.checkpoint] == [1]


def test_another_leader_is_followed(server: RestServer) -> None:
    server.add(JOB, JobStatus.RUNNING)
    with rest_server(token=TOKEN) as other:
        other.add(JOB, JobStatus.RUNNING)
        source = Source(server)

        def fail_over() -> None:
            server.close()
            source.server = other
            other.becomes(JOB, JobStatus.FINISHED)

        seen, notes = changes(source, {1: fail_over})
    assert statuses(seen) == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert len(notes) == 1
    assert True in source.asked


def test_without_events_the_job_is_asked_again_and_again() -> None:
    with rest_server(has_events=False) as server:
        server.add(JOB, JobStatus.RUNNING)
        seen, notes = changes(
            Source(server),
            {1: lambda: server.completes(JOB, 1), 2: lambda: server.becomes(JOB, JobStatus.CANCELED)},
        )
        assert statuses(seen) == [JobStatus.RUNNING, JobStatus.CANCELED]
        assert [change.checkpoint.checkpoint_id for change in seen if change.checkpoint] == [1]
        assert notes == []


@pytest.mark.parametrize("status", [JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED])
def test_a_cluster_that_is_gone_with_its_job(server: RestServer, status: JobStatus) -> None:
    server.add(JOB, JobStatus.RUNNING)
    source = Source(server)
    failure = Failure("APPLICATION_FAILED", "KILLED") if status is JobStatus.FAILED else None

    def end() -> None:
        server.forget(JOB)
        source.ended = EndedJob(JOB, "counts", status, failure)

    seen, _ = changes(source, {1: end})
    assert seen[-1] == Change(status, failure)


def test_a_job_that_nobody_knows_any_more_is_lost_at_once(server: RestServer) -> None:
    server.add(JOB, JobStatus.RUNNING)
    source = Source(server)

    def end() -> None:
        server.forget(JOB)
        source.trouble = CommandFailed("JOB_NOT_FOUND", "no job")

    seen, _ = changes(source, {1: end})
    assert "nobody knows how it ended" in seen[-1].lost
    assert JOB in seen[-1].lost


def test_silence_is_borne_for_a_time_and_told_once(server: RestServer) -> None:
    source = Source(server)
    source.trouble = CommandFailed("RPC_UNAVAILABLE", "nobody answers")
    seen, notes = changes(source, lost_after_s=1.0)
    assert "it may still run: nobody answers" in seen[-1].lost
    assert len(notes) == 1
    assert len(source.asked) > 1


def test_a_wrong_token_is_not_tried_for_ever(server: RestServer) -> None:
    source = Source(server)
    server.add(JOB)

    async def wrong(job_id: str, *, again: bool = False) -> Access:
        return Access((server.address,), "wr0ng")

    source.aaccess = wrong  # type: ignore[method-assign]
    seen, _ = changes(source)
    assert "does not accept the token" in seen[-1].lost
    assert "wr0ng" not in seen[-1].lost


def test_a_token_of_a_cluster_that_was_started_again(server: RestServer) -> None:
    """The one that is known is another one's; where the job is tells the command."""
    source = Source(server)
    server.add(JOB, JobStatus.RUNNING)
    known = source.aaccess

    async def access(job_id: str, *, again: bool = False) -> Access:
        found = await known(job_id, again=again)
        return found if again else Access(found.addresses, "0ld")

    source.aaccess = access  # type: ignore[method-assign]
    seen, notes = changes(source, {1: lambda: server.becomes(JOB, JobStatus.FINISHED)})
    assert statuses(seen) == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert len(notes) == 1


def test_a_cluster_that_serves_as_many_streams_as_it_may(server: RestServer) -> None:
    """It answers other questions, until there is room."""
    server.add(JOB, JobStatus.RUNNING)
    server.is_full = True

    def room() -> None:
        server.is_full = False
        server.becomes(JOB, JobStatus.FINISHED)

    source = Source(server)
    seen, notes = changes(source, {1: lambda: server.completes(JOB, 1), 2: room}, lost_after_s=0.05)
    assert statuses(seen) == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert [change.checkpoint.checkpoint_id for change in seen if change.checkpoint] == [1]
    assert notes == [] and True not in source.asked


@pytest.mark.parametrize("end", [JobStatus.FINISHED, None])
def test_a_history_server_that_does_not_answer_is_no_end(server: RestServer, end: JobStatus | None) -> None:
    server.add(JOB, JobStatus.RUNNING)
    source = Source(server)
    asked = []

    async def ended(job_id: str) -> EndedJob | None:
        asked.append(job_id)
        if end is None or len(asked) < 3:
            raise Unreachable("http://history:8082: connection refused")
        return EndedJob(JOB, "counts", end)

    source.aended = ended  # type: ignore[method-assign]

    def gone() -> None:
        server.forget(JOB)
        source.trouble = CommandFailed("JOB_NOT_FOUND", "no job")

    seen, _ = changes(source, {1: gone}, lost_after_s=600.0 if end else 0.1)
    if end:
        assert statuses(seen) == [JobStatus.RUNNING, end]
    else:
        assert "it may still run: http://history:8082" in seen[-1].lost


def test_a_history_server_that_wants_a_token_says_nothing_of_the_cluster(server: RestServer) -> None:
    server.add(JOB, JobStatus.RUNNING)
    source = Source(server)

    async def ended(job_id: str) -> EndedJob | None:
        raise Refused(401, "http://history:8082/jobs/x answers 401")

    source.aended = ended  # type: ignore[method-assign]

    def gone() -> None:
        server.forget(JOB)
        source.trouble = CommandFailed("JOB_NOT_FOUND", "no job")

    seen, _ = changes(source, {1: gone}, lost_after_s=0.1)
    assert "nobody has answered" in seen[-1].lost and "history:8082" in seen[-1].lost


def test_an_idle_job_behind_connections_that_break_is_heard_of(
    server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing happens to it, and so nothing is told."""
    server.add(JOB, JobStatus.RUNNING)
    events, breaks = AsyncRestClient.events, iter(range(20))

    @asynccontextmanager
    async def breaking(
        client: AsyncRestClient, job_id: str, last: str = ""
    ) -> AsyncIterator[AsyncIterator[Event]]:
        async with events(client, job_id, last) as found:
            if last and next(breaks, None) is not None:
                found = broken()
            elif last:
                server.becomes(JOB, JobStatus.FINISHED)
            yield found

    async def broken() -> AsyncIterator[Event]:
        nothing: tuple[Event, ...] = ()
        for event in nothing:
            yield event
        raise Unreachable("connection reset")

    monkeypatch.setattr(AsyncRestClient, "events", breaking)
    seen, _ = changes(Source(server), {1: server.break_connections}, lost_after_s=0.1)
    assert statuses(seen) == [JobStatus.RUNNING, JobStatus.FINISHED]
