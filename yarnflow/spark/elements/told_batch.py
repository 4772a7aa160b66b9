"""What the driver tells the tasks of a micro-batch: its number and its time.

Both are a local property of Spark's, which goes with every task and costs nothing per record.  The time is
the one that Spark has logged with the batch's input, so it is the same for all levels and partitions, and
when the batch is done again by whichever driver.
"""

from __future__ import annotations

from typing import Final

from pyspark import SparkContext, TaskContext

from yarnflow.operators.task.micro_batch import MicroBatch

_PROPERTY: Final = "yarnflow-micro-batch"
#: Spark sets it to the number, for the tasks of a streaming query
_NUMBER_PROPERTY: Final = "streaming.sql.batchId"


def tell_batch(context: SparkContext, batch: MicroBatch) -> None:
    """Tell all tasks that this thread starts from now on."""
    context.setLocalProperty(_PROPERTY, " ".join(str(int(value)) for value in batch))


def told_batch() -> MicroBatch:
    """In a task: the micro-batch it is part of; number and time 0 where there is no Spark.

    Raises
    ------
    RuntimeError
        The driver has told nothing of this batch: time would differ when the batch is done again.
    """
    context = TaskContext.get()
    if context is None:
        return MicroBatch()
    told, number = context.getLocalProperty(_PROPERTY), context.getLocalProperty(_NUMBER_PROPERTY)
    batch = None if told is None else _batch_of(told)
    if batch is None or number not in (None, str(batch.number)):
        raise RuntimeError(
            f"a task of operators on elements was started outside of its micro-batch (Spark's: {number}, "
            f"told: {told}); report this, with the Spark settings of the job"
        )
    return batch


def _batch_of(told: str) -> MicroBatch:
    number, time_ms, run_ms, whole = map(int, told.split())
    return MicroBatch(number, time_ms, run_ms, bool(whole))
