"""The state of operators on elements in a savepoint or retained checkpoint.

Key groups are read one after the other in this process, and what is not a plain value is not unpickled
(:mod:`yarnflow.spark.state.plain_pickle`).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from pyspark.sql import SparkSession

from yarnflow.errors import InvariantViolated, SavepointInvalid, SavepointNotFound
from yarnflow.operators.state.backends.group_storage import GroupHead, LogEntry, head_of
from yarnflow.operators.state.backends.saved_group import read_saved
from yarnflow.operators.state.entries import Overview, SavedEntry, entries_of
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.state.frames import ENTRIES_STATE, level_entries, level_heads, variables
from yarnflow.spark.state.plain_pickle import loads_plain
from yarnflow.spark.state.reader import query_directories

#: what reading state raises that is no state of ours
_UNREADABLE: Final = (
    pickle.UnpicklingError,
    AttributeError,
    TypeError,
    KeyError,
    ValueError,
    InvariantViolated,
)


@dataclass(frozen=True, slots=True)
class ElementState:
    """States of operators on elements, and the entries that were asked for."""

    overview: Overview
    entries: tuple[SavedEntry, ...]
    #: there are more entries than were asked for
    more: bool


def read_elements(
    spark: SparkSession, path: str, query: str, operators: frozenset[str], limit: int
) -> ElementState:
    """What the operators on elements of a query keep.

    Parameters
    ----------
    path : str
        The savepoint's or checkpoint's directory.
    operators : frozenset of str
        Ids (hashes) of the operators to be shown; empty = all, without entries.
    limit : int
        Entries at most.

    Raises
    ------
    SavepointNotFound, SavepointInvalid
    """
    directory = query_directories(HadoopFiles(spark), path).get(query)
    if directory is None:
        raise SavepointNotFound(f"{path} has no query {query!r}")
    overview, more = Overview(), False
    shown: list[SavedEntry] = []
    for level, name in variables(spark, directory):
        if name != ENTRIES_STATE:
            continue
        heads = {group: head_of(head) for group, *head in level_heads(spark, directory, level).collect()}
        frame = level_entries(spark, directory, level).orderBy("block_group")
        for group, rows in groupby(frame.toLocalIterator(), key=lambda row: row.block_group):
            found = _entries(directory, heads[group], rows)
            if operators:
                found = [entry for entry in found if entry.operator_id in operators]
                more = more or len(shown) + len(found) > limit
                shown += found[: limit - len(shown)]
            overview.add(found)
    return ElementState(overview, tuple(shown), more)


def _entries(directory: str, head: GroupHead, rows: Iterator[Any]) -> list[SavedEntry]:
    try:
        entries = {row.number: LogEntry(row.previous, bytes(row.body)) for row in rows}
        return list(entries_of(read_saved(head, entries, loads_plain)))
    except _UNREADABLE as error:
        raise SavepointInvalid(f"the state in {directory} cannot be read: {error}") from error
