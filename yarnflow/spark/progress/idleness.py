"""When queries had nothing to do, and where those are that have committed nothing since they were started.

Spark tells of an idle query, at a trigger and every 10 s at most, but not at which batch it is: one that was
started again may go on behind a batch of which nobody has heard, as driver and JobManager were lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from yarnflow.core.checkpoint.messages import QueryPosition
from yarnflow.core.messages import IdleQueries

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Run:
    """A query that was started."""

    run_id: str
    name: str
    #: when it last had nothing to do; None = not yet
    idle_ms: int | None = None
    has_committed: bool = False
    #: by Spark's logs; None = they were not read
    position: QueryPosition | None = None
    #: a thread reads them
    is_looked_for: bool = False

    @property
    def is_known(self) -> bool:
        return self.has_committed or self.position is not None


class Idleness:
    """Of the queries of one attempt.  Thread-safe.

    A query that has ended in good order has nothing to do any more, whoever has ended it.

    Parameters
    ----------
    now_ms : callable, optional
        A clock that only goes forward.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._position_of: Callable[[str, str], QueryPosition | None] | None = None
        #: query id → its last run, without those that have ended in good order
        self._runs: dict[str, _Run] = {}
        self._any_started = False

    def use_positions(self, position_of: Callable[[str, str], QueryPosition | None] | None) -> None:
        """Ask this where an idle query is: Spark's id of it, its name → position; None = nobody knows."""
        with self._lock:
            self._position_of = position_of

    def new_attempt(self) -> None:
        """All queries are to be started again."""
        with self._lock:
            self._runs.clear()
            self._any_started = False

    def started(self, query_id: str, run_id: str, name: str) -> None:
        """A query was started, maybe again."""
        with self._lock:
            self._runs[query_id] = _Run(run_id, name)
            self._any_started = True

    def committed(self, query_id: str, run_id: str) -> None:
        """A query has told of a batch that it has committed."""
        with self._lock:
            run = self._run(query_id, run_id)
            if run is not None:
                run.has_committed, run.position = True, None

    def ended(self, query_id: str, run_id: str) -> None:
        """A query has ended in good order."""
        with self._lock:
            if self._run(query_id, run_id) is not None:
                del self._runs[query_id]

    def idled(self, query_id: str, run_id: str, ago_ms: int) -> None:
        """A query had nothing to do; returns at once."""
        with self._lock:
            run, position_of = self._run(query_id, run_id), self._position_of
            if run is None:
                return
            run.idle_ms = self._now_ms() - ago_ms
            if run.is_known or run.is_looked_for or position_of is None:
                return
            run.is_looked_for = True
        # a file system may not answer for minutes, and Spark's other reports must not wait for it
        threading.Thread(
            target=self._look, args=(query_id, run, position_of), name="query-position", daemon=True
        ).start()

    def told(self) -> IdleQueries:
        """What there is to report.

        Positions are only told together: a checkpoint of some of the queries would say that the job has
        begun well, while another one is in its first batch.
        """
        with self._lock:
            runs, now_ms = tuple(self._runs.values()), self._now_ms()
            if not self._any_started or not all(run.is_known for run in runs):
                return IdleQueries()
            idle_ms = [run.idle_ms for run in runs if run.idle_ms is not None]
            positions = [run.position for run in runs if run.position is not None]
        return IdleQueries(
            now_ms - min(idle_ms, default=now_ms) if len(idle_ms) == len(runs) else -1,
            tuple(position for position in positions if position.batch_id >= 0),
        )

    def _run(self, query_id: str, run_id: str) -> _Run | None:
        """A query's last run, if it is this one: Spark may tell of another one later."""
        run = self._runs.get(query_id)
        return run if run is not None and run.run_id == run_id else None

    def _look(
        self, query_id: str, run: _Run, position_of: Callable[[str, str], QueryPosition | None]
    ) -> None:
        """Read where an idle query is; the next time that it is idle this is tried again."""
        position = None
        try:
            position = position_of(query_id, run.name)
        except Exception as error:
            logger.warning(
                "Where query %s is cannot be read now: %s", run.name, str(error).partition("\n")[0]
            )
        with self._lock:
            run.is_looked_for = False
            if not run.has_committed:
                run.position = position
