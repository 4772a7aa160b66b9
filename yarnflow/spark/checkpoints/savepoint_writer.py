"""Savepoints of a running program.

Decides what a savepoint consists of: for each query the files its last committed batch needs, and
the rows of collections; ``_metadata`` last, so that a directory with one is complete.  All of it is the
user's alone: to read, since it is the data of a job, and to write, since who could write might have it
run anything (:mod:`yarnflow.core.checkpoint.ownership`).  Never stops a query.  Flink counterpart:
``SavepointWriter``.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from yarnflow import __version__
from yarnflow.core.checkpoint.manifest import (
    METADATA_FILE,
    SavepointFile,
    SavepointMetadata,
    to_bytes,
)
from yarnflow.core.checkpoint.messages import (
    CheckpointKind,
    CheckpointOrder,
    CheckpointOutcome,
    QueryPosition,
)
from yarnflow.core.checkpoint.ownership import DIRECTORY_MODE, FILE_MODE
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.checkpoint.query_files import query_directory
from yarnflow.core.checkpoint.signature import signed
from yarnflow.errors import CheckpointFailed
from yarnflow.spark.checkpoints.file_copy import CopiedFile, SourceFileGone, copy_files
from yarnflow.spark.checkpoints.job import Fence, JobIdentity
from yarnflow.spark.checkpoints.positions import planned_batch
from yarnflow.spark.connectors.sources import SOURCES_DIRECTORY
from yarnflow.spark.file_owners import FileOwners
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.state.files import (
    StateFilesMissing,
    names_schemas,
    needed_files,
    with_schemas_below,
    zip_references,
)


@dataclass(frozen=True, slots=True)
class QueryState:
    """One query of a savepoint."""

    position: QueryPosition
    #: the query is stopped: the batch Spark has planned goes along, so that it is done with its input
    planned: bool


@dataclass(frozen=True, slots=True)
class Written:
    """What a savepoint became."""

    copy_ms: int
    copied_bytes: int


class SavepointWriter:
    """Writes the savepoints of one job.

    Parameters
    ----------
    spark : SparkSession
    job : JobIdentity
    job_dir : str
        The job's checkpoint directory.
    program : ProgramShape
        For the compatibility check of who starts from it.
    fence : callable
        Called before the manifest is written.
    """

    def __init__(
        self, spark: SparkSession, job: JobIdentity, job_dir: str, program: ProgramShape, fence: Fence
    ) -> None:
        self._files = HadoopFiles(spark)
        self._owners = FileOwners(self._files)
        self._job = job
        self._job_dir = job_dir
        self._program = program
        self._fence = fence

    def prepare(self, order: CheckpointOrder) -> None:
        """Make the savepoint's directory, before anything is stopped for it.

        Raises
        ------
        CheckpointFailed
            It exists already.
        StorageError
            It cannot be made.
        """
        target = order.target.rstrip("/")
        if not target:
            raise CheckpointFailed("the order names no directory for the savepoint")
        if self._files.exists(target):
            raise CheckpointFailed(f"{target} exists already; every savepoint has a directory of its own")
        self._make_private(target)

    def abandon(self, order: CheckpointOrder) -> None:
        """Remove a directory of :meth:`prepare` that became no savepoint."""
        target = order.target.rstrip("/")
        if not self._files.exists(f"{target}/{METADATA_FILE}"):
            self._files.delete(target)

    def write(
        self, order: CheckpointOrder, states: Sequence[QueryState], check: Callable[[], None]
    ) -> Written:
        """Copy and write the manifest into a directory of :meth:`prepare`; if that fails it is removed.

        Parameters
        ----------
        check : callable
            Called often; what it raises ends the writing.

        Raises
        ------
        CheckpointFailed
            A file Spark should have kept is gone.
        StorageError
        """
        files = self._files
        target = order.target.rstrip("/")
        began = time.monotonic()
        try:
            copied = self._copy(target, states, check)
            self._fence()
            manifest = SavepointMetadata(
                checkpoint_id=order.checkpoint_id,
                kind=CheckpointKind.SAVEPOINT,
                job_id=self._job.job_id,
                job_name=self._job.job_name,
                job_key=self._job.job_key,
                created_ms=int(time.time() * 1000),
                yarnflow_version=__version__,
                program=self._program,
                positions=tuple(state.position for state in states),
                files=tuple(
                    SavepointFile(path, file.length, file.checksum) for path, file in sorted(copied.items())
                ),
            )
            files.write(f"{target}/{METADATA_FILE}", signed(to_bytes(manifest), self._job.savepoint_key))
            self._owners.set_mode(f"{target}/{METADATA_FILE}", FILE_MODE)
        except (StateFilesMissing, SourceFileGone) as error:
            files.delete(target)
            raise CheckpointFailed(f"a file of the state is gone: {error}; try again") from error
        except BaseException:
            files.delete(target)
            raise
        return Written(int((time.monotonic() - began) * 1000), manifest.total_bytes)

    def _copy(
        self, target: str, states: Sequence[QueryState], check: Callable[[], None]
    ) -> dict[str, CopiedFile]:
        """Path relative to the savepoint → what was copied there."""
        paths: dict[str, str] = {}
        relative: dict[str, str] = {}
        parts = [
            (state.position.directory, query_directory(state.position.query), state_paths(self._files, state))
            for state in states
        ]
        collections = f"{self._job_dir}/{SOURCES_DIRECTORY}"
        parts.append((collections, SOURCES_DIRECTORY, tuple(self._files.tree(collections))))
        for directory, name, found in parts:
            check()
            for path in found:
                paths[f"{directory}/{path}"] = f"{target}/{name}/{path}"
                relative[f"{directory}/{path}"] = f"{name}/{path}"
        made = {target}
        for path in paths.values():
            self._make_parents(path, made)
        copies = copy_files(self._files, paths, check, lambda copy: self._owners.set_mode(copy, FILE_MODE))
        for directory, name, found in parts:
            for path in filter(names_schemas, found):
                copies[f"{directory}/{path}"] = self._place_schemas(f"{target}/{name}", path)
        return {relative[source]: copy for source, copy in copies.items()}

    def _place_schemas(self, directory: str, path: str) -> CopiedFile:
        """Have a copy name schemas of the savepoint: those of the job may be gone when it is looked at."""
        copy = f"{directory}/{path}"
        content = with_schemas_below(self._files.read(copy), directory)
        self._files.write(copy, content)
        self._owners.set_mode(copy, FILE_MODE)
        return CopiedFile(len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")

    def _make_parents(self, path: str, made: set[str]) -> None:
        parent = path.rpartition("/")[0]
        if parent not in made:
            self._make_parents(parent, made)
            self._make_private(parent)
            made.add(parent)

    def _make_private(self, directory: str) -> None:
        self._files.make_directory(directory)
        self._owners.set_mode(directory, DIRECTORY_MODE)


def state_paths(files: HadoopFiles, state: QueryState) -> tuple[str, ...]:
    """Files of a query that are part of its state, relative to its directory.

    Raises
    ------
    StateFilesMissing
    """
    directory, committed = state.position.directory, state.position.batch_id

    def references(path: str) -> tuple[str, ...]:
        return zip_references(files.read(f"{directory}/{path}"))

    planned = state.planned and planned_batch(files, directory) > committed
    return needed_files(files.tree(directory), committed, planned, references)


def outcome_of(
    order: CheckpointOrder, states: Sequence[QueryState], written: Written, waited_ms: int, pause_ms: int
) -> CheckpointOutcome:
    """The outcome of a savepoint that is complete."""
    return CheckpointOutcome(
        order.checkpoint_id,
        positions=tuple(state.position for state in states),
        commit_wait_ms=waited_ms,
        pause_ms=pause_ms,
        copy_ms=written.copy_ms,
        copied_bytes=written.copied_bytes,
    )
