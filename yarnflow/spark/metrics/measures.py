"""What Python workers counted, summed up in the driver: an accumulator of Spark's.

Spark sends the value with the end of each task, and takes that of a task that ended well only.  A task that
was done again after it had ended well counts twice; metrics may, results may not.
"""

from __future__ import annotations

import copy
import threading
from typing import Any, Final

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from yarnflow.operators.functions.measures import Measures, add_measures

#: the driver's thread for accumulators adds, others read; a worker has one thread
_lock: Final = threading.Lock()


class _Sums(AccumulatorParam[Any]):
    """How measures are added; found by its name in workers."""

    def zero(self, value: Measures) -> Measures:
        return {}

    def addInPlace(self, value1: Measures, value2: Measures) -> Measures:  # noqa: N802
        with _lock:
            return add_measures(value1, value2)


class MeasureSums:
    """Of one attempt of a job.

    Parameters
    ----------
    context : SparkContext
    """

    def __init__(self, context: SparkContext) -> None:
        #: travels to the workers
        self.sink: Accumulator[Any] = context.accumulator({}, _Sums())

    def read(self) -> Measures:
        """What has arrived."""
        with _lock:
            return copy.deepcopy(self.sink.value)

    def forget(self) -> None:
        """The attempt is over; PySpark keeps every accumulator for ever, but not what it has summed up."""
        with _lock:
            self.sink.value = {}
