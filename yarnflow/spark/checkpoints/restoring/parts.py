"""Which directories of a savepoint or a retained checkpoint are brought, and that they are whole.

A savepoint has what its manifest lists.  A retained checkpoint stands for the directories of its job's
queries as they are now: no file of the last committed batch may be missing, and what is damaged is brought
along where the query can be brought back to an earlier batch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.checkpoint.manifest import SavepointFile, SavepointMetadata
from yarnflow.core.checkpoint.messages import CheckpointKind, QueryPosition
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.checkpoint.query_files import COMMITS, query_directory
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import SavepointInvalid, StateDrained
from yarnflow.spark.checkpoints.damage.soundness import Damage, damage_at_start
from yarnflow.spark.checkpoints.positions import DRAINED_MS, committed_batch, is_drained
from yarnflow.spark.checkpoints.saved_queries import is_elsewhere, kept_elsewhere, may_name_a_directory
from yarnflow.spark.checkpoints.savepoint_writer import QueryState, state_paths
from yarnflow.spark.connectors.sources import SOURCES_DIRECTORY
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.sink_writers import SINKS_DIRECTORY
from yarnflow.spark.state.files import StateFilesMissing

logger = logging.getLogger(__name__)

#: beside the queries' directories
BESIDE: Final = (SOURCES_DIRECTORY, SINKS_DIRECTORY)


@dataclass(frozen=True, slots=True)
class Part:
    """One directory to be brought."""

    source: str
    #: below the job's directory
    name: str
    #: relative to it
    paths: tuple[str, ...]
    #: of a savepoint: path → what the manifest says of it
    expected: Mapping[str, SavepointFile]
    #: what is to be mended before the query starts, in the copy
    damage: Damage | None = None


def with_silent_queries(files: HadoopFiles, root: str, manifest: SavepointMetadata) -> SavepointMetadata:
    """A retained checkpoint with the queries, too, that had committed nothing since its job was started.

    Their driver tells of them once each query has committed, or had nothing to do; a checkpoint of before
    does not name them.  The state that the job was started from stands in its directory all the same, or
    where a script has its queries keep it, and without it they would begin empty.  Of a savepoint the driver
    has looked at all directories.

    Raises
    ------
    StateDamaged
        Where a script's queries keep their state cannot be read.
    StorageError
    """
    if manifest.kind is not CheckpointKind.CHECKPOINT:
        return manifest
    job = root.rpartition("/")[0]
    if manifest.program.kind == ProgramKind.SCRIPT.value:
        there = [entry.name for entry in files.entries(job) if entry.is_directory]
        below = {name: name for name in there if name not in BESIDE and not name.startswith(".")}
        elsewhere = kept_elsewhere(files, job)
    else:
        below = {query.name: query_directory(query.name) for query in manifest.program.queries}
        elsewhere = {}
    places = {**elsewhere, **{query: f"{job}/{name}" for query, name in below.items()}}
    named = {directory_name(position, manifest) for position in manifest.positions}
    silent = [
        QueryPosition(query, committed, directory)
        for query, directory in places.items()
        if below.get(query, query) not in named and (committed := committed_batch(files, directory)) >= 0
    ]
    return replace(manifest, positions=(*manifest.positions, *silent))


def parts_of(files: HadoopFiles, root: str, manifest: SavepointMetadata) -> list[Part]:
    """All that is to be brought from a savepoint or checkpoint.

    Raises
    ------
    SavepointInvalid
        Something is missing, or damaged for good.
    StateDrained
    StorageError
    """
    if manifest.kind is CheckpointKind.SAVEPOINT:
        return _savepoint_parts(root, manifest)
    return _checkpoint_parts(files, root, manifest)


def without_queries_that_are_gone(
    parts: list[Part], manifest: SavepointMetadata, shape: ProgramShape
) -> list[Part]:
    """What the program can go on from; it may leave the rest behind."""
    there = {query.name for query in shape.queries}
    gone = {directory_name(p, manifest) for p in manifest.positions if p.query not in there}
    return [part for part in parts if part.name not in gone]


def directory_name(position: QueryPosition, manifest: SavepointMetadata) -> str:
    """Of the query's directory, below any job's: scripts call it as they call the query.

    The checkpoint of a query of a script may be anywhere else, with any name.
    """
    if manifest.program.kind == ProgramKind.SCRIPT.value and may_name_a_directory(position.query):
        return position.query
    name = position.directory.rstrip("/").rpartition("/")[2]
    return query_directory(position.query) if name in ("", ".", "..") else name


def check_open(root: str, manifest: SavepointMetadata) -> None:
    if any(position.watermark_ms == DRAINED_MS for position in manifest.positions):
        raise drained(root)


def drained(root: str) -> StateDrained:
    return StateDrained(
        f"the state in {root} was drained: all its windows have fired, and whatever a job read from there on "
        "would be too late; --drain is for jobs that end for good, so start from a savepoint without it, or "
        "empty with --restore none"
    )


def _savepoint_parts(root: str, manifest: SavepointMetadata) -> list[Part]:
    names = {query_directory(p.query): directory_name(p, manifest) for p in manifest.positions}
    names[SOURCES_DIRECTORY] = SOURCES_DIRECTORY
    by_part: dict[str, dict[str, SavepointFile]] = {}
    for file in manifest.files:
        part, _, path = file.path.partition("/")
        if part not in names:
            raise SavepointInvalid(
                f"{root}/{file.path} belongs to no query of the savepoint's manifest; "
                "start from another one"
            )
        by_part.setdefault(part, {})[path] = file
    for position in manifest.positions:
        if position.batch_id >= 0 and query_directory(position.query) not in by_part:
            raise SavepointInvalid(
                f"{root} has no files of query {position.query}, which had committed batch "
                f"{position.batch_id}; start from another one"
            )
    return [
        Part(f"{root}/{part}", names[part], tuple(expected), expected)
        for part, expected in by_part.items()
    ]


def _checkpoint_parts(files: HadoopFiles, root: str, manifest: SavepointMetadata) -> list[Part]:
    """The queries' directories lie beside the checkpoint's and have gone on since."""
    job = root.rpartition("/")[0]
    parts = []
    # sinks keep their identity, and so what they know of the batch that was begun: another layout of it,
    # or other messages, would leave some of it out and write some twice
    for name in BESIDE:
        paths = tuple(files.tree(f"{job}/{name}"))
        if paths:
            parts.append(Part(f"{job}/{name}", name, paths, {}))
    for position in manifest.positions:
        directory = f"{job}/{directory_name(position, manifest)}"
        if manifest.program.kind == ProgramKind.SCRIPT.value and is_elsewhere(files, position, job):
            logger.info(
                "Query %s goes on in %s, as its program says.", position.query, position.directory
            )
            continue
        damage = damage_at_start(files, directory)
        if damage is None and is_drained(files, directory):
            raise drained(root)
        committed = committed_batch(files, directory)
        if committed < position.batch_id:
            raise SavepointInvalid(
                f"{directory}/{COMMITS}/{position.batch_id} is missing: the checkpoint {root} "
                "is not whole; start from another one"
            )
        if damage is not None and manifest.program.kind == ProgramKind.SCRIPT.value:
            raise SavepointInvalid(
                f"{directory}/{damage.path} {damage.said}, and a script cannot go on from an earlier "
                "batch; start from a savepoint"
            )
        if damage is not None:
            # all of it: the query goes on from the newest sound batch, as that of the job itself would
            logger.error("%s/%s %s.", directory, damage.path, damage.said)
            paths = tuple(files.tree(directory))
            parts.append(Part(directory, directory_name(position, manifest), paths, {}, damage))
            continue
        here = QueryPosition(position.query, committed, directory)
        try:
            paths = state_paths(files, QueryState(here, planned=True))
        except StateFilesMissing as error:
            raise SavepointInvalid(
                f"{directory}/{error} is missing: the checkpoint {root} "
                "is not whole; start from another one"
            ) from error
        parts.append(Part(directory, directory_name(position, manifest), paths, {}))
    return parts
