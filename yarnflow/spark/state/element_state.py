"""The state of operators on elements in a savepoint or retained checkpoint.

Key groups are replayed one after the other in this process, and what is not a plain value is not unpickled
(:mod:`yarnflow.spark.state.plain_pickle`).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from yarnflow.errors import SavepointInvalid, SavepointNotFound
from yarnflow.operators.state.backends.group_log import replayed
from yarnflow.operators.state.backends.group_storage import LogEntry
from yarnflow.operators.state.entries import Overview, SavedEntry, entries_of
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.state.plain_pickle import loads_plain
from yarnflow.spark.state.reader import query_directories, read_source

#: Spark's name of the state that has a level's logs
LOG_STATE = "log"
_GROUP, _NUMBER = "key.block_group", "user_map_key.number"


@dataclass(frozen=True, slots=True)
class ElementState:
    """States of operators on elements, and the entries that were asked for."""

    overview: Overview
    entries: tuple[SavedEntry, ...]
    #: there are more entries than were asked for
    more: bool


def level_numbers(spark: SparkSession, directory: str) -> list[int]:
    """Spark's numbers of the levels of a query that have state.

    Parameters
    ----------
    directory : str
        The query's.
    """
    if not HadoopFiles(spark).exists(f"{directory}/state"):
        return []
    found = set()
    for row in read_source(spark, "state-metadata", directory, {}).collect():
        states = json.loads(row.operatorProperties or "{}").get("stateVariables") or ()
        if any(state.get("stateName") == LOG_STATE for state in states):
            found.add(row.operatorId)
    return sorted(found)


def level_logs(spark: SparkSession, directory: str, level: int) -> DataFrame:
    """Entries of the logs of a level's key groups: ``block_group, number, previous, body``.

    Parameters
    ----------
    level : int
        One of :func:`level_numbers`.
    """
    options = {"operatorId": str(level), "stateVarName": LOG_STATE}
    return read_source(spark, "statestore", directory, options).select(
        F.col(_GROUP), F.col(_NUMBER), F.col("user_map_value.previous"), F.col("user_map_value.body")
    )


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
    for level in level_numbers(spark, directory):
        frame = level_logs(spark, directory, level).orderBy("block_group", "number")
        for _, rows in groupby(frame.toLocalIterator(), key=lambda row: row.block_group):
            found = _entries(directory, rows)
            if operators:
                found = [entry for entry in found if entry.operator_id in operators]
                more = more or len(shown) + len(found) > limit
                shown += found[: limit - len(shown)]
            overview.add(found)
    return ElementState(overview, tuple(shown), more)


def _entries(directory: str, rows: Iterator[Any]) -> list[SavedEntry]:
    try:
        log = [LogEntry(row.previous, bytes(row.body)) for row in rows]
        return list(entries_of(replayed(log, loads_plain)))
    except (pickle.UnpicklingError, AttributeError, TypeError, KeyError, ValueError) as error:
        raise SavepointInvalid(f"the state in {directory} cannot be read: {error}") from error
