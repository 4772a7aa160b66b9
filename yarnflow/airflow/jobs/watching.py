"""Watches a job until a task has seen enough; the same in the triggerer and in a worker that waits itself."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from yarnflow.airflow.jobs.follow import JobFollower, JobSource
from yarnflow.airflow.jobs.waiting import WaitFor, outcome, text_of


async def watch(
    source: JobSource, job_id: str, wait_for: WaitFor, log: Any, *, poll_s: float, lost_after_s: float
) -> dict[str, Any]:
    """Tell the log every change of a job, up to the one that the task waits for.

    Returns
    -------
    dict
        As :func:`yarnflow.airflow.jobs.waiting.outcome`, with the path of the newest ``savepoint`` or null.
    """
    follower = JobFollower(source, job_id, log.warning, poll_s=poll_s, lost_after_s=lost_after_s)
    savepoint = state = None
    async with aclosing(follower.changes()) as changes:
        async for change in changes:
            log.info("%s", text_of(job_id, change))
            if change.checkpoint is not None and change.checkpoint.is_savepoint:
                savepoint = change.checkpoint.path or savepoint
            if change.stop is not None:
                # it may have ended before its last events were seen
                savepoint = change.stop.savepoint or savepoint
            if change.status is not None:
                state = change.status.value
            event = outcome(job_id, change, wait_for)
            if event is not None:
                # a checkpoint has no state of its own
                return {**event, "state": event["state"] or state, "savepoint": savepoint}
    raise AssertionError("the changes of a job end with a last one")


async def watch_for(
    left_s: float | None,
    source: JobSource,
    job_id: str,
    wait_for: WaitFor,
    log: Any,
    *,
    poll_s: float,
    lost_after_s: float,
) -> dict[str, Any]:
    """As :func:`watch`, for so long; then the ``status`` is ``timeout``, and there is ``job_id`` besides.

    Parameters
    ----------
    left_s : float, optional
        None = without end.
    """
    try:
        async with asyncio.timeout(left_s) as limit:
            return await watch(source, job_id, wait_for, log, poll_s=poll_s, lost_after_s=lost_after_s)
    except TimeoutError:
        if not limit.expired():
            raise
        return {"status": "timeout", "job_id": job_id}
