"""One directory of a state brought to its place below the job's directory.

It is copied to a directory beside its place, adapted and checked there, and then renamed
(:mod:`yarnflow.spark.checkpoints.placing`).  Claimed state is copied as well, so that it can be checked on
the way.  Never decides what is brought.
"""

from __future__ import annotations

import json
import uuid

from pyspark.sql import SparkSession

from yarnflow.core.checkpoint.manifest import SavepointMetadata
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.checkpoint.query_files import COMMITS, OFFSETS, SINK_IDENTITY_FILE, WRITTEN_FILE
from yarnflow.errors import SavepointInvalid
from yarnflow.operators.task.state_layout import is_changed
from yarnflow.spark.checkpoints.file_copy import SourceFileGone, copy_files
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.checkpoints.placing import put_in_place, remove_left_work, work_directory
from yarnflow.spark.checkpoints.positions import spark_path
from yarnflow.spark.checkpoints.restoring.layouts import Layouts
from yarnflow.spark.checkpoints.restoring.moving import move
from yarnflow.spark.checkpoints.restoring.parts import BESIDE, Part, directory_name
from yarnflow.spark.checkpoints.restoring.rescaling import rescale
from yarnflow.spark.checkpoints.restoring.trust import check_plain
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.query_plan import END_OF_INPUT
from yarnflow.spark.state.files import names_schemas, numbered, with_schemas_below


class Bringing:
    """Of the state of one job.

    Parameters
    ----------
    spark : SparkSession
    files : HadoopFiles
    job_dir : str
        The job's checkpoint directory (a URI).
    fence : callable
        Raises when this driver may not write, or not go on.
    """

    def __init__(self, spark: SparkSession, files: HadoopFiles, job_dir: str, fence: Fence) -> None:
        self._spark = spark
        self._files = files
        self._job_dir = job_dir
        self._fence = fence

    def bring(
        self,
        root: str,
        part: Part,
        manifest: SavepointMetadata,
        layouts: Layouts,
        partitions: int,
        doubt: str,
    ) -> None:
        """Bring one directory.

        Parameters
        ----------
        root : str
            Directory of the savepoint or checkpoint.
        partitions : int
            Into how many its state is to be divided anew; 0 = it stays as it is.
        doubt : str
            Why workers may not unpickle what is in it; empty = they may.

        Raises
        ------
        SavepointInvalid, StateNotTrusted, LeaseLost, StorageError
        """
        files = self._files
        target = f"{self._job_dir}/{part.name}"
        remove_left_work(files, target, self._fence)
        beside = work_directory(target)
        files.make_directory(beside)
        paths = {f"{part.source}/{path}": f"{beside}/{path}" for path in part.paths}
        try:
            copied = copy_files(files, paths, self._fence)
        except SourceFileGone as error:
            raise SavepointInvalid(
                f"{error} is missing: the state to start from is not whole; start from another one"
            ) from error
        for path, expected in part.expected.items():
            found = copied[f"{part.source}/{path}"]
            damaged = found.length != expected.length or expected.checksum not in ("", found.checksum)
            if damaged:
                files.delete(beside)
                raise SavepointInvalid(
                    f"{part.source}/{path} is damaged: {found.length} bytes, {found.checksum}, where the "
                    f"manifest says {expected.length} bytes, {expected.checksum}; start from another one"
                )
        if part.name not in BESIDE:
            self._adapt(part, beside, manifest)
            # what is damaged is found again, and mended, when the query starts
            mended = part.damage is not None and not doubt
            self._place_schemas(part, beside, beside, mended)
            if doubt:
                check_plain(self._spark, root, beside, doubt)
            before, after = layouts.of(beside, part)
            if before is not None and after is not None and is_changed(before, after):
                move(self._spark, beside, before, after, partitions, _names(manifest), self._fence)
            if partitions:
                rescale(self._spark, beside, partitions)
            self._place_schemas(part, beside, target, mended)
        put_in_place(files, beside, target, self._fence)

    def _place_schemas(self, part: Part, directory: str, place: str, mended: bool) -> None:
        """Have the state in a directory look for its schemas in the place where it will be."""
        files = self._files
        for path in filter(names_schemas, files.tree(directory)):
            file = f"{directory}/{path}"
            try:
                placed = with_schemas_below(files.read(file), place)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if mended:
                    continue
                raise SavepointInvalid(
                    f"{part.source}/{path} is damaged: it cannot be understood ({type(error).__name__}: "
                    f"{error}); start from another one"
                ) from error
            files.write(file, placed)

    def _adapt(self, part: Part, directory: str, manifest: SavepointMetadata) -> None:
        """What names the place it was at, or must be another job's, is changed in the copy."""
        files = self._files
        position = next(p for p in manifest.positions if directory_name(p, manifest) == part.name)
        self._move_source_logs(part, directory, position.directory.rpartition("/")[0], manifest)
        if manifest.kind is not CheckpointKind.SAVEPOINT:
            return
        # its own sinks have nothing yet
        files.delete(f"{directory}/{WRITTEN_FILE}")
        # a job that is no continuation of the other: files of the same batches must not be called the same
        files.write(f"{directory}/{SINK_IDENTITY_FILE}", str(uuid.uuid4()).encode())
        batches = {log: numbered(_below(part.paths, log)) for log in (OFFSETS, COMMITS)}
        if batches[OFFSETS][-1:] == batches[COMMITS][-1:] and "metadata" in part.paths:
            # sinks that remember (query id, batch) would skip what the other job wrote since.  A batch that
            # was planned may have reached them already: it keeps the id
            identity = json.loads(files.read(f"{directory}/metadata"))
            files.write(
                f"{directory}/metadata", json.dumps({**identity, "id": str(uuid.uuid4())}).encode()
            )

    def _move_source_logs(
        self, part: Part, directory: str, old_job_dir: str, manifest: SavepointMetadata
    ) -> None:
        """Logs of file sources that read files of the old job's own: collections and sentinels."""
        owned = any(path.startswith(f"{END_OF_INPUT}/") for path in part.paths) or any(
            source.kind == "collection" for query in manifest.program.queries for source in query.sources
        )
        if not owned:
            return
        files = self._files
        new = spark_path(files, self._job_dir)
        for path in part.paths:
            if not path.startswith("sources/"):
                continue
            content = files.read(f"{directory}/{path}")
            changed = content
            old = spark_path(files, old_job_dir)
            for written in {old, old.replace("file:///", "file:/", 1)}:
                changed = changed.replace(f'"{written}/'.encode(), f'"{new}/'.encode())
            if changed != content:
                files.write(f"{directory}/{path}", changed)


def _names(manifest: SavepointMetadata) -> dict[str, str]:
    """Operator id → what it is called."""
    operators = (operator for query in manifest.program.queries for operator in query.operators)
    return {operator.operator_hash: operator.uid or operator.name for operator in operators}


def _below(paths: tuple[str, ...], directory: str) -> list[str]:
    return [path.partition("/")[2] for path in paths if path.startswith(f"{directory}/")]
