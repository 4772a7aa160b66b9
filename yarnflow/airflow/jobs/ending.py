"""Ends the job of a task that was ended: cancels it, stops it with a savepoint, or leaves it."""

from __future__ import annotations

import _thread
import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from yarnflow.airflow.hooks import questions
from yarnflow.airflow.hooks.documents import is_gone, kill_request
from yarnflow.airflow.hooks.errors import CommandFailed, Refused, Unreachable, YarnflowTaskError
from yarnflow.airflow.hooks.rest import Access, AsyncRestClient
from yarnflow.airflow.hooks.yarnflow import YarnflowHook

#: between questions whether a savepoint is complete
_LOOK_AGAIN_S: Final = 0.5
_GONE: Final = "Job %s is over: no cluster has it any more."
#: Airflow kills a process 5 s after its signal
_HURRY_S: Final = 4.0


class OnKill(Enum):
    """What becomes of the job when its task is ended."""

    CANCEL = "cancel"
    #: it is stopped with a savepoint; if none can be taken, it is canceled
    SAVEPOINT = "savepoint"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class EndedHere:
    """What has become of a job."""

    #: goes on after "it"
    text: str
    savepoint: str = ""
    #: it was to, or nobody took the request
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """How a task ends its jobs."""

    action: OnKill
    #: where a savepoint is made; empty = the cluster's default
    savepoint_dir: str = ""
    #: tells this end from those of other tries
    number: int = field(default_factory=lambda: int(time.time()))

    def request_id(self, job_id: str) -> str:
        """Of the stop with a savepoint."""
        return kill_request(job_id, self.number)


async def end_job(hook: YarnflowHook, job_id: str, end: End, log: Any) -> None:
    """End a job, in the triggerer: it is over, or begun to be canceled, when this returns.

    Raises
    ------
    Unreachable, Refused, CommandFailed
        Nobody takes the request.
    """
    try:
        await _end_job(hook, job_id, end, log)
    except (CommandFailed, Refused) as error:
        if not is_gone(error):
            raise
        log.info(_GONE, job_id)


async def _end_job(hook: YarnflowHook, job_id: str, end: End, log: Any) -> None:
    try:
        await _ask_end(await hook.aaccess(job_id), job_id, end, log)
    except Unreachable:
        # another master may lead by now; or the cluster has ended with the job that was stopped
        await _ask_end(await hook.aaccess(job_id, again=True), job_id, end, log)


async def _ask_end(access: Access, job_id: str, end: End, log: Any) -> None:
    async with AsyncRestClient(access) as client:
        if end.action is OnKill.SAVEPOINT:
            trouble = await _stop(client, job_id, end, log)
            if not trouble:
                return
            log.warning("Job %s cannot be stopped with a savepoint (%s); it is canceled.", job_id, trouble)
        try:
            await client.ask(questions.cancel(job_id))
        except Refused:
            found = await client.ask(questions.job(job_id))
            if not found.status.globally_terminal:
                raise
            log.info("Job %s is %s already.", job_id, found.status.value)
            return
        log.info("Job %s is being canceled.", job_id)


async def _stop(client: AsyncRestClient, job_id: str, end: End, log: Any) -> str:
    """Stop a job with a savepoint; returns why not."""
    try:
        # through YARN's web proxy the answer has another id than the request
        request = await client.ask(questions.begin_stop(job_id, end.request_id(job_id), end.savepoint_dir))
        log.info("Job %s is being stopped with a savepoint.", job_id)
        while True:
            outcome = await client.ask(questions.savepoint_outcome(job_id, request))
            if outcome.done:
                break
            await asyncio.sleep(_LOOK_AGAIN_S)
    except Refused as error:
        return str(error)
    if outcome.failure is not None:
        return outcome.failure.message
    log.info("Job %s is stopped with the savepoint %s.", job_id, outcome.location)
    return ""


def end_job_here(hook: YarnflowHook, job_id: str, end: End, log: Any) -> EndedHere:
    """End a job; in a worker that has the time to wait for it.  What fails is told and not raised."""
    if end.action is OnKill.LEAVE:
        log.info("Job %s goes on.", job_id)
        return EndedHere("goes on, and the next try follows it", goes_on=True)
    try:
        if end.action is OnKill.SAVEPOINT:
            try:
                path = hook.stop(job_id, end.savepoint_dir, request_id=end.request_id(job_id))
            except CommandFailed as error:
                log.warning("Job %s cannot be stopped with a savepoint (%s); it is canceled.", job_id, error)
            else:
                log.info("Job %s is stopped with a savepoint: %s", job_id, path)
                return EndedHere(f"is stopped with the savepoint {path}", path)
        status = hook.cancel(job_id)
    except YarnflowTaskError as error:
        if is_gone(error):
            log.info(_GONE, job_id)
            return EndedHere("is over")
        log.error("Job %s may go on: it could not be ended: %s", job_id, error)
        return EndedHere("may go on, as it could not be ended", goes_on=True)
    if status is not None:
        log.info("Job %s is %s already.", job_id, status.value)
        return EndedHere(f"is {status.value} already")
    log.info("Job %s is being canceled.", job_id)
    return EndedHere("is canceled")


def end_jobs_hurriedly(hook: YarnflowHook, job_ids: Sequence[str], end: End, log: Any) -> None:
    """Begin to end jobs in a process that may be killed at any moment; for signal handlers.

    What the handler has interrupted may hold the lock of a log, so the thread of the handler itself logs
    nothing, which would wait for ever: each job has a thread, which is waited for until all is begun.  What
    takes longer than a request is done by a process that outlives this one.
    """
    begun = []
    for job_id in job_ids:
        done = _thread.allocate_lock()
        done.acquire()
        begun.append(done)
        # a threading.Thread takes a lock, too, when it starts
        _thread.start_new_thread(
            _end_hurriedly, (hook, job_id, end, log, done.release)
        )
    end_s = time.monotonic() + _HURRY_S
    for done in begun:
        done.acquire(timeout=max(0.0, end_s - time.monotonic()))


def _end_hurriedly(
    hook: YarnflowHook,
    job_id: str,
    end: End,
    log: Any,
    is_begun: Callable[[], None],
) -> None:
    trouble: Exception | None = None
    process = None
    try:
        if end.action is OnKill.SAVEPOINT:
            process = hook.begin_stop(job_id, end.request_id(job_id), end.savepoint_dir)
        else:
            try:
                hook.cancel_hurriedly(job_id)
            except (CommandFailed, Unreachable, Refused) as error:
                trouble = error
                process = hook.begin_cancel(job_id)
        if process is not None:
            # it goes on alone, but not where this is a container's last process
            process.wait()
    except Exception as error:
        is_begun()
        log.error("Job %s may go on: it could not be ended: %s", job_id, error)
        return
    is_begun()
    if trouble is not None:
        log.warning("Job %s is canceled by the command, as %s", job_id, trouble)
    how = "stopped with a savepoint" if end.action is OnKill.SAVEPOINT else "canceled"
    log.info("Job %s is being %s.", job_id, how)
