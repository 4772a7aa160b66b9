"""Asks many clusters the same at the same time, and waits for none longer than it was told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from yarnflow.client.background import run_into
from yarnflow.client.cluster import ClusterConnection
from yarnflow.config.options import client
from yarnflow.core.ports import DispatcherGateway
from yarnflow.errors import ConfigError, RpcUnavailable, YarnflowError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster that may run."""

    #: for people
    name: str
    #: ``execution.target``
    target: str
    #: flags by which other commands name it
    named_by: str
    #: connects; may take its time, and fail
    reach: Callable[[], ClusterConnection]
    #: nobody has said that it runs: it is no news if nobody answers
    supposed: bool = False


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """One that has answered."""

    candidate: Candidate
    connection: ClusterConnection
    answer: T

    def close(self) -> None:
        """Let go of it."""
        self.connection.stop(forced=False, failed=False)


@dataclass(frozen=True, slots=True)
class Silent:
    """One that has not, or a place that could not be looked at."""

    name: str
    target: str
    #: one line
    reason: str
    #: None = a place, and not a cluster
    candidate: Candidate | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def ask(
    candidates: Sequence[Candidate], question: Callable[[DispatcherGateway], T], timeout_ms: int
) -> tuple[list[Found[T]], list[Silent]]:
    """Ask all at the same time; returns when each has answered, or the time is over.

    Those that are only supposed to run are left out where nobody is there.
    """
    calls = [_Call(candidate, question) for candidate in candidates]
    until_s = time.monotonic() + timeout_ms / 1000
    found: list[Found[T]] = []
    silent: list[Silent] = []
    for call in calls:
        candidate = call.candidate
        try:
            found.append(call.answer(until_s))
        except (ConfigError, RpcUnavailable) as error:
            if not candidate.supposed:
                silent.append(_silent(candidate, one_line(error)))
        except FutureTimeout:
            reason = f"no answer within {timeout_ms / 1000:g} s ({client.DISCOVERY_TIMEOUT_MS.key})"
            silent.append(_silent(candidate, reason))
        except YarnflowError as error:
            silent.append(_silent(candidate, one_line(error)))
    return found, silent


def _silent(candidate: Candidate, reason: str) -> Silent:
    return Silent(candidate.name, candidate.target, reason, candidate)


def within(action: Callable[[], T], timeout_ms: int, name: str) -> T:
    """The result of an action that may hang.

    Raises
    ------
    RpcUnavailable
        The time is over.
    """
    future: Future[T] = Future()
    run_into(future, action, name)
    try:
        return future.result(timeout_ms / 1000)
    except FutureTimeout as error:
        if isinstance(error, YarnflowError):
            raise
        raise RpcUnavailable(
            f"no answer within {timeout_ms / 1000:g} s ({client.DISCOVERY_TIMEOUT_MS.key})"
        ) from None


class _Call(Generic[T]):
    """One cluster that is asked, in a thread of its own."""

    def __init__(self, candidate: Candidate, question: Callable[[DispatcherGateway], T]) -> None:
        self.candidate: Final = candidate
        self._question = question
        self._lock = threading.Lock()
        self._given_up = False
        self._future: Future[Found[T]] = Future()
        run_into(self._future, self._run, f"ask-{candidate.target}")

    def answer(self, until_s: float) -> Found[T]:
        """Wait for it; raises what went wrong, or FutureTimeout."""
        try:
            return self._future.result(max(0.0, until_s - time.monotonic()))
        except FutureTimeout as error:
            # a time-out of the call itself is an error of ours
            if isinstance(error, YarnflowError):
                raise
            with self._lock:
                self._given_up = True
                if self._future.done() and self._future.exception() is None:
                    return self._future.result()
            raise

    def _run(self) -> Found[T]:
        connection = self.candidate.reach()
        try:
            found = Found(self.candidate, connection, self._question(connection.gateway()))
        except BaseException:
            connection.stop(forced=False, failed=False)
            raise
        with self._lock:
            if self._given_up:
                found.close()
        return found


def _itself(running: ClusterConnection) -> ClusterConnection:
    return running


def one_line(error: YarnflowError) -> str:
    """The message without line ends."""
    return " ".join(str(error).split())
