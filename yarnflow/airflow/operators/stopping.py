"""Stops a job with a savepoint, once over all tries of a task.

Which job is stopped is noted before: where the worker is lost meanwhile, the cluster goes on, and the next
try finds the job gone.  With which savepoint is then asked of whoever knows how the job ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yarnflow.airflow.hooks.errors import CommandFailed, JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.hooks.yarnflow import YarnflowHook


def stop_with_savepoint(
    hook: YarnflowHook,
    job_id: str,
    savepoint_dir: str,
    log: Any,
    *,
    drain: bool = False,
    request_id: str = "",
) -> str:
    """Stop a job and wait for its end; returns the savepoint's path.

    Parameters
    ----------
    request_id : str
        As of :meth:`YarnflowHook.stop`.

    Raises
    ------
    CommandFailed
        The savepoint was not taken; the job goes on.
    """
    try:
        return hook.stop(job_id, savepoint_dir, drain=drain, request_id=request_id)
    except CommandFailed as error:
        # the stop that an earlier try has begun may have been quicker than this one
        path = savepoint_of(hook, job_id) if error.code else ""
        if not path:
            raise
        log.info("Job %s was stopped already.", job_id)
        return path


def savepoint_of(hook: YarnflowHook, job_id: str, request_ids: Sequence[str] = ()) -> str:
    """The savepoint that a job was stopped with; empty = it was not, or nobody knows.

    Parameters
    ----------
    request_ids : sequence of str
        By one of these; empty = by any.
    """
    try:
        stop = hook.state(job_id).stop
    except YarnflowTaskError:
        return ""
    if stop is None or (request_ids and stop.request_id not in request_ids):
        return ""
    return stop.savepoint


def stopped_earlier(hook: YarnflowHook, job_id: str, savepoint_dir: str, log: Any) -> str:
    """The savepoint of a job that lives no more, and that an earlier try was about to stop.

    Raises
    ------
    JobNotSuccessful
        It has ended otherwise, or nobody knows; the line says where a savepoint would be.
    Unreachable, CommandFailed
        Whoever knows does not answer now.
    """
    where = savepoint_dir or "execution.checkpointing.savepoint-dir"
    hint = f"an earlier try was about to stop it: if its savepoint is complete, it is in {where}"
    try:
        ended = hook.state(job_id)
    except JobNotSuccessful as error:
        raise JobNotSuccessful(f"{error}; {hint}") from None
    if ended.stop is None or not ended.stop.savepoint:
        raise JobNotSuccessful(f"job {job_id} ended {ended.status.value}; {hint}")
    log.info("An earlier try has stopped job %s.", job_id)
    return ended.stop.savepoint
