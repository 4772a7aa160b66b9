"""Spark's own state data sources over a query's directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructType

from yarnflow.errors import SavepointInvalid
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.state.plain_pickle import foreign_names

#: Spark's names of the states that have the entries of a level's key groups, and their heads
ENTRIES_STATE: Final = "log"
_HEADS_STATE: Final = "head"


def read_source(spark: SparkSession, source: str, directory: str, options: dict[str, str]) -> DataFrame:
    """One of the data sources; raises SavepointInvalid."""
    try:
        return spark.read.format(source).options(**options).load(directory)
    except PySparkException as error:
        raise unreadable(directory, error) from error


def unreadable(directory: str, error: Exception) -> SavepointInvalid:
    """What Spark says of a state it cannot read."""
    text = str(error).strip().splitlines()
    return SavepointInvalid(f"the state in {directory} cannot be read: {text[0] if text else error!r}")


def variables(spark: SparkSession, directory: str) -> list[tuple[int, str]]:
    """(Spark's number of the operator, name) of every state that Python functions of a query keep."""
    if not HadoopFiles(spark).exists(f"{directory}/state"):
        return []
    found = set()
    for row in read_source(spark, "state-metadata", directory, {}).collect():
        for state in json.loads(row.operatorProperties or "{}").get("stateVariables") or ():
            found.add((int(row.operatorId), str(state["stateName"])))
    return sorted(found)


def level_entries(spark: SparkSession, directory: str, level: int) -> DataFrame:
    """Entries of a level's key groups: ``block_group, number, previous, body``.

    Parameters
    ----------
    level : int
        Number of an operator that has :data:`ENTRIES_STATE`.
    """
    return _variable(spark, directory, level, ENTRIES_STATE).select(
        "key.block_group", "user_map_key.number", "user_map_value.previous", "user_map_value.body"
    )


def level_heads(spark: SparkSession, directory: str, level: int) -> DataFrame:
    """Heads of a level's key groups, small rows: ``block_group`` and the head's columns."""
    return _variable(spark, directory, level, _HEADS_STATE).select("key.block_group", "value.*")


def classes_in_state(spark: SparkSession, directory: str) -> list[str]:
    """``module.name`` of what the pickles in a query's state name beside plain values; nothing of it runs.

    Parameters
    ----------
    directory : str
        The query's.

    Raises
    ------
    SavepointInvalid
    """
    found: set[str] = set()
    # Spark looks at hints of types, and does not know these
    named = F.udf(lambda body: sorted(foreign_names(bytes(body))), "array<string>")
    for operator, name in variables(spark, directory):
        frame = _variable(spark, directory, operator, name)
        for column in _binary_columns(frame):
            pickles = frame.where(F.col(column).isNotNull())
            names = pickles.select(F.explode(named(column)).alias("name")).distinct()
            try:
                found.update(row.name for row in names.collect())
            except PySparkException as error:
                raise unreadable(directory, error) from error
    return sorted(found)


def _variable(spark: SparkSession, directory: str, operator: int, name: str) -> DataFrame:
    options = {"operatorId": str(operator), "stateVarName": name}
    return read_source(spark, "statestore", directory, options)


def _binary_columns(frame: DataFrame) -> Iterator[str]:
    for column in frame.schema.fields:
        if isinstance(column.dataType, StructType):
            for field in column.dataType.fields:
                if isinstance(field.dataType, BinaryType):
                    yield f"{column.name}.{field.name}"
