"""The driver's measurements: taken by a thread of their own, sent with the next report.

Measuring asks Spark, which may take longer than a heartbeat may be late.  Nothing depends on a value: one
that cannot be taken, or whose report is lost, is missing until the next one.  Flink counterpart:
``MetricQueryService``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from yarnflow.core.messages import MetricDump

logger = logging.getLogger(__name__)


class Measurements:
    """Of one driver.

    Parameters
    ----------
    measure : callable
        Takes them, told whether the attempt has ended; may take its time.
    interval_ms : int
        Between two; 0 = there are none.
    """

    def __init__(self, measure: Callable[[bool], tuple[MetricDump, ...]], interval_ms: int) -> None:
        self._measure = measure
        self._interval_ms = interval_ms
        self._stopped = threading.Event()
        #: one measurement at a time, and the last one of an attempt after all others
        self._measuring = threading.Lock()
        self._lock = threading.Lock()
        # guarded by _lock
        self._news: tuple[MetricDump, ...] = ()

    def start(self) -> None:
        """Measure from now on."""
        if self._interval_ms:
            threading.Thread(target=self._run, name="driver-metrics", daemon=True).start()

    def stop(self) -> None:
        """Measure no more; one under way is not waited for."""
        self._stopped.set()

    def last(self) -> None:
        """The attempt has ended: what it has counted is to be in the report that says so."""
        if self._interval_ms:
            self._take(last=True)

    def take(self) -> tuple[MetricDump, ...]:
        """The newest ones, once."""
        with self._lock:
            news, self._news = self._news, ()
            return news

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_ms / 1000):
            self._take(last=False)

    def _take(self, last: bool) -> None:
        try:
            with self._measuring:
                found = self._measure(last)
        except Exception:  # the job must not end for a metric
            if not self._stopped.is_set():
                logger.exception("The metrics could not be measured")
            return
        with self._lock:
            self._news = found
