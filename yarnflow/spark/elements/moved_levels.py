"""State of levels written anew, where it is not to be what it was: what runs in Spark's Python workers.

The operators are those of the query that goes on with the state, in their order, so that Spark writes
their state as that query's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from yarnflow.graph import import_finder
from yarnflow.operators.state.backends.group_storage import GroupHead, LogEntry, PagesHead, head_of
from yarnflow.operators.state.backends.moved_group import GroupPart, put_together
from yarnflow.operators.state.backends.turns import HASHMAP, ROCKSDB
from yarnflow.operators.task.state_layout import LevelMove
from yarnflow.spark.elements.block_rows import GROUP_COLUMN
from yarnflow.spark.elements.level_stages import HEAD_DDL, StateStorage
from yarnflow.spark.elements.worker_runs import backends

#: one entry of a level's state, or, without a number, one head: for a level as it is to be, from one as
#: it was (``source``)
MOVED_DDL: Final = (
    f"level int, {GROUP_COLUMN} int, source int, number bigint, previous string, body binary, {HEAD_DDL}"
)
_FIRST_OF_HEAD: Final = 6


class MovedLevel(StatefulProcessor):
    """Writes what belongs to one level, and passes the rest on.

    Parameters
    ----------
    level : int
        The level, as the rows name it.
    move : LevelMove
        What its state is made of.
    names : mapping
        Operator id → what it is called in errors.
    """

    def __init__(self, level: int, move: LevelMove, names: Mapping[str, str]) -> None:
        self._level = level
        self._move = move
        self._names = names

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark calls this once per task."""
        # what is pickled may name classes of pyflink
        import_finder.install()
        self._storage = StateStorage(handle)

    def handleInputRows(  # noqa: N802
        self, key: Any, rows: Iterator[Row], timerValues: Any  # noqa: N803
    ) -> Iterator[Row]:
        """Spark calls this once per group."""
        heads: dict[int, GroupHead] = {}
        entries: dict[int, dict[int, LogEntry]] = {}
        for row in rows:
            if row[0] != self._level:
                yield row
                continue
            _, _, source, number, previous, body = row[:_FIRST_OF_HEAD]
            if number is None:
                heads[source] = head_of(row[_FIRST_OF_HEAD:])
                continue
            entry = LogEntry(previous, bytes(body))
            if self._move.whole:
                self._storage.put_entry(number, entry)
            else:
                entries.setdefault(source, {})[number] = entry
        if self._move.whole:
            for head in heads.values():
                self._storage.set_head(head)
        else:
            self._put_together(heads, entries)

    def _put_together(self, heads: dict[int, GroupHead], entries: dict[int, dict[int, LogEntry]]) -> None:
        parts = [
            GroupPart(heads[part.source], entries.get(part.source, {}), part.operators)
            for part in self._move.parts
            if part.source in heads
        ]
        snapshot = put_together(parts, self._names)
        if not snapshot.empty:
            paged = any(isinstance(part.head, PagesHead) for part in parts)
            backends.write(ROCKSDB if paged else HASHMAP, self._storage, snapshot)

    def close(self) -> None:
        """Nothing is kept."""


def moved_levels(rows: DataFrame, moves: Iterable[LevelMove], names: Mapping[str, str]) -> DataFrame:
    """Operators that take over the state of all levels; what is left of the rows is none.

    Parameters
    ----------
    rows : DataFrame
        A stream of :data:`MOVED_DDL`.
    moves : iterable of LevelMove
        One per level with state.
    names : mapping
        Operator id → what it is called in errors.
    """
    for level, move in enumerate(moves):
        rows = rows.groupBy(GROUP_COLUMN).transformWithState(
            statefulProcessor=MovedLevel(level, move, names),
            outputStructType=MOVED_DDL,
            outputMode="append",
            timeMode="none",
        )
    return rows
