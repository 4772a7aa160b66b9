"""A job's directory filled from a savepoint or a retained checkpoint, before its queries start.

Decides whether the program fits the state, which files are brought, and that they are whole:
lengths and checksums of a savepoint, and of a retained checkpoint that no file of its last
committed batch is missing.  State that others than this cluster or its user could have written holds plain
values only, unless the user vouches for it: workers unpickle it.  Every query is copied to a directory
beside its place, which is then renamed (:mod:`yarnflow.spark.checkpoints.placing`); a driver that died
meanwhile is made good by the next one.  Claimed
state is copied as well and its source removed afterwards, so that it can be checked on the way.  Flink
counterparts:
``Checkpoints.loadAndValidateCheckpoint``, ``RecoveryClaimMode``.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession

from yarnflow.core.checkpoint.manifest import (
    METADATA_FILE,
    SavepointFile,
    SavepointMetadata,
    checkpoint_id_of,
    from_bytes,
)
from yarnflow.core.checkpoint.messages import (
    CheckpointKind,
    ClaimMode,
    QueryPosition,
    RestoredState,
    RestoreSettings,
)
from yarnflow.core.checkpoint.ownership import writable_by_others
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.checkpoint.query_files import COMMITS, OFFSETS, query_directory
from yarnflow.core.checkpoint.signature import is_signed
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import (
    SavepointInvalid,
    SavepointNotFound,
    StateDrained,
    StateIncompatible,
    StateNotTrusted,
)
from yarnflow.graph.state.comparison import differences
from yarnflow.operators.task.state_layout import LAYOUT_FILE, StateLayout, is_changed
from yarnflow.spark.checkpoints.file_copy import SourceFileGone, copy_files
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.checkpoints.moving import move, read_layout
from yarnflow.spark.checkpoints.placing import put_in_place, remove_left_work, work_directory
from yarnflow.spark.checkpoints.positions import (
    DRAINED_MS,
    committed_batch,
    is_drained,
    planned_batch,
    spark_path,
)
from yarnflow.spark.checkpoints.rescaling import rescale
from yarnflow.spark.checkpoints.savepoint_writer import QueryState, state_paths
from yarnflow.spark.connectors.sources import SOURCES_DIRECTORY
from yarnflow.spark.file_owners import FileOwners
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.query_run import END_OF_INPUT, SINK_IDENTITY_FILE
from yarnflow.spark.state.files import StateFilesMissing, names_schemas, numbered, with_schemas_below
from yarnflow.spark.state.frames import classes_in_state

logger = logging.getLogger(__name__)

#: in a job's directory: what it was started from; there when all of it is in place
RESTORED_FILE: Final = "restored.json"
#: classes a message names
_NAMED: Final = 3


def restore(
    spark: SparkSession,
    settings: RestoreSettings,
    job_dir: str,
    shape: ProgramShape | None,
    key: bytes = b"",
    *,
    trusted: bool = False,
    allow_non_restored: bool = False,
    layouts: Mapping[str, StateLayout] | None = None,
    fence: Fence = no_fence,
) -> RestoredState | None:
    """Bring a job's state into its directory, unless an earlier driver of the job did so.

    Parameters
    ----------
    spark : SparkSession
    settings : RestoreSettings
        With the path looked up already if it was to be the latest.
    job_dir : str
        The job's checkpoint directory (a URI).
    shape : ProgramShape or None
        Of the program that is to go on; None = not known, nothing is checked.
    key : bytes
        With which savepoints of the cluster are signed.
    trusted : bool
        The user vouches for the state: it need not be signed.
    allow_non_restored : bool
        State of operators that the program has no more may be left behind.
    layouts : mapping, optional
        Query → where the program has the state of its operators on elements.
    fence : callable
        Raises when this driver may not write, or not go on; asked while it waits.

    Returns
    -------
    RestoredState or None
        None = the job starts empty.

    Raises
    ------
    SavepointNotFound
    SavepointInvalid
        A file is missing or damaged; the message names it.
    StateIncompatible
        The program does not fit; nothing was touched.
    StateDrained
        All windows have fired; nothing was touched.
    StateNotTrusted
        It holds objects, and others may have written them.
    """
    if not settings.path:
        return None
    restoring = _Restore(spark, settings, job_dir.rstrip("/"), key, trusted, layouts or {}, fence)
    return restoring.run(shape, allow_non_restored)


def read_manifest(files: HadoopFiles, path: str) -> tuple[str, SavepointMetadata]:
    """The directory and the manifest of a savepoint or checkpoint, named by either.

    Raises
    ------
    SavepointNotFound
    SavepointInvalid
    """
    root, content = _read_manifest(files, path)
    return root, from_bytes(content, f"{root}/{METADATA_FILE}")


def _read_manifest(files: HadoopFiles, path: str) -> tuple[str, bytes]:
    root = path.rstrip("/").removesuffix(f"/{METADATA_FILE}")
    where = f"{root}/{METADATA_FILE}"
    if not files.exists(where):
        raise SavepointNotFound(
            f"there is no savepoint or checkpoint in {root}: it has no {METADATA_FILE}; check the path"
        )
    return root, files.read(where)


@dataclass(frozen=True, slots=True)
class _Part:
    """One directory to be brought."""

    source: str
    #: below the job's directory
    name: str
    #: relative to it
    paths: tuple[str, ...]
    #: of a savepoint: path → what the manifest says of it
    expected: Mapping[str, SavepointFile]


class _Restore:
    def __init__(
        self,
        spark: SparkSession,
        settings: RestoreSettings,
        job_dir: str,
        key: bytes,
        trusted: bool,
        layouts: Mapping[str, StateLayout],
        fence: Fence,
    ) -> None:
        self._spark = spark
        self._files = HadoopFiles(spark)
        self._settings = settings
        self._job_dir = job_dir
        self._key = key
        self._trusted = trusted
        self._layouts = layouts
        self._fence = fence

    def run(self, shape: ProgramShape | None, allow_non_restored: bool) -> RestoredState:
        files = self._files
        marker = f"{self._job_dir}/{RESTORED_FILE}"
        if files.exists(marker):
            state = from_json(RestoredState, files.read(marker).decode())
            self._give_up_source(state)
            return state
        root, content = _read_manifest(files, self._settings.path)
        manifest = from_bytes(content, f"{root}/{METADATA_FILE}")
        if shape is not None:
            _check_fits(root, manifest, shape, allow_non_restored)
        _check_open(root, manifest)
        # all is looked at before anything is copied
        partitions = _new_partitions(manifest, shape)
        parts = self._parts(root, manifest)
        if allow_non_restored and shape is not None and shape.kind == ProgramKind.GRAPH.value:
            parts = _without_queries_that_are_gone(parts, manifest, shape)
        for part in parts:
            self._check_layout(part, manifest, shape)
        if partitions or any(self._changed_layout(part, manifest) for part in parts):
            self._check_no_batch_begun(root, manifest)
        doubt = self._doubt(root, manifest, content, parts)
        for part in parts:
            if doubt:
                part = _without_elements(part)
            if not files.exists(f"{self._job_dir}/{part.name}"):
                self._bring(root, part, manifest, partitions, doubt)
        state = RestoredState(
            root,
            manifest.kind,
            manifest.checkpoint_id,
            int(time.time() * 1000),
            self._settings.claim_mode.value,
        )
        self._fence()
        files.write(marker, to_json(state).encode())
        self._give_up_source(state)
        logger.info("Restored %s from %s.", self._job_dir, root)
        return state

    # --- who wrote it ----------------------------------------------------------------

    def _doubt(self, root: str, manifest: SavepointMetadata, content: bytes, parts: list[_Part]) -> str:
        """Why workers may not unpickle what is in it: a clause; empty = they may."""
        if self._trusted or manifest.program.kind != ProgramKind.GRAPH.value:
            return ""
        if manifest.kind is CheckpointKind.SAVEPOINT:
            whole = all(file.checksum for file in manifest.files)
            if whole and is_signed(content, self._key):
                return ""
        # where this cluster's jobs keep their state, which they unpickle after every restart
        elif self._files.qualified(_parent(_parent(root))) == self._files.qualified(_parent(self._job_dir)):
            return ""
        trees: dict[str, tuple[str, ...]] = {self._files.qualified(root): (METADATA_FILE,)}
        trees |= {self._files.qualified(part.source): part.paths for part in parts}
        return writable_by_others(FileOwners(self._files), trees)

    def _check_plain(self, root: str, directory: str, doubt: str) -> None:
        """Of a copy, which nobody else can change, before it is in its place."""
        found = classes_in_state(self._spark, directory)
        if found:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            raise StateNotTrusted(
                f"the state in {root} holds objects of {', '.join(found[:_NAMED])}{more}, and others may "
                f"have written it to run anything: this cluster has not signed it, and {doubt}; start "
                "with --trust-state if you know who did"
            )

    # --- what there is --------------------------------------------------------------

    def _parts(self, root: str, manifest: SavepointMetadata) -> list[_Part]:
        if manifest.kind is CheckpointKind.SAVEPOINT:
            return self._savepoint_parts(root, manifest)
        return self._checkpoint_parts(root, manifest)

    def _savepoint_parts(self, root: str, manifest: SavepointMetadata) -> list[_Part]:
        names = {query_directory(p.query): _directory_name(p) for p in manifest.positions}
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
            _Part(f"{root}/{part}", names[part], tuple(expected), expected)
            for part, expected in by_part.items()
        ]

    def _checkpoint_parts(self, root: str, manifest: SavepointMetadata) -> list[_Part]:
        """The queries' directories lie beside the checkpoint's and have gone on since."""
        job = root.rpartition("/")[0]
        parts = []
        collections = tuple(self._files.tree(f"{job}/{SOURCES_DIRECTORY}"))
        if collections:
            parts.append(_Part(f"{job}/{SOURCES_DIRECTORY}", SOURCES_DIRECTORY, collections, {}))
        for position in manifest.positions:
            directory = f"{job}/{_directory_name(position)}"
            if manifest.program.kind == "SCRIPT" and self._is_elsewhere(position, job, directory):
                logger.info(
                    "Query %s goes on in %s, as its program says.", position.query, position.directory
                )
                continue
            if is_drained(self._files, directory):
                raise _drained(root)
            committed = committed_batch(self._files, directory)
            if committed < position.batch_id:
                raise SavepointInvalid(
                    f"{directory}/{COMMITS}/{position.batch_id} is missing: the checkpoint {root} "
                    "is not whole; start from another one"
                )
            here = QueryPosition(position.query, committed, directory)
            try:
                paths = state_paths(self._files, QueryState(here, planned=True))
            except StateFilesMissing as error:
                raise SavepointInvalid(
                    f"{directory}/{error} is missing: the checkpoint {root} "
                    "is not whole; start from another one"
                ) from error
            parts.append(_Part(directory, _directory_name(position), paths, {}))
        return parts

    def _check_no_batch_begun(self, root: str, manifest: SavepointMetadata) -> None:
        """A batch that sinks may have seen must be done again as it was, with the state as it was."""
        if manifest.kind is CheckpointKind.SAVEPOINT:
            return  # its batches are begun only after it
        for position in manifest.positions:
            directory = f"{_parent(root)}/{_directory_name(position)}"
            if planned_batch(self._files, directory) > committed_batch(self._files, directory):
                raise StateIncompatible(
                    f"query {position.query} has begun a batch after its last checkpoint in {_parent(root)}, "
                    "which must be completed with the parallelism and the operators it was begun with: start "
                    "the job with those, stop it with a savepoint, and start from the savepoint with others"
                )

    def _is_elsewhere(self, position: QueryPosition, job: str, directory: str) -> bool:
        """Whether a script keeps the query's state at a place of its own, where it looks for it again."""
        files = self._files
        below = f"{files.qualified(position.directory)}/".startswith(f"{files.qualified(job)}/")
        return not below and not files.exists(directory) and files.exists(position.directory)

    # --- bringing it ----------------------------------------------------------------

    def _check_layout(self, part: _Part, manifest: SavepointMetadata, shape: ProgramShape | None) -> None:
        """State of operators on elements that may lie anywhere is for the program alone that wrote it."""
        before, after = self._layouts_of(part.source, part, manifest)
        if before is not None or after is None or not any(path.startswith("state/") for path in part.paths):
            return
        if shape is None or shape.graph_hash != manifest.program.graph_hash:
            raise StateIncompatible(
                f"{part.source} has state of operators on elements, and no {LAYOUT_FILE} that says where: it "
                "was written by an earlier development version, and only the very same program can go on "
                "from it; submit that, or start without state (--restore none)"
            )

    def _changed_layout(self, part: _Part, manifest: SavepointMetadata) -> bool:
        """Whether state lies elsewhere than where the program looks for it."""
        before, after = self._layouts_of(part.source, part, manifest)
        return before is not None and after is not None and is_changed(before, after)

    def _layouts_of(
        self, directory: str, part: _Part, manifest: SavepointMetadata
    ) -> tuple[StateLayout | None, StateLayout | None]:
        """As it is in a directory, and as the program has it; None = there are no operators on elements."""
        names = {_directory_name(position): position.query for position in manifest.positions}
        return read_layout(self._files, directory), self._layouts.get(names.get(part.name, ""))

    def _bring(
        self, root: str, part: _Part, manifest: SavepointMetadata, partitions: int, doubt: str
    ) -> None:
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
        if part.name != SOURCES_DIRECTORY:
            self._adapt(part, beside, manifest)
            self._place_schemas(beside, beside)
            if doubt:
                self._check_plain(root, beside, doubt)
            before, after = self._layouts_of(beside, part, manifest)
            if before is not None and after is not None and is_changed(before, after):
                move(self._spark, beside, before, after, partitions, _names(manifest), self._fence)
            if partitions:
                rescale(self._spark, beside, partitions)
            self._place_schemas(beside, target)
        put_in_place(files, beside, target, self._fence)

    def _place_schemas(self, directory: str, place: str) -> None:
        """Have the state in a directory look for its schemas in the place where it will be."""
        files = self._files
        for path in filter(names_schemas, files.tree(directory)):
            file = f"{directory}/{path}"
            files.write(file, with_schemas_below(files.read(file), place))

    def _adapt(self, part: _Part, directory: str, manifest: SavepointMetadata) -> None:
        """What names the place it was at, or must be another job's, is changed in the copy."""
        files = self._files
        position = next(p for p in manifest.positions if _directory_name(p) == part.name)
        self._move_source_logs(part, directory, position.directory.rpartition("/")[0], manifest)
        if manifest.kind is not CheckpointKind.SAVEPOINT:
            return
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
        self, part: _Part, directory: str, old_job_dir: str, manifest: SavepointMetadata
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

    def _give_up_source(self, state: RestoredState) -> None:
        """Remove claimed state, once it is in the job's directory."""
        if state.claim_mode != ClaimMode.CLAIM.value:
            return
        self._fence()
        if state.kind is CheckpointKind.SAVEPOINT:
            # first what makes it one
            self._files.delete(f"{state.path}/{METADATA_FILE}")
            self._files.delete(state.path)
            return
        job = state.path.rpartition("/")[0]
        if job == self._job_dir:
            return
        # what is a checkpoint's of it: whatever else lies there is not ours
        for entry in self._files.entries(job):
            ours = entry.name in (SOURCES_DIRECTORY, RESTORED_FILE)
            ours = ours or checkpoint_id_of(entry.name) is not None
            if ours or self._files.exists(f"{self._job_dir}/{entry.name}"):
                self._files.delete(f"{job}/{entry.name}")
        if not self._files.entries(job):
            self._files.delete(job)


def _new_partitions(manifest: SavepointMetadata, shape: ProgramShape | None) -> int:
    """Into how many partitions state is to be divided anew; 0 = it stays as it is."""
    before = manifest.program.partitions
    now = 0 if shape is None else shape.partitions
    return now if 0 < before != now > 0 else 0


def _without_queries_that_are_gone(
    parts: list[_Part], manifest: SavepointMetadata, shape: ProgramShape
) -> list[_Part]:
    """What the program can go on from; it may leave the rest behind."""
    there = {query.name for query in shape.queries}
    gone = {_directory_name(position) for position in manifest.positions if position.query not in there}
    return [part for part in parts if part.name not in gone]


def _without_elements(part: _Part) -> _Part:
    """Without pickled elements, which the program brings itself."""
    if part.name == SOURCES_DIRECTORY:
        return replace(part, paths=(), expected={})
    kept = tuple(path for path in part.paths if not path.startswith(f"{END_OF_INPUT}/"))
    return replace(part, paths=kept, expected={path: part.expected[path] for path in kept if part.expected})


def _names(manifest: SavepointMetadata) -> dict[str, str]:
    """Operator id → what it is called."""
    operators = (operator for query in manifest.program.queries for operator in query.operators)
    return {operator.operator_hash: operator.uid or operator.name for operator in operators}


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _check_fits(
    root: str, manifest: SavepointMetadata, shape: ProgramShape, allow_non_restored: bool
) -> None:
    found = differences(manifest.program, shape, allow_non_restored=allow_non_restored)
    if found:
        raise StateIncompatible(f"the program does not fit the state in {root}: {'; '.join(found)}")


def _check_open(root: str, manifest: SavepointMetadata) -> None:
    if any(position.watermark_ms == DRAINED_MS for position in manifest.positions):
        raise _drained(root)


def _drained(root: str) -> StateDrained:
    return StateDrained(
        f"the state in {root} was drained: all its windows have fired, and whatever a job read from there on "
        "would be too late; --drain is for jobs that end for good, so start from a savepoint without it, or "
        "empty with --restore none"
    )


def _directory_name(position: QueryPosition) -> str:
    """Of the query's directory, below any job's: scripts call it as they call the query."""
    name = position.directory.rstrip("/").rpartition("/")[2]
    return query_directory(position.query) if name in ("", ".", "..") else name


def _below(paths: tuple[str, ...], directory: str) -> list[str]:
    return [path.partition("/")[2] for path in paths if path.startswith(f"{directory}/")]
