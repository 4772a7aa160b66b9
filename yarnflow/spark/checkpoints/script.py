"""Checkpoints and savepoints of an unmodified PySpark script.

A script's queries are Spark's alone: nothing stands between two of their batches.  Decides that a
query is stopped when it is idle or right after a commit, and that the batch Spark may have planned
by then goes along, to be done with the very same input.  Refuses what a script cannot do.  Flink
counterpart: none; its programs are always dataflows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from yarnflow.core.checkpoint.manifest import RESTORED_FILE, checkpoint_id_of
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointKind,
    CheckpointOrder,
    CheckpointOutcome,
)
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.checkpoint.query_files import OFFSETS
from yarnflow.errors import CheckpointFailed, YarnflowError
from yarnflow.spark.checkpoints.damage.going_back import mend
from yarnflow.spark.checkpoints.job import Fence, JobIdentity
from yarnflow.spark.checkpoints.positions import committed_batch, planned_batch, read_position
from yarnflow.spark.checkpoints.saved_queries import SAVED_QUERIES_FILE, may_name_a_directory
from yarnflow.spark.checkpoints.savepoint_writer import QueryState, SavepointWriter, Written, outcome_of
from yarnflow.spark.connectors.sources import SOURCES_DIRECTORY
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.sink_writers import SINKS_DIRECTORY
from yarnflow.spark.run.user_errors import map_spark_error
from yarnflow.spark.script.identity import QueryIdentities
from yarnflow.spark.script.queries import ScriptQueries

logger = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.02
#: Spark may remove a file between the look and the copy when batches are very short
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class _ScriptQuery:
    name: str
    directory: str
    #: pyspark's; None = it has ended
    query: Any = None


class ScriptCheckpoints:
    """Carries out the orders of one script, one after the other.

    Parameters
    ----------
    spark : SparkSession
    queries : ScriptQueries
        What the script runs.
    identities : QueryIdentities
        What it has run so far, and where that keeps its checkpoints.
    job : JobIdentity
    job_dir : str
        Below which queries keep their checkpoints that have no location of their own.
    fence : callable
        Called before a manifest is written.
    canceled : threading.Event
        Set when the job is being stopped: orders then fail.
    """

    def __init__(
        self,
        spark: Any,
        queries: ScriptQueries,
        identities: QueryIdentities,
        job: JobIdentity,
        job_dir: str,
        fence: Fence,
        canceled: threading.Event,
    ) -> None:
        self._spark = spark
        self._script = queries
        self._identities = identities
        self._job = job
        self._job_dir = job_dir
        self._fence = fence
        self._canceled = canceled
        self._lock = threading.Lock()
        self._ended = False
        #: the queries were stopped for a savepoint that could not be written
        self.failure: YarnflowError | None = None

    def end(self) -> None:
        """Wait for the order that is being carried out; there must be none any more."""
        with self._lock:
            self._ended = True

    def directory_of(self, query_id: str) -> str:
        """Checkpoint directory of an active query; else empty."""
        query = self._script.get(query_id)
        return _directory(query) if query is not None else ""

    def look_at_state(self, suspects: Collection[str]) -> None:
        """Find damaged files of the queries that are below the job's directory; none runs.

        Raises
        ------
        StateDamaged
            Some are.  A script starts its queries itself, so that none can be brought back.
        """
        files = HadoopFiles(self._spark)
        for entry in files.entries(self._job_dir) if self._job_dir else ():
            directory = f"{self._job_dir}/{entry.name}"
            if entry.is_directory and files.exists(f"{directory}/{OFFSETS}"):
                mend(
                    files, directory, entry.name, self._fence,
                    does_again=False, all_state=True, suspects=suspects,
                )  # fmt: skip

    def take(
        self, order: CheckpointOrder, stopping: Callable[[], None], halt: Callable[[], None]
    ) -> CheckpointOutcome:
        """Carry an order out; its failure is in what is returned.

        Parameters
        ----------
        stopping : callable
            Called before the queries are stopped: none starts from then on, and main's errors mean
            nothing.
        halt : callable
            Stops the queries and ends main.
        """
        with self._lock:
            try:
                return self._take(order, stopping, halt)
            except Exception as error:
                mapped = map_spark_error(error)
                logger.warning("Checkpoint %d failed: %s", order.checkpoint_id, mapped.message)
                return CheckpointOutcome(order.checkpoint_id, mapped.message)

    def _take(
        self, order: CheckpointOrder, stopping: Callable[[], None], halt: Callable[[], None]
    ) -> CheckpointOutcome:
        if self._ended or self.failure is not None:
            raise CheckpointFailed("the job has ended")
        files = HadoopFiles(self._spark)
        queries = self._queries(files)
        if not any(query.query is not None for query in queries):
            raise CheckpointFailed("the program runs no streaming query now, so there is nothing to save")
        if order.kind is CheckpointKind.CHECKPOINT:
            began = time.monotonic()
            for query in queries:
                self._await_commit(files, query, planned_batch(files, query.directory))
            positions = tuple(self._state(files, query, False).position for query in queries)
            return CheckpointOutcome(
                order.checkpoint_id, positions=positions, commit_wait_ms=_since_ms(began)
            )
        self._refuse(order, queries)
        writer = SavepointWriter(
            self._spark, self._job, self._job_dir, ProgramShape("SCRIPT"), self._fence
        )
        writer.prepare(order)
        try:
            if order.after is AfterSavepoint.CONTINUE:
                return self._running_savepoint(order, files, queries, writer)
            return self._last_savepoint(order, files, queries, writer, stopping, halt)
        except Exception:
            writer.abandon(order)
            raise

    def _queries(self, files: HadoopFiles) -> list[_ScriptQuery]:
        """Those that run, and those that ended and must not begin anew in a job that starts from here."""
        found = {
            _directory(query): _ScriptQuery(query.name or "", _directory(query), query)
            for query in self._script.active()
        }
        for directory, name in self._identities.started.items():
            if directory not in found and files.exists(f"{directory}/{OFFSETS}"):
                found[directory] = _ScriptQuery(name, directory)
        root = files.qualified(self._job_dir)
        for entry in files.entries(self._job_dir):
            directory = f"{root}/{entry.name}"
            if entry.is_directory and directory not in found and files.exists(f"{directory}/{OFFSETS}"):
                found[directory] = _ScriptQuery(entry.name, directory)
        return list(found.values())

    def _refuse(self, order: CheckpointOrder, queries: list[_ScriptQuery]) -> None:
        if order.after is AfterSavepoint.DRAIN:
            raise CheckpointFailed(
                "the windows of a PySpark script cannot be drained: its queries are its own; "
                "stop without --drain"
            )
        names: dict[str, str] = {}
        for query in queries:
            if not _has_own_place(query.name):
                raise CheckpointFailed(
                    f"the query {query.name!r} cannot be told from other files of the job by its name; "
                    "give it another one with queryName(), without '/'"
                )
            other = names.setdefault(query.name, query.directory)
            if other != query.directory:
                raise CheckpointFailed(
                    f"there are two queries {query.name}, with checkpoints in {other} and {query.directory}; "
                    "give one of them another name with queryName()"
                )

    def _running_savepoint(
        self,
        order: CheckpointOrder,
        files: HadoopFiles,
        queries: list[_ScriptQuery],
        writer: SavepointWriter,
    ) -> CheckpointOutcome:
        for attempt in range(_ATTEMPTS):
            states = [self._state(files, query, False) for query in queries]
            try:
                return outcome_of(order, states, writer.write(order, states, self._check), 0, 0)
            except CheckpointFailed:
                if attempt == _ATTEMPTS - 1 or self._canceled.is_set():
                    raise
        raise AssertionError("returned or raised")

    def _last_savepoint(
        self,
        order: CheckpointOrder,
        files: HadoopFiles,
        queries: list[_ScriptQuery],
        writer: SavepointWriter,
        stopping: Callable[[], None],
        halt: Callable[[], None],
    ) -> CheckpointOutcome:
        began = time.monotonic()
        for query in queries:
            self._await_commit(files, query, committed_batch(files, query.directory) + 1)
        stopped = time.monotonic()
        try:
            stopping()
            try:
                # with those that main has started meanwhile
                queries = self._queries(files)
                self._refuse(order, queries)
                for query in queries:
                    if query.query is not None:
                        query.query.stop()
            finally:
                halt()
            states = [self._state(files, query, True) for query in queries]
            written: Written = writer.write(order, states, self._check)
            self._ended = True
        except Exception as error:
            # the program cannot be told to start its queries again, but the job can: from the last commit
            mapped = map_spark_error(error)
            self.failure = CheckpointFailed(f"stopped, but the savepoint failed: {mapped.message}")
            raise
        waited_ms = int((stopped - began) * 1000)
        return outcome_of(order, states, written, waited_ms, _since_ms(stopped))

    def _await_commit(self, files: HadoopFiles, query: _ScriptQuery, batch_id: int) -> None:
        """Wait until a query has committed a batch or has nothing to do."""
        while (
            query.query is not None
            and query.query.isActive
            and query.query.status["isTriggerActive"]
            and committed_batch(files, query.directory) < batch_id
        ):
            self._check()
            time.sleep(_POLL_SECONDS)

    def _state(self, files: HadoopFiles, query: _ScriptQuery, planned: bool) -> QueryState:
        progress = query.query._jsq.lastProgress() if query.query is not None else None
        text = str(progress.json()) if progress is not None else ""
        committed = committed_batch(files, query.directory)
        return QueryState(read_position(files, query.name, query.directory, committed, text), planned)

    def _check(self) -> None:
        if self._canceled.is_set():
            raise CheckpointFailed("the job is being stopped")


def _has_own_place(name: str) -> bool:
    """Whether a query's directory is called like nothing else in a job's directory."""
    others = (SOURCES_DIRECTORY, SINKS_DIRECTORY, RESTORED_FILE, SAVED_QUERIES_FILE)
    return may_name_a_directory(name) and name not in others and checkpoint_id_of(name) is None


def _directory(query: Any) -> str:
    return str(query._jsq.streamingQuery().resolvedCheckpointRoot()).rstrip("/")


def _since_ms(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
