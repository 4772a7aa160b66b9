"""The streaming queries of a script, in whatever session it starts them.

Spark tells of a query only in the session it was started in, so every session that starts one is
remembered.  Decides that no query starts any more once the script is being stopped.  Flink
counterpart: none; its programs are always dataflows.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from yarnflow.errors import JobCanceled

logger = logging.getLogger(__name__)

#: how long a query that is starting is waited for; one that takes longer is stopped when it has
_STARTING_S: Final = 5.0


class ScriptQueries:
    """Queries of one script.  Thread-safe.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    prepare : callable
        Called with every other session, before its first query starts.
    """

    def __init__(self, spark: Any, prepare: Callable[[Any], None]) -> None:
        self._changed = threading.Condition()
        self._sessions = [spark]
        self._prepare = prepare
        self._starting = 0
        self._refused = False

    def active(self) -> list[Any]:
        """Those that run now."""
        return [query for session in self._known() for query in session.streams.active]

    def get(self, query_id: str) -> Any:
        """The one that runs now under Spark's id; else None."""
        return next((query for query in self.active() if query.id == query_id), None)

    def start(self, session: Any, start: Callable[[], Any]) -> Any:
        """Start one by what the script has called.

        Raises
        ------
        JobCanceled
            The script is being stopped.
        """
        with self._changed:
            self._check()
            if not any(_same(session, known) for known in self._sessions):
                self._prepare(session)
                self._sessions.append(session)
            self._starting += 1
        try:
            query = start()
        finally:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()
        with self._changed:
            late = self._refused
        if late:
            query.stop()
            self._check()
        return query

    def refuse(self) -> None:
        """From now on none starts; returns when those that were being started have."""
        with self._changed:
            self._refused = True
            self._changed.wait_for(lambda: not self._starting, _STARTING_S)

    def stop(self) -> None:
        """Stop those that run now, and wait for their ends."""
        try:
            for query in self.active():
                query.stop()
        except Exception as error:
            logger.info("A query could not be stopped: %s", error)

    def _known(self) -> tuple[Any, ...]:
        with self._changed:
            return tuple(self._sessions)

    def _check(self) -> None:
        if self._refused:
            raise JobCanceled("the job is being stopped, so no query starts any more")


def _same(one: Any, other: Any) -> bool:
    """Whether two sessions of Python are one of the JVM's."""
    return one is other or bool(one._jsparkSession == other._jsparkSession)
