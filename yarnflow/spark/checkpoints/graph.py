"""Checkpoints and savepoints of a running job graph.

Decides at which batches the queries are taken, and which of them are held still for how long:
none for a checkpoint; none for a savepoint while running, as long as Spark keeps what is copied;
all of them for a savepoint that ends the job.  Never decides when one is taken.  Flink
counterpart: the task side of ``CheckpointCoordinator`` and ``StopWithSavepointTerminationHandler``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Final

from pyspark.sql import SparkSession

from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointKind,
    CheckpointOrder,
    CheckpointOutcome,
)
from yarnflow.errors import CheckpointFailed, StateDrained
from yarnflow.spark.checkpoints.savepoint_writer import QueryState, SavepointWriter, outcome_of
from yarnflow.spark.run.query_run import QueryRun
from yarnflow.spark.run.user_errors import map_spark_error

logger = logging.getLogger(__name__)

_RETAINED_BATCHES: Final = "spark.sql.streaming.minBatchesToRetain"


class GraphCheckpoints:
    """Carries out the orders of one program, one after the other.

    Parameters
    ----------
    spark : SparkSession
    writer : SavepointWriter
        Copies what a savepoint consists of.
    canceled : threading.Event
        Set when the job is being stopped: orders then fail.
    """

    def __init__(self, spark: SparkSession, writer: SavepointWriter, canceled: threading.Event) -> None:
        self._spark = spark
        self._writer = writer
        self._canceled = canceled
        self._lock = threading.Lock()
        self._runs: Sequence[QueryRun] = ()
        self._ended = False
        #: a savepoint ended the job: all of it is copied, and nothing runs any more
        self.stopped_job = threading.Event()
        #: the job was ended, but without its savepoint
        self.failure: StateDrained | None = None

    def begin(self, runs: Sequence[QueryRun]) -> None:
        """The queries were started."""
        self._runs = runs

    def end(self) -> None:
        """Wait for the order that is being carried out; there must be none any more."""
        with self._lock:
            self._ended = True

    def take(self, order: CheckpointOrder) -> CheckpointOutcome:
        """Carry an order out; its failure is in what is returned."""
        with self._lock:
            try:
                return self._take(order)
            except Exception as error:
                mapped = map_spark_error(error)
                logger.warning("Checkpoint %d failed: %s", order.checkpoint_id, mapped.message)
                return CheckpointOutcome(order.checkpoint_id, mapped.message)

    def _take(self, order: CheckpointOrder) -> CheckpointOutcome:
        if self._ended or self.stopped_job.is_set():
            raise CheckpointFailed("the job has ended")
        if not self._runs:
            raise CheckpointFailed("the job's queries have not been started yet; try again in a moment")
        batch = [run.name for run in self._runs if not run.streaming]
        if batch:
            raise CheckpointFailed(
                f"query {batch[0]} reads no stream: it has no batches to take a checkpoint between, and if "
                "it fails it begins anew; wait for its end or cancel the job"
            )
        if order.kind is CheckpointKind.CHECKPOINT:
            return self._checkpoint(order)
        behind = [run.name for run in self._runs if run.redoes]
        if behind:
            raise CheckpointFailed(
                f"query {behind[0]} does batches again, since files of its state were damaged; try again in "
                "a moment"
            )
        self._writer.prepare(order)
        try:
            if order.after is AfterSavepoint.CONTINUE:
                return self._running_savepoint(order)
            return self._last_savepoint(order)
        except Exception:
            self._writer.abandon(order)
            raise

    def _checkpoint(self, order: CheckpointOrder) -> CheckpointOutcome:
        began = time.monotonic()
        for run in self._runs:
            run.await_committed(run.gate.entered, self._check)
        waited_ms = _since_ms(began)
        positions = tuple(run.position(run.committed()) for run in self._runs)
        return CheckpointOutcome(order.checkpoint_id, positions=positions, commit_wait_ms=waited_ms)

    def _running_savepoint(self, order: CheckpointOrder) -> CheckpointOutcome:
        # Spark keeps that many batches; half of them go by before any batch is held back
        retained = int(self._spark.conf.get(_RETAINED_BATCHES, "100") or 100)
        began = time.monotonic()
        states: list[QueryState] = []
        pauses: list[int] = []
        try:
            for run in self._runs:
                if (committed := run.committed()) < 0:
                    # better a savepoint after the first batch than an empty one
                    run.await_committed(run.gate.entered, self._check)
                    committed = run.committed()
                run.gate.hold_above(committed + retained // 2)
                states.append(QueryState(run.position(committed), planned=False))
            waited_ms = _since_ms(began)
            copied = self._writer.write(order, states, self._check)
        finally:
            pauses = [run.gate.release() for run in self._runs]
        return outcome_of(order, states, copied, waited_ms, max(pauses))

    def _last_savepoint(self, order: CheckpointOrder) -> CheckpointOutcome:
        began = time.monotonic()
        drained = False
        try:
            # all gates first, so that the queries' last batches run side by side
            for run in self._runs:
                run.close_gate()
            for run in self._runs:
                run.suspend(self._check)
            suspended = time.monotonic()
            if order.after is AfterSavepoint.DRAIN:
                for run in self._runs:
                    if run.windowed and run.committed() >= 0:
                        # from here on nobody knows which windows have fired
                        drained = True
                        run.drain(self._check)
            waited_ms = _since_ms(began)
            # no batch is planned that was begun: the gates were closed before it
            states = [
                QueryState(run.position(run.committed()), planned=not run.plans_messages_that_return)
                for run in self._runs
            ]
            copied = self._writer.write(order, states, self._check)
        except Exception as error:
            if not drained:
                for run in self._runs:
                    run.resume()
                raise
            # all that came now would be too late for its window
            reason = map_spark_error(error).message
            self.failure = StateDrained(
                f"the windows were fired by --drain, but the savepoint failed: {reason}; "
                "start the job from a savepoint taken before, or empty with --restore none"
            )
            self.stopped_job.set()
            raise self.failure from error
        self.stopped_job.set()
        return outcome_of(order, states, copied, waited_ms, _since_ms(suspended))

    def _check(self) -> None:
        if self._canceled.is_set():
            raise CheckpointFailed("the job is being stopped")


def _since_ms(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
