"""A program without a streaming source: one batch in a thread.

Decides nothing but how such a batch is canceled.  Flink counterpart: a batch job's tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pyspark import InheritableThread, SparkContext

logger = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.2


class BatchThread:
    """Runs ``run_batch`` once.

    Parameters
    ----------
    context : SparkContext
    name : str
        Of the query; its Spark jobs are tagged with it.
    run_batch : callable
    """

    def __init__(self, context: SparkContext, name: str, run_batch: Callable[[], None]) -> None:
        self._context = context
        self._run_batch = run_batch
        self._tag = f"yarnflow-{name}"
        self._failure: Exception | None = None
        self._thread = InheritableThread(target=self._main, daemon=True, name=f"batch-{name}")

    def start(self) -> None:
        self._thread.start()

    def ended(self, timeout_seconds: float) -> bool:
        """Whether it is over; raises what it raised."""
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def cancel(self) -> None:
        """Cancel its Spark jobs until it ends."""
        while self._thread.is_alive():
            try:
                self._context.cancelJobsWithTag(self._tag)
            except Exception as error:  # a JVM that is gone ends the thread as well
                logger.info("Spark's jobs could not be canceled: %s", type(error).__name__)
            # it may have been between two jobs
            self._thread.join(_POLL_SECONDS)

    def _main(self) -> None:
        self._context.addJobTag(self._tag)
        try:
            self._run_batch()
        except Exception as error:
            self._failure = error
