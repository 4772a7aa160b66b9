"""How the elements that a job collects reach its program, and what becomes of the job when that has gone.

The driver leaves parts in the job's checkpoint directory and goes on only while not too many lie there; here
they are read for the program, in the thread of its call, and deleted when it says that it has them.  Which
part may be read is decided in :mod:`yarnflow.core.collect.parts`.

A program asks all the time, also while it has enough to read, and one whose call is not answered yet is
there, however long the file system takes.  One that has not asked for
``client.heartbeat.timeout`` is taken for gone, and its job is canceled: nobody else could read the rest.

Flink counterparts: ``CollectSinkOperatorCoordinator``; ``Dispatcher`` with ``client.heartbeat.timeout``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from yarnflow.core.collect import parts
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ha.ports import CollectedParts
from yarnflow.core.heartbeat import HeartbeatMonitor
from yarnflow.core.ports import Clock
from yarnflow.errors import FileMissing
from yarnflow.runtime.mailbox import Mailbox

#: a page has parts until it has this many bytes
PAGE_BYTES: Final = 2 * parts.PART_BYTES
#: between two looks for new parts, seconds: first, and at most
_FIRST_LOOK_S: Final = 0.02
_LAST_LOOK_S: Final = 0.25
_PROGRAM: Final = "program"
#: looks per time-out whether the program is there
_LOOKS: Final = 4


class Collecting:
    """That of one job.

    Parameters
    ----------
    files : CollectedParts
        The job's.
    key : bytes
        What its driver seals parts with.
    timeout_ms : int
        ``client.heartbeat.timeout``.
    clock, mailbox
        The JobMaster's.
    on_gone : callable
        Called once in the mailbox, with the reason, when the program has gone.
    wait : callable
        Waits so many seconds in the thread of a call.
    """

    def __init__(
        self,
        files: CollectedParts,
        key: bytes,
        timeout_ms: int,
        clock: Clock,
        mailbox: Mailbox,
        on_gone: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._files = files
        self._key = key
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._mailbox = mailbox
        self._on_gone = on_gone
        self._wait = wait
        #: both written by any thread, under the lock
        self._lock = threading.Lock()
        self._calls_under_way = 0
        self._heard_ms = clock.monotonic_ms()
        self._monitor = HeartbeatMonitor(timeout_ms, -1).monitor(_PROGRAM, self._heard_ms)
        #: the last micro-batch that is known to be committed
        self._committed = -1

    # --- any thread ---

    def await_page(self, position: str, timeout_ms: int, is_over: Callable[[], bool]) -> CollectedPage:
        """Elements after a position as soon as there are any; none after the time, or when the job is over.

        Raises
        ------
        FileChanged
            They are not what the driver wrote.
        StorageError
            They cannot be read now.
        """
        with self._lock:
            self._calls_under_way += 1
        try:
            return self._await_page(position, timeout_ms, is_over)
        finally:
            with self._lock:
                self._calls_under_way -= 1
                self._heard_ms = self._clock.monotonic_ms()

    def _await_page(self, position: str, timeout_ms: int, is_over: Callable[[], bool]) -> CollectedPage:
        end_ms = self._clock.monotonic_ms() + timeout_ms
        look_s = _FIRST_LOOK_S
        while True:
            page = self._page(position)
            if page.payloads or is_over() or self._clock.monotonic_ms() >= end_ms:
                return page
            self._wait(look_s)
            look_s = min(2 * look_s, _LAST_LOOK_S)

    def _page(self, position: str) -> CollectedPage:
        names = self._files.names()
        for name in parts.acknowledged(names, position):
            self._files.delete(name)
        names = parts.waiting(names, position)
        found = parts.readable(names, self._committed)
        if names and not found:
            self._committed = self._files.committed()
            found = parts.readable(names, self._committed)
        payloads: list[bytes] = []
        size = 0
        for name in found:
            try:
                content = parts.unseal(self._key, name, self._files.read(name))
            except FileMissing:
                # the program has it and has said so in another call, or the job is over
                break
            payloads.extend(parts.unpack(content))
            position = name
            size += len(content)
            if size >= PAGE_BYTES:
                break
        return CollectedPage(tuple(payloads), position)

    # --- in the mailbox ---

    def watch(self) -> None:
        """Look from now on whether the program is there; the mailbox's end is that of it."""
        self._mailbox.schedule(max(1, self._timeout_ms // _LOOKS), self._look)

    def resumed(self) -> None:
        """Nobody may have been heard for a while."""
        self._monitor = self._monitor.restarted(self._clock.monotonic_ms())

    def _look(self) -> None:
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            heard_ms = now_ms if self._calls_under_way else self._heard_ms
        self._monitor = self._monitor.received(_PROGRAM, heard_ms)
        if not self._monitor.expired(now_ms):
            self.watch()
            return
        self._on_gone(
            f"the program that reads the job's elements has not asked for them for {self._timeout_ms} ms "
            "(client.heartbeat.timeout)"
        )
