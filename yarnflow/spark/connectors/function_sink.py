"""Micro-batches for functions of the program, and for nobody."""

from __future__ import annotations

from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from yarnflow.errors import SinkTaken, UserCodeError
from yarnflow.graph.closures import Closure, load_closure
from yarnflow.operators.databases.commits import current_batch
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.run.user_errors import user_traceback_of

_UNKNOWN_ROWS: Final = -1


class DiscardWriter(BatchSink):
    """Computes the records, for what their functions do, and drops them."""

    def write(self, frame: DataFrame, batch_id: int) -> int:
        frame.write.format("noop").mode("append").save()
        return _UNKNOWN_ROWS


class ForeachBatchWriter(BatchSink):
    """Calls the user's function in the driver.

    Parameters
    ----------
    closure : Closure
        ``f(dataframe, batch_id)``.
    writer_id : str
        Names the sink in the token that the function can ask for; the same after a restart.
    token : RunToken
        The attempt of the job.
    """

    def __init__(self, closure: Closure, writer_id: str, token: RunToken) -> None:
        self._closure = closure
        self._id = writer_id
        self._token = token
        self._function = load_closure(closure)

    def write(self, frame: DataFrame, batch_id: int) -> int:
        try:
            with current_batch(self._token.batch(self._id, batch_id)):
                self._function(frame, batch_id)
        except (PySparkException, SinkTaken):
            raise
        except Exception as error:
            found = user_traceback_of(error)
            raise UserCodeError(
                f"{found.summary} (batch {batch_id}, {self._closure.origin})", found.text
            ) from error
        return _UNKNOWN_ROWS
