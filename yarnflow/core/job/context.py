"""For which job the present thread works; log lines name it.

Set where threads of a job are made and where calls about a job come in, and carried along with what is
posted to other threads; whoever logs does nothing for it.  Flink counterpart: ``MdcUtils``, whose key is
``flink-job-id``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

T = TypeVar("T")

_THREAD: Final[ContextVar[str]] = ContextVar("job", default="")
#: of a process that has one job at a time; what its threads work for unless they say otherwise
_PROCESS: Final = [""]


def current_job() -> str:
    """Id of the job; empty = none, or all of them."""
    return _THREAD.get() or _PROCESS[0]


@contextmanager
def job_context(job_id: str) -> Iterator[None]:
    """Work for a job in the block; empty = leave it as it is."""
    if not job_id:
        yield
        return
    token = _THREAD.set(job_id)
    try:
        yield
    finally:
        _THREAD.reset(token)


def enter_job(job_id: str) -> None:
    """From now on the present thread works for a job."""
    _THREAD.set(job_id)


def process_of_job(job_id: str) -> None:
    """From now on all threads of this process do; empty = for none."""
    _PROCESS[0] = job_id


def in_present_job(action: Callable[[], T]) -> Callable[[], T]:
    """The same action, which works for the present job wherever it runs."""
    job_id = current_job()
    if not job_id:
        return action

    def run() -> T:
        with job_context(job_id):
            return action()

    return run


__all__ = ["current_job", "enter_job", "in_present_job", "job_context", "process_of_job"]
