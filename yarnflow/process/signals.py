"""Signals that ask a process to end, kept back while something must be finished.

Flink has no counterpart.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

#: of a terminal, of whoever ends a process in good order, and of a terminal that has gone
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_later() -> Iterator[None]:
    """Let a signal of :data:`ENDING` that arrives meanwhile have its effect only afterwards.

    In the main thread; handlers never run in others, so nothing interrupts those anyway.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    before = {number: signal.signal(number, on_signal) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if arrived:
        signal.raise_signal(arrived[0])
