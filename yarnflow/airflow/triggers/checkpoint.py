"""Fires at each n-th checkpoint of a job, for assets that are watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from yarnflow.airflow.hooks.errors import CommandFailed, ConnectionUnusable
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.jobs.follow import JobFollower

#: in the asset's state store: job and checkpoint of the last event
_LAST: Final = "yarnflow_checkpoint"


class YarnflowCheckpointTrigger(BaseEventTrigger):
    """Fires at each n-th complete checkpoint of the job that has a key, whichever job that is.

    An event's payload has ``job_id``, ``job_key`` and ``checkpoint_id``.  Savepoints are checkpoints, too.
    Of a job that the trigger sees for the first time the checkpoints that are in its history are told, too;
    after a restart of the triggerer what was completed meanwhile.

    Parameters
    ----------
    job_key : str
    every : int
        Fires at checkpoints whose number is a multiple of it.
    asset : str
        Name of the asset: each has a trigger of its own, with its own note of what was told.
    yarnflow_conn_id : str
    poll_interval : float
        Seconds between looks for a job of the key while there is none.
    """

    def __init__(
        self,
        *,
        job_key: str,
        every: int = 1,
        asset: str = "",
        yarnflow_conn_id: str = YarnflowHook.default_conn_name,
        poll_interval: float = 30.0,
    ) -> None:
        super().__init__()
        if every < 1:
            raise ValueError(f"every={every} of an asset's checkpoints: expected 1 or more")
        self.job_key = job_key
        self.every = every
        self.asset = asset
        self.yarnflow_conn_id = yarnflow_conn_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Where the class is, and the arguments."""
        return (
            "yarnflow.airflow.triggers.checkpoint.YarnflowCheckpointTrigger",
            {
                "job_key": self.job_key,
                "every": self.every,
                "asset": self.asset,
                "yarnflow_conn_id": self.yarnflow_conn_id,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event for each n-th checkpoint, without end."""
        while True:
            # it runs as long as the triggerer does, and the connection may have been changed
            hook = YarnflowHook(self.yarnflow_conn_id)
            try:
                found = await hook.afind(self.job_key)
            except (CommandFailed, ConnectionUnusable) as error:
                self.log.warning("No job of the key %s can be looked for now: %s", self.job_key, error)
                found = None
            if found is not None:
                async with aclosing(self._checkpoints(hook, found.job_id)) as checkpoints:
                    async for checkpoint_id in checkpoints:
                        yield TriggerEvent(
                            {"job_id": found.job_id, "job_key": self.job_key, "checkpoint_id": checkpoint_id}
                        )
                        await self._remember(found.job_id, checkpoint_id)
            await asyncio.sleep(self.poll_interval)

    async def _checkpoints(self, hook: YarnflowHook, job_id: str) -> AsyncGenerator[int, None]:
        last = await self._last(job_id)
        follower = JobFollower(hook, job_id, self.log.warning, poll_s=self.poll_interval)
        async with aclosing(follower.changes()) as changes:
            async for change in changes:
                checkpoint = change.checkpoint
                if checkpoint is None or (last is not None and checkpoint.checkpoint_id <= last):
                    continue
                last = checkpoint.checkpoint_id
                if last % self.every == 0:
                    yield last

    async def _last(self, job_id: str) -> int | None:
        """The checkpoint of the last event, where there was one of this job."""
        if self.asset_state_store is None:
            return None
        try:
            found = await self.asset_state_store.aget(_LAST)
        except Exception as error:
            self.log.warning("Which checkpoint was told last is not known: %s", error)
            return None
        if not isinstance(found, dict) or found.get("job_id") != job_id:
            return None
        return int(found["checkpoint_id"])

    async def _remember(self, job_id: str, checkpoint_id: int) -> None:
        if self.asset_state_store is None:
            return
        try:
            await self.asset_state_store.aset(_LAST, {"job_id": job_id, "checkpoint_id": checkpoint_id})
        except Exception as error:
            self.log.warning("Checkpoint %d may be told once more: %s", checkpoint_id, error)
