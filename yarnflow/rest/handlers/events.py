"""Follows a job: an event for each new state and checkpoint at once, and for progress at a pace.

An event's id is ``<version of the job>.<newest checkpoint>.<state>.<when it was entered>``; a client that
comes back with the last one it had (``Last-Event-ID``) misses no checkpoint that is still in the history,
and is told the state only if it is another one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import Final

from msgspec import UNSET

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointStatus, JobCheckpoints
from yarnflow.core.checkpoint.pending import NO_ID
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.errors import YarnflowError
from yarnflow.rest.answers import events as answers
from yarnflow.rest.answers.checkpoints import checkpoint
from yarnflow.rest.answers.jobs import query_progress, stop
from yarnflow.rest.framework.route import Call, EventStream
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster

#: between two events of progress
PROGRESS_PACE_S: Final = 1.0
#: a comment is sent when nothing else was for so long, so that both sides know of each other
HEARTBEAT_S: Final = 15.0
#: after a change further ones are waited for, for a moment
_GATHER_S: Final = 0.05
_EVENT_ID: Final = re.compile(r"(\d{1,18})\.(\d{1,18})\.([A-Z]{1,32})\.(\d{1,18})")


def follow(cluster: Cluster, call: Call) -> EventStream:
    """States, checkpoints and progress of a job as server-sent events; ends with the job."""
    job_id = JobId(call.get(p.JOB_ID))
    cluster.view.job_details(job_id)
    found = _EVENT_ID.fullmatch(call.headers.get("last-event-id", ""))
    seen = Follower()
    if found is not None:
        seen = Follower(int(found[1]), int(found[2]), (found[3], int(found[4])))
    return EventStream(_events(cluster, job_id, seen))


@dataclass(slots=True)
class Follower:
    """What one client has seen; decides what it is sent next."""

    version: int = -1
    #: checkpoints up to this one
    checkpoint_id: int = -1
    #: with the time when it was entered
    state: tuple[str, int] = ("NONE", 0)
    _statuses: dict[int, CheckpointStatus] = field(default_factory=dict)
    #: ends up to this time, of those that failed before they had a number
    _unnumbered_ms: int = -1

    def news(
        self, job: JobDetails, checkpoints: JobCheckpoints, now_ms: int, *, progress: bool
    ) -> Iterator[bytes]:
        """Events of what is new to the client.

        Parameters
        ----------
        progress : bool
            It is time for progress.
        """
        head = job.overview
        changed = job.version > self.version
        for info in self._new_checkpoints(checkpoints):
            made = checkpoint(info, job.vertices, now_ms)
            shown = answers.CheckpointEvent(jid=head.job_id, checkpoint=made)
            yield answers.event("checkpoint", shown, self._id())
        entered_ms = job.timestamps_ms.get(head.status.name, 0)
        state = (head.status.in_flink.name, entered_ms)
        if state != self.state:
            self.state = state
            self.version = max(self.version, job.version)
            told = answers.StateEvent(
                jid=head.job_id,
                state=state[0],
                timestamp=entered_ms or now_ms,
                restarts=job.restarts,
                waiting_for=job.waiting_for,
                stop=UNSET if job.stop is None else stop(job.stop),
            )
            yield answers.event("state", told, self._id())
        if changed and (progress or head.status.globally_terminal):
            self.version = max(self.version, job.version)
            said = answers.ProgressEvent(
                jid=head.job_id,
                now=now_ms,
                slots_allocated=head.slots_allocated,
                slots_required=head.slots_required,
                queries=[query_progress(query) for query in job.queries],
            )
            yield answers.event("progress", said, self._id())

    def _new_checkpoints(self, checkpoints: JobCheckpoints) -> Iterator[CheckpointInfo]:
        yield from self._new_unnumbered(checkpoints)
        numbered = (info for info in checkpoints.history if info.checkpoint_id != NO_ID)
        for info in sorted(numbered, key=lambda each: each.checkpoint_id):
            known = self._statuses.get(info.checkpoint_id)
            is_new = info.checkpoint_id > self.checkpoint_id or (
                known is not None and known is not info.status
            )
            if not is_new:
                continue
            if info.status is CheckpointStatus.IN_PROGRESS:
                if known is not None:
                    continue
                self._statuses[info.checkpoint_id] = info.status
            else:
                self._statuses.pop(info.checkpoint_id, None)
                # what is in progress is told again to a client that comes back
                if not self._statuses or info.checkpoint_id < min(self._statuses):
                    self.checkpoint_id = max(self.checkpoint_id, info.checkpoint_id)
            yield info

    def _new_unnumbered(self, checkpoints: JobCheckpoints) -> Iterator[CheckpointInfo]:
        """Several may fail at once; a client that comes back is told of them again."""
        seen_ms = self._unnumbered_ms
        for info in reversed(checkpoints.history):
            if info.checkpoint_id == NO_ID and info.end_ms > seen_ms:
                self._unnumbered_ms = max(self._unnumbered_ms, info.end_ms)
                yield info

    def _id(self) -> str:
        state, entered_ms = self.state
        return f"{max(self.version, 0)}.{max(self.checkpoint_id, 0)}.{state}.{entered_ms}"


async def _events(cluster: Cluster, job_id: JobId, seen: Follower) -> AsyncGenerator[bytes]:
    loop = asyncio.get_running_loop()
    next_progress_s = 0.0
    last_sent_s = loop.time()
    yield b"retry: 2000\n\n"
    async with cluster.changes.following(job_id) as changed:
        while True:
            changed.clear()
            try:
                job = cluster.view.job_details(job_id)
                checkpoints = cluster.view.job_checkpoints(job_id)
            except YarnflowError:
                return  # it is forgotten
            is_time = loop.time() >= next_progress_s
            for event in seen.news(job, checkpoints, cluster.now_ms(), progress=is_time):
                yield event
                last_sent_s = loop.time()
            if job.overview.status.globally_terminal:
                return
            if is_time:
                next_progress_s = loop.time() + PROGRESS_PACE_S
            behind = job.version > seen.version
            until_s = next_progress_s if behind else last_sent_s + HEARTBEAT_S
            try:
                async with asyncio.timeout(max(until_s - loop.time(), 0)):
                    await changed.wait()
                await asyncio.sleep(_GATHER_S)
            except TimeoutError:
                if loop.time() - last_sent_s >= HEARTBEAT_S:
                    last_sent_s = loop.time()
                    yield answers.HEARTBEAT
