"""Follows the job of a deferred task in the triggerer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom
from airflow.triggers.base import BaseTrigger, TriggerEvent

from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.jobs.ending import End, OnKill, end_job
from yarnflow.airflow.jobs.waiting import WaitFor
from yarnflow.airflow.jobs.watching import watch_for

#: states of a task that will run again, or is still deferred: it follows the same job
_GOES_ON: Final = frozenset(
    {
        None, "none", "scheduled", "queued", "running", "restarting", "up_for_retry", "up_for_reschedule",
        "deferred",
    }
)  # fmt: skip

#: in XCom: the task has come to its own end
SUCCEEDED: Final = "succeeded"
#: the event loop itself keeps no task from being collected
_ENDING: Final[set[asyncio.Task[None]]] = set()


class YarnflowJobTrigger(BaseTrigger):
    """Fires once, when a job is as a task wants it, has ended, or is lost.

    All that it needs to find the job again after a restart of the triggerer is in its arguments, and no
    secret: those are in the connection.

    Parameters
    ----------
    job_id : str
    next_jobs : sequence of str
        Of the same task: they are waited for later, and end with it, too.
    yarnflow_conn_id : str
    application_id : str
        Of the job on YARN; empty = it has none, or it is not known.
    wait_for : str
        ``finished``, ``running`` or ``checkpoint``.
    on_kill : str
        What becomes of the job when somebody ends the task meanwhile: ``cancel``, ``savepoint`` or
        ``leave``.
    savepoint_dir : str
        Where that savepoint is made; empty = the cluster's default.
    deadline : float, optional
        Seconds since the epoch, from ``execution_timeout``.
    poll_interval : float
        Seconds between questions where the events of the job do not get through.
    lost_after : float
        Seconds without an answer after which the job is given up.
    """

    def __init__(
        self,
        *,
        job_id: str,
        next_jobs: Sequence[str] = (),
        yarnflow_conn_id: str = YarnflowHook.default_conn_name,
        application_id: str = "",
        wait_for: str = WaitFor.FINISHED.value,
        on_kill: str = OnKill.CANCEL.value,
        savepoint_dir: str = "",
        deadline: float | None = None,
        poll_interval: float = 10.0,
        lost_after: float = 600.0,
    ) -> None:
        super().__init__()
        self.job_id = job_id
        self.next_jobs = list(next_jobs)
        self.yarnflow_conn_id = yarnflow_conn_id
        self.application_id = application_id
        self.wait_for = wait_for
        self.kill_action = on_kill
        self.savepoint_dir = savepoint_dir
        self.deadline = deadline
        self.poll_interval = poll_interval
        self.lost_after = lost_after
        self._hook: YarnflowHook | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Where the class is, and the arguments."""
        return (
            "yarnflow.airflow.triggers.job.YarnflowJobTrigger",
            {
                "job_id": self.job_id,
                "next_jobs": self.next_jobs,
                "yarnflow_conn_id": self.yarnflow_conn_id,
                "application_id": self.application_id,
                "wait_for": self.wait_for,
                "on_kill": self.kill_action,
                "savepoint_dir": self.savepoint_dir,
                "deadline": self.deadline,
                "poll_interval": self.poll_interval,
                "lost_after": self.lost_after,
            },
        )

    def hook(self) -> YarnflowHook:
        """The connection."""
        if self._hook is None:
            self._hook = YarnflowHook(self.yarnflow_conn_id)
            for job_id in (self.job_id, *self.next_jobs):
                self._hook.runs_in(job_id, self.application_id)
        return self._hook

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Follow the job; one event, see :func:`yarnflow.airflow.jobs.waiting.outcome`."""
        left_s = None if self.deadline is None else max(0.0, self.deadline - time.time())
        event = await watch_for(
            left_s,
            self.hook(),
            self.job_id,
            WaitFor(self.wait_for),
            self.log,
            poll_s=self.poll_interval,
            lost_after_s=self.lost_after,
        )
        yield TriggerEvent(event)

    async def on_kill(self) -> None:
        """End the job as the task says: somebody has ended the task.

        Not where the task was cleared, and so runs again: its next try follows the same job.  Not where
        another triggerer has taken it over: it is deferred still, or has succeeded by what that one saw.

        Airflow cancels the trigger again every second while this runs, so what is to be done has a task of
        its own, which goes on then.
        """
        ending = asyncio.create_task(self._end())
        _ENDING.add(ending)
        ending.add_done_callback(_ENDING.discard)
        await asyncio.shield(ending)

    async def _end(self) -> None:
        if self.kill_action == OnKill.LEAVE.value:
            self.log.info("The task was ended: job %s goes on, as on_kill says.", self.job_id)
            return
        if await self._is_wanted():
            self.log.info("The task goes on, or is done: job %s goes on.", self.job_id)
            return
        end = End(OnKill(self.kill_action), self.savepoint_dir)
        for job_id in (self.job_id, *self.next_jobs):
            try:
                await end_job(self.hook(), job_id, end, self.log)
            except Exception as error:
                self.log.error("Job %s may go on: it could not be ended: %s", job_id, error)

    async def _is_wanted(self) -> bool:
        """Whether the job is to go on; in doubt it is not."""
        ti = self.task_instance
        if ti is None:
            return False
        try:
            state = await asyncio.to_thread(_state, ti)
            if state == "success" and self.wait_for != WaitFor.FINISHED.value:
                # a task that somebody marked has not said so
                return await XCom.aget_value(ti_key=ti, key=SUCCEEDED) is not None
        except Exception as error:
            self.log.warning("Whether the task is to run again is not known: %s", error)
            return False
        return state in _GOES_ON


def _state(ti: Any) -> str | None:
    """The state of a task instance; ``removed`` where there is none any more."""
    found = RuntimeTaskInstance.get_task_states(
        dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index
    )
    name = ti.task_id if ti.map_index < 0 else f"{ti.task_id}_{ti.map_index}"
    state: str | None = found.get(ti.run_id, {}).get(name, "removed")
    return state
