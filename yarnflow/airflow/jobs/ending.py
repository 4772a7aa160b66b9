"""Ends the job of a task that was ended: cancels it, stops it with a savepoint, or leaves it."""

from __future__ import annotations

import asyncio
import hashlib
from enum import Enum
from typing import Any, Final

from yarnflow.airflow.hooks import rest
from yarnflow.airflow.hooks.errors import CommandFailed, Refused, Unreachable, YarnflowTaskError
from yarnflow.airflow.hooks.rest import Access, AsyncRestClient
from yarnflow.airflow.hooks.yarnflow import YarnflowHook

#: between questions whether a savepoint is complete
_LOOK_AGAIN_S: Final = 0.5


class OnKill(Enum):
    """What becomes of the job when its task is ended."""

    CANCEL = "cancel"
    #: it is stopped with a savepoint; if none can be taken, it is canceled
    SAVEPOINT = "savepoint"
    LEAVE = "leave"


def request_id(*parts: str) -> str:
    """An id for a request, the same for the same parts: asked for again it begins nothing a second time."""
    return hashlib.md5("\n".join(parts).encode(), usedforsecurity=False).hexdigest()


async def end_job(hook: YarnflowHook, job_id: str, action: OnKill, savepoint_dir: str, log: Any) -> None:
    """End a job, in the triggerer: it is over, or begun to be canceled, when this returns.

    Raises
    ------
    Unreachable, Refused, CommandFailed
        Nobody takes the request.
    """
    try:
        await _end_job(await hook.aaccess(job_id), job_id, action, savepoint_dir, log)
    except Unreachable:
        # another master may lead by now
        access = await hook.aaccess(job_id, again=True)
        await _end_job(access, job_id, action, savepoint_dir, log)


async def _end_job(access: Access, job_id: str, action: OnKill, savepoint_dir: str, log: Any) -> None:
    async with AsyncRestClient(access) as client:
        if action is OnKill.SAVEPOINT:
            trouble = await _stop(client, job_id, savepoint_dir, log)
            if not trouble:
                return
            log.warning("Job %s cannot be stopped with a savepoint (%s); it is canceled.", job_id, trouble)
        try:
            await client.ask(rest.cancel(job_id))
        except Refused:
            found = await client.ask(rest.job(job_id))
            if not found.status.globally_terminal:
                raise
            log.info("Job %s is %s already.", job_id, found.status.value)
            return
        log.info("Job %s is being canceled.", job_id)


async def _stop(client: AsyncRestClient, job_id: str, savepoint_dir: str, log: Any) -> str:
    """Stop a job with a savepoint; returns why not."""
    request = request_id("kill", job_id)
    try:
        await client.ask(rest.stop(job_id, request, savepoint_dir))
        log.info("Job %s is being stopped with a savepoint.", job_id)
        while True:
            outcome = await client.ask(rest.savepoint_outcome(job_id, request))
            if outcome.done:
                break
            await asyncio.sleep(_LOOK_AGAIN_S)
    except Refused as error:
        return str(error)
    if outcome.failure is not None:
        return outcome.failure.message
    log.info("Job %s is stopped with the savepoint %s.", job_id, outcome.location)
    return ""


def end_job_here(hook: YarnflowHook, job_id: str, action: OnKill, savepoint_dir: str, log: Any) -> None:
    """End a job; in a worker that has the time to wait for it.  What fails is told and not raised."""
    if action is OnKill.LEAVE:
        log.info("Job %s goes on.", job_id)
        return
    try:
        if action is OnKill.SAVEPOINT:
            try:
                log.info("Job %s is stopped with a savepoint: %s", job_id, hook.stop(job_id, savepoint_dir))
                return
            except CommandFailed as error:
                log.warning("Job %s cannot be stopped with a savepoint (%s); it is canceled.", job_id, error)
        hook.cancel(job_id)
        log.info("Job %s is being canceled.", job_id)
    except YarnflowTaskError as error:
        log.error("Job %s may go on: it could not be ended: %s", job_id, error)


def end_job_hurriedly(hook: YarnflowHook, job_id: str, action: OnKill, savepoint_dir: str, log: Any) -> None:
    """Begin to end a job in a process that may be killed at any moment; for signal handlers.

    What takes longer than a request is done by a process that outlives this one.
    """
    if action is OnKill.SAVEPOINT:
        hook.begin_stop(job_id, savepoint_dir)
        log.info("Job %s is being stopped with a savepoint.", job_id)
        return
    try:
        hook.cancel_hurriedly(job_id)
    except (CommandFailed, Unreachable, Refused) as error:
        log.warning("Job %s is canceled by the command, as %s", job_id, error)
        hook.begin_cancel(job_id)
    log.info("Job %s is being canceled.", job_id)
