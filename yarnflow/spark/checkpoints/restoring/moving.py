"""State of operators on elements moved between the levels of a query, for a program with others.

Spark numbers the state of levels, so an operator more or less, or an exchange more, gives state another
place.  All of it is written anew, in a copy whose query does not run, by a query of one batch that has the
operators of the one that is to go on; what it writes takes the place of what was there, as of the same
batch.  Flink counterpart: ``StateAssignmentOperation``.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from yarnflow.core.checkpoint.query_files import COMMITS, OFFSETS
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.errors import RpcProtocolError, SavepointInvalid, StateIncompatible
from yarnflow.operators.task.state_layout import (
    LAYOUT_FILE,
    LastSource,
    LevelMove,
    StateLayout,
    is_changed,
    moves,
    spark_number,
)
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.checkpoints.log_entries import (
    end_is_read,
    state_settings,
    with_last_source,
    without_state_ids,
)
from yarnflow.spark.checkpoints.placing import put_in_place
from yarnflow.spark.checkpoints.positions import committed_batch, write_log
from yarnflow.spark.elements.moved_levels import MOVED_DDL, moved_levels
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.batch_thread import BatchThread
from yarnflow.spark.run.query_plan import END_OF_INPUT
from yarnflow.spark.state.files import numbered
from yarnflow.spark.state.frames import level_entries, level_heads
from yarnflow.spark.translate.stateful import use_rocksdb

logger = logging.getLogger(__name__)

#: how long nobody looks whether the work is still wanted
_LOOK_S: Final = 0.5
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
#: how the state is written anew: all of it in one batch and in one snapshot, which needs no earlier version,
#: in files that are called by their version alone
_WRITING: Final = {
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
}


def read_layout(files: HadoopFiles, directory: str) -> StateLayout | None:
    """The layout of the state in a query's directory; None = there are no operators on elements."""
    path = f"{directory}/{LAYOUT_FILE}"
    if not files.exists(path):
        return None
    try:
        return from_json(StateLayout, files.read(path).decode())
    except (RpcProtocolError, UnicodeDecodeError) as error:
        raise SavepointInvalid(f"{path} cannot be understood: {error}; start from another one") from error


def move(
    spark: SparkSession,
    directory: str,
    before: StateLayout,
    after: StateLayout,
    partitions: int,
    names: Mapping[str, str],
    fence: Fence,
) -> None:
    """Bring the state in a copy of a query's directory into the layout of another program.

    A batch that was planned and not committed is forgotten: its input is planned anew.

    Parameters
    ----------
    directory : str
        The copy's.
    before, after : StateLayout
    partitions : int
        Into which state is divided; 0 = as it is.
    names : mapping
        Operator id → what it is called in errors.
    fence : callable
        Raises when this driver may not write, or not go on; asked while it waits.

    Raises
    ------
    StateIncompatible
        Spark itself keeps state in the query; or the input was read to its end, and has none now.
    """
    files = HadoopFiles(spark)
    committed = committed_batch(files, directory)
    wanted = moves(before, after)
    if committed >= 0:
        _check_last_source(files, directory, committed, before, after)
    conf: dict[str, str] = {}
    if committed >= 0 and wanted is not None:
        conf = _write_anew(
            spark, files, directory, committed, before, wanted, partitions, names, fence
        )
    if is_changed(before, after):
        _plan_anew(files, directory, committed, conf, before, after)
    files.write(f"{directory}/{LAYOUT_FILE}", to_json(after).encode())


def _write_anew(
    spark: SparkSession,
    files: HadoopFiles,
    directory: str,
    committed: int,
    before: StateLayout,
    wanted: Sequence[LevelMove],
    partitions: int,
    names: Mapping[str, str],
    fence: Fence,
) -> dict[str, str]:
    """The settings that the state was written with, as Spark records them."""
    found = len(numbered(files.children(f"{directory}/state")))
    if found != len(before.levels):
        raise StateIncompatible(
            f"the operators of query {directory.rpartition('/')[2]} were changed, and a SQL query before "
            "them has state, which cannot be moved: undo the change, or start without state (--restore none)"
        )
    conf: dict[str, str] = _described(files, directory, committed)["conf"]
    work = f"{directory}.moving"
    new: dict[str, str] = {}
    try:
        if wanted:
            rows = _saved_rows(spark, directory, before, wanted)
            reading = BatchThread(
                spark.sparkContext, "moved-state", lambda: rows.write.parquet(f"{work}/rows")
            )
            reading.start()
            await_end(reading.ended, reading.cancel, fence)
            query = _start(spark, work, wanted, partitions or int(conf[_PARTITIONS]), names)
            await_end(lambda s: bool(query.awaitTermination(cast(int, s))), query.stop, fence)
            written = committed_batch(files, f"{work}/query")
            new = state_settings(_described(files, f"{work}/query", written)["conf"])
            _renumber(files, f"{work}/query/state", written + 1, committed + 1)
        _forget_state_ids(files, directory)
        files.delete(f"{directory}/state")
        if wanted:
            put_in_place(files, f"{work}/query/state", f"{directory}/state", fence)
    finally:
        files.delete(work)
    logger.info("Moved the state in %s to the %d levels of the program.", directory, len(wanted))
    return new


def await_end(ended: Callable[[float], bool], stop: Callable[[], None], fence: Fence) -> None:
    """Wait for work of Spark's, as long as it is wanted.

    Parameters
    ----------
    ended : callable
        Waits some seconds at most; whether the work is over.
    stop : callable
        Ends the work, and waits for that.
    fence : callable
        What it raises ends the work.
    """
    try:
        while not ended(_LOOK_S):
            fence()
    except BaseException:
        stop()
        raise


def _start(
    spark: SparkSession, work: str, wanted: Sequence[LevelMove], partitions: int, names: Mapping[str, str]
) -> StreamingQuery:
    session = spark.newSession()
    use_rocksdb(session)
    session.conf.set(_PARTITIONS, str(partitions))
    for option, value in _WRITING.items():
        session.conf.set(option, value)
    return (
        moved_levels(session.readStream.schema(MOVED_DDL).parquet(f"{work}/rows"), wanted, names)
        .writeStream.format("noop")
        .option("checkpointLocation", f"{work}/query")
        .trigger(availableNow=True)
        .start()
    )


def _saved_rows(
    spark: SparkSession, directory: str, before: StateLayout, wanted: Sequence[LevelMove]
) -> DataFrame:
    """What there is, once for each level that has some of it."""
    frames = [spark.createDataFrame([], MOVED_DDL)]
    for source in range(len(before.levels)):
        levels = [
            level for level, move in enumerate(wanted) if source in {part.source for part in move.parts}
        ]
        if not levels:
            continue
        number = spark_number(len(before.levels), source)
        for frame in (level_heads(spark, directory, number), level_entries(spark, directory, number)):
            to_levels = frame.withColumn("level", F.explode(F.array(*map(F.lit, levels))))
            frames.append(to_levels.withColumn("source", F.lit(source)))
    every = functools.reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
    return every.select(*frames[0].columns)


def _renumber(files: HadoopFiles, state: str, written: int, version: int) -> None:
    """Let stores have another version, which their files are called by."""
    for operator in numbered(files.children(state)):
        for partition in numbered(files.children(f"{state}/{operator}")):
            store = f"{state}/{operator}/{partition}"
            for name in files.children(store):
                number, dot, rest = name.partition(".")
                if number == str(written) and dot:
                    files.rename(f"{store}/{name}", f"{store}/{version}.{rest}")


def _forget_state_ids(files: HadoopFiles, directory: str) -> None:
    """With ``checkpointFormatVersion`` 2 the log of commits has the names of the files that were there."""
    log = f"{directory}/{COMMITS}"
    for batch in numbered(files.children(log)):
        found = files.read(f"{log}/{batch}").decode()
        write_log(files, log, batch, without_state_ids(found).splitlines())


def _check_last_source(
    files: HadoopFiles, directory: str, committed: int, before: StateLayout, after: StateLayout
) -> None:
    """Whether the query can go on with input that ends, or does not, where it was the other way round."""
    was_end, is_end = (layout.last_source is LastSource.END for layout in (before, after))
    if was_end is is_end:
        return
    name = directory.rpartition("/")[2]
    if was_end and end_is_read(files.read(f"{directory}/{OFFSETS}/{committed}").decode()):
        raise StateIncompatible(
            f"query {name} has read its input to the end and fired what was to be fired then, so it cannot "
            "go on with input that never ends: make its sources bounded again, or start without state "
            "(--restore none)"
        )
    if len(numbered(files.children(f"{directory}/state"))) != len(before.levels):
        # windows of a SQL query have sources of their own that tell the end, in front of others
        ways = {True: "to an end", False: "for ever"}
        raise StateIncompatible(
            f"query {name} was read {ways[was_end]} and is read {ways[is_end]}, and a SQL query in it has "
            f"state: read its sources {ways[was_end]} again, or start without state (--restore none)"
        )


def _plan_anew(
    files: HadoopFiles,
    directory: str,
    committed: int,
    conf: dict[str, str],
    before: StateLayout,
    after: StateLayout,
) -> None:
    """Forget what was planned and not committed, and fit the log of what was to the query."""
    log = f"{directory}/{OFFSETS}"
    for batch in numbered(files.children(log)):
        if batch > committed:
            files.delete(f"{log}/{batch}")
            continue
        found = files.read(f"{log}/{batch}").decode()
        fitting, gone = with_last_source(found, conf, before.last_source, after.last_source)
        if gone >= 0:
            files.delete(f"{directory}/sources/{gone}")
        if batch == committed and before.last_source is LastSource.END and not end_is_read(found):
            # it would tell the former levels of the end
            files.delete(f"{directory}/{END_OF_INPUT}")
        write_log(files, log, batch, fitting.splitlines())


def _described(files: HadoopFiles, directory: str, batch: int) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(
        files.read(f"{directory}/{OFFSETS}/{batch}").decode().splitlines()[1]
    )
    return described
