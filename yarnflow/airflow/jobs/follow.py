"""Follows one job by its events until a task has seen enough: through failovers, restarts of the triggerer
and the end of its cluster.

Never decides what a change means to a task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

from yarnflow.airflow.hooks import questions
from yarnflow.airflow.hooks.documents import EndedJob, is_gone
from yarnflow.airflow.hooks.errors import CommandFailed, Refused, Unreachable
from yarnflow.airflow.hooks.questions import CheckpointState, Failure, Stop
from yarnflow.airflow.hooks.rest import Access, AsyncRestClient
from yarnflow.core.states import JobStatus

#: between attempts to reach a cluster again: the first, and the longest
_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 15.0

Note = Callable[[str], None]


class JobSource(Protocol):
    """Who knows where a job is; see :class:`yarnflow.airflow.hooks.yarnflow.YarnflowHook`."""

    async def aaccess(self, job_id: str, *, again: bool = False) -> Access:
        """Where its cluster's REST interface is."""

    async def aended(self, job_id: str) -> EndedJob | None:
        """How it ended, where its cluster is gone."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is new about a job."""

    #: None = a checkpoint, or nothing is known any more
    status: JobStatus | None = None
    #: why it FAILED
    failure: Failure | None = None
    checkpoint: CheckpointState | None = None
    #: how it was stopped, where it is FINISHED and was
    stop: Stop | None = None
    #: nobody knows the job any more: one line; no change follows
    lost: str = ""

    @property
    def is_last(self) -> bool:
        """No change follows."""
        return bool(self.lost) or (self.status is not None and self.status.globally_terminal)


class JobFollower:
    """Follows one job.

    Parameters
    ----------
    source : JobSource
    job_id : str
    note : callable
        Told in one line why nothing is heard of the job, once for each time.
    poll_s : float
        Between questions where events do not get through, as by YARN's web proxy.
    lost_after_s : float
        How long nobody needs to answer before the job is given up.
    """

    def __init__(
        self, source: JobSource, job_id: str, note: Note, *, poll_s: float = 10.0, lost_after_s: float = 600.0
    ) -> None:
        self._source = source
        self._job_id = job_id
        self._note = note
        self._poll_s = poll_s
        self._lost_after_s = lost_after_s
        self._last_event_id = ""
        self._status: JobStatus | None = None
        self._checkpoint_id = -1
        self._by_events = True
        self._silent_since_s: float | None = None
        self._pause_s = _PAUSE_S

    async def changes(self) -> AsyncGenerator[Change, None]:
        """What is new, until the job has ended for good or nobody knows it any more."""
        again = False
        while True:
            trouble: Exception | None = None
            try:
                access = await self._source.aaccess(self._job_id, again=again)
                async with AsyncRestClient(access) as client:
                    found = self._events(client) if self._by_events else self._polls(client)
                    # who looks away in the middle leaves no connection open
                    async with aclosing(found) as changes:
                        async for change in changes:
                            yield change
                            if change.is_last:
                                return
            except (Unreachable, Refused, CommandFailed) as error:
                trouble = error
            if trouble is not None:
                last = await self._in_trouble(trouble)
                if last is not None:
                    yield last
                    return
            again = trouble is not None
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _heard(self) -> None:
        self._silent_since_s, self._pause_s = None, _PAUSE_S

    async def _events(self, client: AsyncRestClient) -> AsyncGenerator[Change, None]:
        opened = False
        try:
            async with client.events(self._job_id, self._last_event_id) as events:
                opened, self._silent_since_s = True, None
                async for event in events:
                    self._heard()
                    self._last_event_id = event.event_id or self._last_event_id
                    if event.name == "state":
                        status = JobStatus(event.data["state"])
                        stop = questions.stop_of(event.data.get("stop"))
                        for change in await self._status_is(client, status, stop):
                            yield change
                    elif event.name == "checkpoint" and event.data["checkpoint"]["status"] == "COMPLETED":
                        for change in self._checkpoint_is(questions.checkpoint(event.data["checkpoint"])):
                            yield change
        except Unreachable:
            if opened:
                raise
            # a cluster that serves as many streams as it may answers other questions
            for change in await self._look(client):
                yield change
            await asyncio.sleep(self._poll_s)
            return
        except Refused as error:
            if error.status not in (404, 405, 501):
                raise
            # a job that is not known, or an interface between that has no events
            await client.ask(questions.job(self._job_id))
            self._by_events = False
            return
        # the connection ended before the job did; or its last events were not seen
        job = await client.ask(questions.job(self._job_id))
        self._silent_since_s = None
        for change in await self._status_is(client, job.status, job.stop):
            yield change

    async def _polls(self, client: AsyncRestClient) -> AsyncGenerator[Change, None]:
        while True:
            for change in await self._look(client):
                yield change
            await asyncio.sleep(self._poll_s)

    async def _look(self, client: AsyncRestClient) -> list[Change]:
        job = await client.ask(questions.job(self._job_id))
        found = await client.ask(questions.checkpoints(self._job_id))
        self._heard()
        changes = [change for each in reversed(found) for change in self._checkpoint_is(each)]
        return changes + await self._status_is(client, job.status, job.stop)

    async def _status_is(
        self, client: AsyncRestClient, status: JobStatus, stop: Stop | None
    ) -> list[Change]:
        if status is self._status:
            return []
        self._status = status
        failure = await self._failure(client) if status is JobStatus.FAILED else None
        return [Change(status, failure, stop=stop)]

    async def _failure(self, client: AsyncRestClient) -> Failure | None:
        try:
            return await client.ask(questions.failure(self._job_id))
        except (Unreachable, Refused):
            pass  # the cluster has ended with the job
        try:
            ended = await self._source.aended(self._job_id)
        except (Unreachable, Refused, CommandFailed):
            return None
        return None if ended is None else ended.failure

    def _checkpoint_is(self, checkpoint: CheckpointState) -> list[Change]:
        if checkpoint.checkpoint_id <= self._checkpoint_id:
            return []
        self._checkpoint_id = checkpoint.checkpoint_id
        return [Change(checkpoint=checkpoint)]

    async def _in_trouble(self, trouble: Exception) -> Change | None:
        """The last change, if there is one: the job has ended with its cluster, or it is given up."""
        now_s = time.monotonic()
        if self._silent_since_s is None:
            self._silent_since_s = now_s
            self._note(f"Job {self._job_id} does not answer; looking for it: {trouble}")
            if isinstance(trouble, Unreachable) or _is_shut_out(trouble):
                # another master may lead by now, or another cluster have the job: the next attempt asks where
                return None
        gone, shut_out = is_gone(trouble), _is_shut_out(trouble)
        try:
            ended = await self._source.aended(self._job_id)
        except (Unreachable, Refused, CommandFailed) as error:
            gone, ended = False, None
            trouble = trouble if shut_out else error
        if ended is not None and ended.status.globally_terminal:
            return Change(ended.status, ended.failure, stop=ended.stop)
        if shut_out:
            return Change(
                lost=f"the cluster of job {self._job_id}, which goes on, does not accept the token: {trouble}"
            )
        if gone and ended is None:
            return Change(
                lost=f"job {self._job_id} is gone with its cluster, and nobody knows how it ended: {trouble}"
            )
        if now_s - self._silent_since_s >= self._lost_after_s:
            return Change(
                lost=f"nobody has answered for job {self._job_id} for {self._lost_after_s:g} s; it may still "
                f"run: {trouble}"
            )
        return None


def _is_shut_out(trouble: Exception) -> bool:
    return isinstance(trouble, Refused) and trouble.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
