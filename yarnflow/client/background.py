"""Work beside the main thread that never keeps the command from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(function: Callable[[], T], name: str) -> Future[T]:
    """Run a function in a daemon thread of its own.

    An executor's threads would be waited for at exit, so that an interrupted upload held up the
    command until its end.
    """
    future: Future[T] = Future()
    run_into(future, function, name)
    return future


def run_into(future: Future[T], function: Callable[[], T], name: str) -> None:
    """The same for a future the caller has kept already, so that no interrupt can lose it."""

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
