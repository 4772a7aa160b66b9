"""Answers of a job that are there now or later.  PyFlink: ``pyflink.common.completable_future``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yarnflow.graph.compatibility import differs


class CompletableFuture:
    """The result of a call, worked out when it is first asked for.

    Parameters
    ----------
    compute : callable
        Gives the result or raises; may wait.  Called once.
    """

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute = compute
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None

    @differs("always False: what was asked of a job is not taken back")
    def cancel(self) -> bool:
        """Do not wait for the result."""
        return False

    def cancelled(self) -> bool:
        """Whether the call was taken back."""
        return False

    @differs("True once result() or exception() was called")
    def done(self) -> bool:
        """Whether the result is there."""
        return self._done

    def result(self) -> Any:
        """The result; waits for it, and raises what the call raised."""
        self._finish()
        if self._error is not None:
            raise self._error
        return self._result

    def exception(self) -> BaseException | None:
        """What the call raised, or None; waits for its end."""
        self._finish()
        return self._error

    def _finish(self) -> None:
        if self._done:
            return
        try:
            self._result = self._compute()
        except Exception as exc:  # handed to whoever asks
            self._error = exc
        self._done = True

    def __str__(self) -> str:
        return f"CompletableFuture[{'Completed' if self._done else 'Not completed'}]"
