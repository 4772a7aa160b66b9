"""The state in a savepoint or retained checkpoint, as tables.

Reads with Spark's own state data sources and changes nothing.  Accumulators of Python functions are
shown by their size only: unpickling would run what the file says.  Flink counterpart: the State
Processor API's ``SavepointReader``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructType

from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.checkpoint.query_files import query_directory
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import SavepointNotFound
from yarnflow.spark.checkpoints.restoring.manifest_file import read_manifest
from yarnflow.spark.checkpoints.saved_queries import is_elsewhere
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.state.frames import read_source, unreadable
from yarnflow.spark.translate.schemas import quoted

_READER_MEMORY: Final = "1g"


@dataclass(frozen=True, slots=True)
class StateStore:
    """One store of a stateful operator."""

    query: str
    #: Spark's number of the operator within the query
    operator: int
    #: Spark's name, e.g. ``stateStoreSave``
    operator_name: str
    #: ``default``, or the store's name where the operator has several
    store: str
    partitions: int


@dataclass(frozen=True, slots=True)
class StateTable:
    """Rows of a state, as text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: there are more than were asked for
    more: bool = False


@contextmanager
def reader_session(log_config: Path) -> Iterator[SparkSession]:
    """A local session for :func:`describe` and :func:`read_state`; Hadoop's configuration applies.

    Parameters
    ----------
    log_config : Path
        Log4j's configuration; what Spark says while it starts is of no use to who looks at state.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # else Spark looks for a name of this machine and warns when it is a loopback one
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master("local[1]")
        .appName("yarnflow savepoint")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", _READER_MEMORY)
        .config(
            "spark.driver.extraJavaOptions",
            f'"-Dlog4j2.configurationFile=file:{log_config}" -Dyarnflow.log.level=ERROR',
        )
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def describe(spark: SparkSession, path: str) -> tuple[StateStore, ...]:
    """Every store of every query that has state.

    Raises
    ------
    SavepointNotFound, SavepointInvalid
    """
    files = HadoopFiles(spark)
    found: list[StateStore] = []
    for query, directory in query_directories(files, path).items():
        if not files.exists(f"{directory}/state"):
            continue
        stores = read_source(spark, "state-metadata", directory, {})
        rows = stores.orderBy("operatorId", "stateStoreName").collect()
        found.extend(
            StateStore(query, r.operatorId, r.operatorName, r.stateStoreName, r.numPartitions) for r in rows
        )
    return tuple(found)


def read_state(
    spark: SparkSession, path: str, query: str, operator: int = 0, limit: int = 20, store: str = "default"
) -> StateTable:
    """Keys and values of one operator.

    Parameters
    ----------
    path : str
        The savepoint's or checkpoint's directory.
    query : str
        As :func:`describe` names it.
    operator : int
    limit : int
        Rows at most.
    store : str
        Of an operator with several.

    Raises
    ------
    SavepointNotFound
        There is no such query, or no such savepoint.
    SavepointInvalid
        Spark cannot read it.
    """
    directories = query_directories(HadoopFiles(spark), path)
    if query not in directories:
        raise SavepointNotFound(
            f"{path} has no query {query!r}; it has {', '.join(sorted(directories)) or 'none'}"
        )
    directory = directories[query]
    stores = read_source(spark, "state-metadata", directory, {}).collect()
    names = {row.operatorId: row.operatorName for row in stores}
    if operator not in names:
        raise SavepointNotFound(
            f"query {query} in {path} has no stateful operator {operator}; it has {sorted(names) or 'none'}"
        )
    options = {"operatorId": str(operator)}
    if names[operator].startswith("transformWithState"):
        # the only one our programs have; see yarnflow.spark.translate.stateful
        options["stateVarName"] = "accumulator"
    elif store != "default":
        options["storeName"] = store
    frame = _flat(read_source(spark, "statestore", directory, options))
    try:
        rows = frame.limit(limit + 1).collect()
    except Exception as error:
        raise unreadable(directory, error) from error
    texts = tuple(tuple(row) for row in rows[:limit])
    return StateTable(tuple(frame.columns), texts, len(rows) > limit)


def query_directories(files: HadoopFiles, path: str) -> dict[str, str]:
    """Query → its directory, of a savepoint or checkpoint."""
    root, manifest = read_manifest(files, path)
    if manifest.kind is CheckpointKind.SAVEPOINT:
        return {p.query: f"{root}/{query_directory(p.query)}" for p in manifest.positions}
    job = root.rpartition("/")[0]
    return {
        p.query: p.directory
        if manifest.program.kind == ProgramKind.SCRIPT.value and is_elsewhere(files, p, job)
        else f"{job}/{p.directory.rstrip('/').rpartition('/')[2]}"
        for p in manifest.positions
    }


def _flat(frame: DataFrame) -> DataFrame:
    """Fields of key and value side by side, as text."""
    columns: list[Any] = []
    for part in ("key", "value"):
        if part not in frame.columns:
            continue
        struct = frame.schema[part].dataType
        assert isinstance(struct, StructType), "Spark's state readers give structs"
        for field in struct.fields:
            column = F.col(f"{part}.{quoted(field.name)}")
            text = column.cast("string")
            if isinstance(field.dataType, BinaryType):
                text = F.concat(F.octet_length(column).cast("string"), F.lit(" bytes"))
            columns.append(F.coalesce(text, F.lit("null")).alias(f"{part}.{field.name}"))
    return frame.select(*columns)
