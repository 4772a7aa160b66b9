"""Whether a program can go on from a state.

Decides before anything is copied.  Flink counterpart: ``Checkpoints.loadAndValidateCheckpoint``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yarnflow.core.checkpoint.manifest import SavepointMetadata
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.errors import StateIncompatible
from yarnflow.graph.state.comparison import differences
from yarnflow.graph.state.sinks import SinkEntry
from yarnflow.spark.checkpoints.positions import committed_batch, planned_batch
from yarnflow.spark.checkpoints.restoring.parts import directory_name
from yarnflow.spark.checkpoints.sinks import sinks_left_behind
from yarnflow.spark.hadoop_files import HadoopFiles


def check_fits(
    root: str, manifest: SavepointMetadata, shape: ProgramShape, allow_non_restored: bool
) -> None:
    """Whether the operators of a program are those that the state is of.  Raises StateIncompatible."""
    found = differences(manifest.program, shape, allow_non_restored=allow_non_restored)
    if found:
        raise StateIncompatible(f"the program does not fit the state in {root}: {'; '.join(found)}")


def new_partitions(manifest: SavepointMetadata, shape: ProgramShape | None) -> int:
    """Into how many partitions state is to be divided anew; 0 = it stays as it is."""
    before = manifest.program.partitions
    now = 0 if shape is None else shape.partitions
    return now if 0 < before != now > 0 else 0


def check_no_batch_begun(files: HadoopFiles, root: str, manifest: SavepointMetadata) -> None:
    """A batch that sinks may have seen must be done again as it was, with the state as it was."""
    if manifest.kind is CheckpointKind.SAVEPOINT:
        return  # its batches are begun only after it
    job = root.rpartition("/")[0]
    for position in manifest.positions:
        directory = f"{job}/{directory_name(position, manifest)}"
        if planned_batch(files, directory) > committed_batch(files, directory):
            raise StateIncompatible(
                f"query {position.query} has begun a batch after its last checkpoint in {job}, "
                "which must be completed with the parallelism and the operators it was begun with: start "
                "the job with those, stop it with a savepoint, and start from the savepoint with others"
            )


def check_sinks(
    files: HadoopFiles,
    root: str,
    manifest: SavepointMetadata,
    sinks: Mapping[str, Sequence[SinkEntry]],
    changed: bool,
) -> None:
    """What sinks have begun is completed by them, or not at all."""
    if manifest.kind is CheckpointKind.SAVEPOINT:
        return  # its batches are begun only after it, and sinks give them names of their own
    job = root.rpartition("/")[0]
    found = [
        said
        for position in manifest.positions
        if position.query in sinks
        for said in sinks_left_behind(
            files, f"{job}/{directory_name(position, manifest)}",
            sinks[position.query], changed,
        )
    ]
    if found:
        raise StateIncompatible(f"the program does not fit the state in {root}: {'; '.join(found)}")
