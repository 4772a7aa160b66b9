"""A small streaming query that a driver runs on its executors before it has a job to run.

The first batches of a session take seconds longer than those after them: classes are loaded and
compiled, Python workers start and import, the state store's native library is loaded, connections
to the file system are opened, in the driver and in each executor.  A driver that waits to step in
for another one gets all of this behind it with records of its own.  Nothing of the job is touched.

Flink has no counterpart.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from yarnflow.spark.hadoop_files import HadoopFiles

logger = logging.getLogger(__name__)

#: names of directories in a job's checkpoint directory that are nobody's state
REHEARSAL_PREFIX: Final = "rehearsal-"
#: the first loads classes and takes longest by far, those after it have the JVMs compile what is used often
_BATCHES: Final = 15
_ROWS_PER_BATCH: Final = 200
_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.05


def rehearse(
    spark: SparkSession, directory: str, name: str, partitions: int, wanted: Callable[[], bool]
) -> None:
    """Run some batches through everything a job may use, in a session of its own.

    Source, Python function, shuffle, windowed state and a file sink.

    Parameters
    ----------
    spark : SparkSession
        The driver's session; its executors have registered.
    directory : str
        The job's checkpoint directory (a URI), on the file system the job will use.  What earlier
        rehearsals left there when their drivers were killed is deleted.
    name : str
        Tells this rehearsal from those of other drivers.
    partitions : int
        Parallelism of the job.
    wanted : callable
        The driver has something better to do: stop.
    """
    files = HadoopFiles(spark)
    own = f"{directory}/{REHEARSAL_PREFIX}{name}"
    for left in files.children(directory) if files.exists(directory) else ():
        if left.startswith(REHEARSAL_PREFIX):
            files.delete(f"{directory}/{left}")
    began = time.monotonic()
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    query = (
        _frame(session, partitions)
        .writeStream.queryName("rehearsal")
        .outputMode("update")
        .option("checkpointLocation", f"{own}/query")
        .foreachBatch(lambda frame, _batch_id: _write(frame, f"{own}/out"))
        .trigger(processingTime="10 milliseconds")
        .start()
    )
    try:
        while query.isActive and not wanted() and time.monotonic() - began < _TIMEOUT_S:
            progress = query.lastProgress
            if progress is not None and progress.batchId + 1 >= _BATCHES:
                logger.info("The executors are warm after %.1f s.", time.monotonic() - began)
                return
            time.sleep(_POLL_S)
    finally:
        query.stop()
        files.delete(own)


def _frame(session: SparkSession, partitions: int) -> DataFrame:
    rows = (
        session.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", _ROWS_PER_BATCH)
        .option("numPartitions", partitions)
        .load()
    )
    python = rows.mapInArrow(_unchanged, rows.schema).withWatermark("timestamp", "1 second")
    window = F.window("timestamp", "1 second")
    return python.groupBy(window, (F.col("value") % 7).alias("key")).agg(F.count("*"), F.sum("value"))


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pandas  # noqa: F401 - what workers of the job import

    yield from batches


def _write(frame: DataFrame, path: str) -> None:
    frame.write.mode("append").parquet(path)
