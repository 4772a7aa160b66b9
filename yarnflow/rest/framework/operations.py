"""Operations that go on after their request was answered, and what became of them.

A request that begins one is answered with its trigger's id; the id is asked for the outcome until that is
forgotten.  Nothing of it survives the JobManager: after a change of leader a trigger is unknown, as in Flink.

Flink counterparts: ``CompletedOperationCache``, ``AbstractAsynchronousOperationHandlers``.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from yarnflow.errors import InternalError, YarnflowError
from yarnflow.rest.framework.errors import RestError, about_to_end

logger: Final = logging.getLogger(__name__)

#: operations that are kept; further ones are told to come again
MAX_OPERATIONS: Final = 10_000
#: for those that take long in this process
_THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an operation ended: with a result, or an error."""

    result: object = None
    error: YarnflowError | None = None


#: None = it goes on; any thread, may block for a moment
Poll = Callable[[], "Outcome | None"]


@dataclass(slots=True)
class _Operation:
    poll: Poll
    begun_ms: int
    outcome: Outcome | None = None
    #: when the outcome was seen first, on the monotonic clock
    ended_ms: int = -1


class Operations:
    """Those of one JobManager; thread-safe.

    Parameters
    ----------
    store_duration_ms : int
        How long an outcome is kept.  Flink: ``rest.async.store-duration``.
    monotonic_ms : callable
    """

    def __init__(self, store_duration_ms: int, monotonic_ms: Callable[[], int]) -> None:
        self._store_duration_ms = store_duration_ms
        self._monotonic_ms = monotonic_ms
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_THREADS, "rest-operation")
        self._operations: dict[tuple[str, str], _Operation] = {}
        self._closed = False

    def begin(self, scope: str, trigger_id: str | None, begin: Callable[[str], Poll]) -> str:
        """Begin an operation, unless one of this id was begun; may block for a moment.

        Parameters
        ----------
        scope : str
            What the operation is on: the same id elsewhere is another one.
        trigger_id : str, optional
            Chosen by the client; None = a new one.
        begin : callable
            Called with the id; what it raises is the operation's outcome.

        Returns
        -------
        str
            The trigger's id.

        Raises
        ------
        RestError
            Too many are under way.
        """
        chosen = trigger_id or secrets.token_hex(16)
        key = (scope, chosen)
        self._look_after()
        with self._lock:
            self._forget_old()
            if key in self._operations:
                return chosen
            if len(self._operations) >= MAX_OPERATIONS:
                raise RestError(503, f"{MAX_OPERATIONS} operations are under way or kept; try again later")
            operation = self._operations[key] = _Operation(lambda: None, self._monotonic_ms())
        try:
            operation.poll = begin(chosen)
        except YarnflowError as error:
            self._ended(operation, Outcome(error=error))
        except BaseException:
            with self._lock:
                del self._operations[key]
            raise
        return chosen

    def in_background(self, work: Callable[[], object]) -> Poll:
        """Do what takes long; its result is the operation's.

        Raises
        ------
        RestError
            This server is about to end.
        """
        try:
            future = self._pool.submit(work)
        except RuntimeError:
            if self._closed:
                raise about_to_end() from None
            raise

        def poll() -> Outcome | None:
            if not future.done():
                return None
            try:
                return Outcome(future.result())
            except YarnflowError as error:
                # it is over, although the same might succeed another time
                return Outcome(error=error)

        return poll

    def outcome(self, scope: str, trigger_id: str) -> Outcome | None:
        """What became of it; None = it goes on.

        Raises
        ------
        KeyError
            Nobody began it here, or it ended long ago.
        """
        with self._lock:
            self._forget_old()
            operation = self._operations[(scope, trigger_id)]
        return self._look(operation)

    def close(self) -> None:
        """Begin nothing more."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _look_after(self) -> None:
        """See which of the old ones have ended, so that none is kept for ever when nobody asks."""
        old_ms = self._monotonic_ms() - self._store_duration_ms
        with self._lock:
            going_on = [
                operation
                for operation in self._operations.values()
                if operation.outcome is None and operation.begun_ms <= old_ms
            ]
        for operation in going_on:
            self._look(operation)

    def _look(self, operation: _Operation) -> Outcome | None:
        if operation.outcome is None:
            try:
                found = operation.poll()
            except YarnflowError as error:
                if error.retryable:
                    return None
                found = Outcome(error=error)
            except Exception:
                # its own end only: others are looked at in the same turn
                logger.exception("An operation begun by REST has failed")
                found = Outcome(error=InternalError("it failed in the JobManager, whose log says more"))
            if found is not None:
                self._ended(operation, found)
        return operation.outcome

    def _ended(self, operation: _Operation, outcome: Outcome) -> None:
        with self._lock:
            if operation.outcome is None:
                operation.outcome, operation.ended_ms = outcome, self._monotonic_ms()

    def _forget_old(self) -> None:
        oldest_ms = self._monotonic_ms() - self._store_duration_ms
        old = [
            key
            for key, operation in self._operations.items()
            if operation.outcome is not None and operation.ended_ms <= oldest_ms
        ]
        for key in old:
            del self._operations[key]
