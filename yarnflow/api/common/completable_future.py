"""Answers of a job that are there now or later.  PyFlink: ``pyflink.common.completable_future``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any


class CompletableFuture:
    """The result of a call, worked out when it is first asked for.

    :meth:`result` works it out in the thread that asks, so that an interrupt reaches the call; who only asks
    whether it is there has it worked out in another.

    Parameters
    ----------
    compute : callable
        Gives the result or raises; may wait.  Called once.
    """

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute = compute
        self._lock = threading.Lock()
        self._begun = False
        self._ended = threading.Event()
        self._cancelled = False
        self._result: Any = None
        self._error: BaseException | None = None

    def cancel(self) -> bool:
        """Give the result up, if it is not there; whether that is so.  What was asked of the job goes on."""
        with self._lock:
            if not self._ended.is_set():
                self._begun = self._cancelled = True
                self._error = CancelledError()
                self._ended.set()
            return self._cancelled

    def cancelled(self) -> bool:
        """Whether the result was given up before it was there."""
        return self._cancelled

    def done(self) -> bool:
        """Whether the result is there, or an error, or it was given up; does not wait."""
        if self._begins():
            threading.Thread(target=self._finish, name="completable-future", daemon=True).start()
        return self._ended.is_set()

    def result(self) -> Any:
        """The result; waits for it, and raises what the call raised, or CancelledError."""
        if self._begins():
            self._finish()
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def exception(self) -> BaseException | None:
        """What the call raised; None if it did not, or has not ended yet."""
        return self._error if self.done() else None

    def _begins(self) -> bool:
        """Whether the caller is the one to work the result out."""
        with self._lock:
            begun, self._begun = self._begun, True
            return not begun

    def _finish(self) -> None:
        result, error = None, None
        try:
            result = self._compute()
        except Exception as exc:  # handed to whoever asks
            error = exc
        except BaseException:
            with self._lock:
                self._begun = False
            raise
        with self._lock:
            if not self._cancelled:
                self._result, self._error = result, error
                self._ended.set()

    def __str__(self) -> str:
        return f"CompletableFuture[{'Completed' if self._ended.is_set() else 'Not completed'}]"
