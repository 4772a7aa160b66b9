"""The state of a query divided anew, for a program of another parallelism.

Done in a copy whose query does not run, by Spark's own rewriter: a batch is added that reads nothing and
has the state in the new number of partitions.  Keys stay in their key groups; only where a group lies
changes.  Flink counterpart: ``StateAssignmentOperation``, which deals key groups out to subtasks.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from pyspark.sql import SparkSession

from yarnflow.core.checkpoint.query_files import OFFSETS
from yarnflow.errors import StateIncompatible
from yarnflow.spark.checkpoints.positions import committed_batch
from yarnflow.spark.hadoop_files import HadoopFiles, java_cause
from yarnflow.spark.state.files import numbered

logger = logging.getLogger(__name__)

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
#: in what Spark says of checkpoints whose state it cannot divide
_REFUSED: Final = "STATE_REPARTITION"


def rescale(spark: SparkSession, directory: str, partitions: int) -> None:
    """Divide the state in a copy of a query's directory into another number of partitions.

    A batch that was planned and not committed is forgotten: its input is planned anew.

    Parameters
    ----------
    directory : str
        The copy's; it must have a committed batch if it has state.
    partitions : int

    Raises
    ------
    StateIncompatible
        Spark cannot divide state of this kind.
    """
    files = HadoopFiles(spark)
    committed = committed_batch(files, directory)
    if committed < 0 or not files.exists(f"{directory}/state"):
        return
    for batch in numbered(files.children(f"{directory}/{OFFSETS}")):
        if batch > committed:
            files.delete(f"{directory}/{OFFSETS}/{batch}")
    described = json.loads(files.read(f"{directory}/{OFFSETS}/{committed}").decode().splitlines()[1])
    conf = described.get("conf", {})
    before = conf.get(_PARTITIONS)
    if before == str(partitions):
        return
    provider = spark.conf.get(_PROVIDER, None)
    try:
        # the state is what it was written as, whatever the session writes
        spark.conf.set(_PROVIDER, conf.get(_PROVIDER, provider))
        spark._streamingCheckpointManager.repartition(directory, partitions)
    except Exception as error:
        reason = java_cause(error)
        if _REFUSED not in reason:
            raise
        raise StateIncompatible(
            f"the state is in {before} partitions and cannot be divided into {partitions}: {reason}; give "
            f"the program's widest operator the parallelism {before}, or start without state (--restore none)"
        ) from error
    finally:
        if provider is None:
            spark.conf.unset(_PROVIDER)
        else:
            spark.conf.set(_PROVIDER, provider)
    _remove_partitions(files, directory, partitions)
    logger.info("Divided the state in %s into %d partitions, from %s.", directory, partitions, before)


def _remove_partitions(files: HadoopFiles, directory: str, partitions: int) -> None:
    """Those that are none any more: a later savepoint would miss their newest version."""
    for operator in numbered(files.children(f"{directory}/state")):
        for partition in numbered(files.children(f"{directory}/state/{operator}")):
            if partition >= partitions:
                files.delete(f"{directory}/state/{operator}/{partition}")
