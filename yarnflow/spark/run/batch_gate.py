"""The gate that every micro-batch of a query passes before anything of it is written.

Decides which batches may begin: all; none above a number until a copy is done (*hold*); or none
any more (*close*).  Knows nothing of Spark.  Thread-safe.  Flink counterpart: the alignment of
barriers, which holds a task's input back for as long.
"""

from __future__ import annotations

import threading
import time


class GateClosed(Exception):
    """This batch is not to be written: the query is about to be stopped."""


class BatchGate:
    """One query's gate."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entered = -1
        #: batches above it wait
        self._hold_above: int | None = None
        #: batches above it are refused
        self._refuse_above: int | None = None
        self._waiting_since: float | None = None
        self._paused_s = 0.0

    @property
    def entered(self) -> int:
        """The last batch that was let in, here or by an earlier attempt; -1 = none."""
        with self._changed:
            return self._entered

    def begun(self, batch_id: int) -> None:
        """An earlier attempt may have let this batch in: what it wrote of it is to be finished."""
        with self._changed:
            self._entered = max(self._entered, batch_id)

    def enter(self, batch_id: int) -> None:
        """Let a batch in, now or when the gate opens again.

        Raises
        ------
        GateClosed
            It must not be written.
        """
        with self._changed:
            while True:
                if self._refuse_above is not None and batch_id > self._refuse_above:
                    self._end_pause()
                    raise GateClosed(f"batch {batch_id}")
                if self._hold_above is None or batch_id <= self._hold_above:
                    break
                if self._waiting_since is None:
                    self._waiting_since = time.monotonic()
                self._changed.wait()
            self._end_pause()
            self._entered = batch_id

    def hold_above(self, batch_id: int) -> None:
        """Let no batch above this one in until :meth:`release`."""
        with self._changed:
            self._hold_above = batch_id
            self._paused_s = 0.0

    def release(self) -> int:
        """End the hold; returns for how many milliseconds a batch was kept waiting."""
        with self._changed:
            self._hold_above = None
            self._end_pause()
            self._changed.notify_all()
            return int(self._paused_s * 1000)

    def close(self, last: int | None = None) -> int:
        """Refuse every batch from now on that is not inside already, or those above ``last``.

        Returns
        -------
        int
            The last batch that was let in; -1 = none.
        """
        with self._changed:
            self._refuse_above = self._entered if last is None else last
            self._changed.notify_all()
            return self._entered

    def open(self) -> None:
        """Every batch may come again."""
        with self._changed:
            self._refuse_above = None
            self._changed.notify_all()

    def _end_pause(self) -> None:
        if self._waiting_since is not None:
            self._paused_s += time.monotonic() - self._waiting_since
            self._waiting_since = None
