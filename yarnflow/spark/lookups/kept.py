"""What a Python worker keeps of the tables it asks: opened functions, connections, rows.

A module of its own, imported by name: what Spark unpickles anew for each task would begin with nothing.
"""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from yarnflow.graph.closures import load_closure
from yarnflow.graph.connectors.lookups import FunctionLookup, JdbcLookup
from yarnflow.graph.operators import LookupJoin
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.operators.functions.base import open_function
from yarnflow.operators.functions.lookup import AsyncLookupFunction, LookupFunction
from yarnflow.operators.lookups.answers import Answers, LookupTable
from yarnflow.operators.lookups.functions import AsyncFunctionTable, FunctionTable
from yarnflow.spark.connectors.jdbc.lookup import JdbcTable
from yarnflow.spark.elements.async_calls import AsyncioCalls

logger = logging.getLogger(__name__)

_calls: Final = AsyncioCalls()


@dataclass(frozen=True, slots=True)
class LookupTask:
    """A lookup join as it travels to the workers."""

    #: of other attempts and jobs nothing is kept
    run: RunToken
    #: the operator's
    operator_hash: str
    join: LookupJoin
    #: the operator and its line in the program, for messages
    place: str = ""

    @property
    def what(self) -> str:
        """What is asked, and where in the program; a function tells its line itself."""
        what = self.join.lookup.what
        named = self.place and isinstance(self.join.lookup, JdbcLookup)
        return f"{self.place}: {what}" if named else what


class KeptLookups:
    """All that one worker keeps.

    Parameters
    ----------
    open_table : callable
        From a task to what it asks.
    """

    def __init__(self, open_table: Callable[[LookupTask], LookupTable]) -> None:
        self._open_table = open_table
        self._run: RunToken | None = None
        self._kept: dict[LookupTask, Answers] = {}

    def answers(self, task: LookupTask) -> Answers:
        """What an operator asks, opened; those of another attempt are closed."""
        if self._run != task.run:
            self.close()
            self._run = task.run
        found = self._kept.get(task)
        if found is None:
            found = self._kept[task] = Answers(self._open_table(task), task.join.options)
        return found

    def drop(self, task: LookupTask) -> None:
        """Close what an operator asks: it has failed."""
        found = self._kept.pop(task, None)
        if found is not None:
            _close(found)

    def close(self) -> None:
        """Close everything."""
        kept, self._kept = self._kept, {}
        for found in kept.values():
            _close(found)


def _close(answers: Answers) -> None:
    try:
        answers.close()
    except Exception:
        # it ends nothing: the results are there, or the error that led here is what the job fails with
        logger.warning("close() of a lookup failed", exc_info=True)


def open_table(task: LookupTask) -> LookupTable:
    """What a join asks, opened."""
    join = task.join
    lookup = join.lookup
    key_names = [column for _, column in join.keys]
    if isinstance(lookup, JdbcLookup):
        return JdbcTable(lookup, key_names, join.options.max_retries, time.sleep, logger.warning, task.what)
    assert isinstance(lookup, FunctionLookup)
    closure = lookup.closure
    function: Any = load_closure(closure)
    name = task.what
    open_function(function, None)
    columns, options = lookup.columns, join.options
    if lookup.asynchronous:
        asynchronous = cast(AsyncLookupFunction, function)
        return AsyncFunctionTable(asynchronous, key_names, columns, options, name, _calls, logger.warning)
    asked = cast(LookupFunction, function)
    return FunctionTable(asked, key_names, columns, options, name, time.sleep, logger.warning)


#: of this worker
kept_lookups: Final = KeptLookups(open_table)
# Spark ends workers without it; the daemon's workers do it all the same
atexit.register(kept_lookups.close)
