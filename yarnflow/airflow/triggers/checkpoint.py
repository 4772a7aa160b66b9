"""Fires at each n-th checkpoint of a job, for assets that are watched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from yarnflow.airflow.hooks.yarnflow import YarnflowHook


class YarnflowCheckpointTrigger(BaseEventTrigger):
    """Fires at each n-th complete checkpoint of the job that has a key, whichever job that is.

    Parameters
    ----------
    job_key : str
    every : int
        Checkpoints from one event to the next.
    yarnflow_conn_id : str
    poll_interval : float
        Seconds between looks for a job of the key while there is none.
    """

    def __init__(
        self,
        *,
        job_key: str,
        every: int = 1,
        yarnflow_conn_id: str = YarnflowHook.default_conn_name,
        poll_interval: float = 30.0,
    ) -> None:
        super().__init__()
        self.job_key = job_key
        self.every = every
        self.yarnflow_conn_id = yarnflow_conn_id
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Where the class is, and the arguments."""
        return (
            "yarnflow.airflow.triggers.checkpoint.YarnflowCheckpointTrigger",
            {
                "job_key": self.job_key,
                "every": self.every,
                "yarnflow_conn_id": self.yarnflow_conn_id,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event for each n-th checkpoint, without end."""
        raise NotImplementedError
        yield
