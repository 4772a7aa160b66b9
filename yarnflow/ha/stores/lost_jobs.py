"""Jobs that were lost before their first checkpoint, by what lies in their directories.

A job whose program has started may have written output.  Its queries' directories are its state, as those
of a job with checkpoints are; what a checkpoint adds is the manifest, of which all but the queries stands in
the job's marker (:mod:`yarnflow.ha.stores.state_owner`).  So such a job is given the checkpoint that it did
not come to, and others go on from that.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from yarnflow.core.checkpoint.manifest import (
    FREE,
    HELD,
    RESTORED_FILE,
    SavepointMetadata,
    checkpoint_id_of,
    from_bytes,
    manifest_in,
    to_bytes,
)
from yarnflow.core.checkpoint.messages import QueryPosition, RestoredState
from yarnflow.core.checkpoint.query_files import COMMITS, DONE_FILE, OFFSETS, query_directory
from yarnflow.core.files import FileSystems
from yarnflow.core.ha.ports import LostJob
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import ConfigError, FileMissing, RpcProtocolError, SavepointInvalid
from yarnflow.ha.stores.checkpoint_files import CheckpointFiles, is_end
from yarnflow.ha.stores.left_states import LeftStates

logger = logging.getLogger(__name__)

#: how far a query without micro-batches is once its one batch is written; one can only start again
_WRITTEN: Final = (0, -2)


class LostJobs:
    """Those below one ``execution.checkpointing.dir``.

    Parameters
    ----------
    fs_of : callable
        Opens the file system of a URI.
    root : str
        That directory (a URI).
    """

    def __init__(self, fs_of: FileSystems, root: str) -> None:
        self._fs_of = fs_of
        self._root = root.rstrip("/")
        self._left = LeftStates(fs_of, root)

    def is_begun(self, job_id: JobId) -> bool:
        """Whether a driver of a job has written, or was about to."""
        fs, path = self._fs_of(f"{self._root}/{job_id}")
        return any(entry.name == HELD or is_end(entry.name) for entry in fs.list(path))

    def find(self, job_id: JobId) -> LostJob | None:
        """What a job without checkpoints left that has not ended, or has FAILED; None = nothing."""
        directory = f"{self._root}/{job_id}"
        fs, path = self._fs_of(directory)
        entries = fs.list(path)
        names = {entry.name for entry in entries}
        manifest, has_started, has_failed = self._marker(directory, names)
        if any(is_end(name) for name in names) and not has_failed:
            return None
        if not has_started and RESTORED_FILE not in names:
            return None  # what it was to start from is where it was
        directories = [entry.name for entry in entries if entry.is_directory]
        found = {name: self._reached(directory, name, not has_failed) for name in directories}
        reached = {name: batches for name, batches in found.items() if max(batches) >= 0}
        batches = tuple((name.removeprefix(query_directory("")), max(reached[name])) for name in reached)
        lost = LostJob(job_id, directory, batches)
        if RESTORED_FILE in names:
            source = self._source(directory, reached, not has_failed)
            if source:
                return replace(lost, path=source)
        elif not batches:
            return None
        if manifest is None or manifest.program.kind != ProgramKind.GRAPH.value:
            return lost  # queries of scripts may be anywhere
        if _WRITTEN in reached.values():
            return lost
        positions = tuple(
            QueryPosition(query, -1, f"{directory}/{query_directory(query)}") for query, _ in batches
        )
        content = to_bytes(replace(manifest, positions=positions))
        files = CheckpointFiles(self._fs_of, directory)
        return replace(lost, path=files.write_if_absent(manifest.checkpoint_id, content))

    def _marker(
        self, directory: str, names: Collection[str]
    ) -> tuple[SavepointMetadata | None, bool, bool]:
        """The manifest in the marker, if it can be understood; whether the program started; and FAILED."""
        name = next((name for name in (HELD, FREE) if name in names), "")
        if not name:
            return None, True, False  # of an earlier version, or a user has taken it away
        fs, path = self._fs_of(directory)
        try:
            content = fs.read(f"{path}/{name}")
        except FileMissing:
            return None, True, False  # it is just ending
        has_failed = name == FREE and content.partition(b"\n")[0] == JobStatus.FAILED.value.encode()
        manifest = manifest_in(content)
        try:
            if not manifest:
                return None, False, has_failed
            return from_bytes(manifest, f"{directory}/{name}"), True, has_failed
        except SavepointInvalid as error:
            logger.error("%s", error)
            return None, True, has_failed

    def _source(self, directory: str, reached: dict[str, tuple[int, int]], also_begun: bool) -> str:
        """The state (a path) that a job was started from, if it is there and the job is no further."""
        fs, path = self._fs_of(directory)
        try:
            state = from_json(RestoredState, fs.read(f"{path}/{RESTORED_FILE}").decode())
            source = state.path.rstrip("/")
            if not source or not self._left.has(source):
                return ""
        except (FileMissing, RpcProtocolError, UnicodeDecodeError) as error:
            logger.error("%s/%s cannot be understood: %s", directory, RESTORED_FILE, error)
            return ""
        except ConfigError:
            return ""  # on a file system that only Spark reads
        parent, _, name = source.rpartition("/")
        queries = source if checkpoint_id_of(name) is None else parent
        same = all(found == self._reached(queries, name, also_begun) for name, found in reached.items())
        return source if same else ""

    def _reached(self, directory: str, name: str, also_begun: bool) -> tuple[int, int]:
        """The last batch that a query has begun, and the last one that it has committed; -1 = none.

        A batch that made its job fail says nothing of the state: the next job may do it otherwise.
        """
        fs, path = self._fs_of(f"{directory}/{name}")
        names = {entry.name for entry in fs.list(path)}
        if DONE_FILE in names:
            return _WRITTEN

        def last(log: str) -> int:
            numbers = (entry.name for entry in fs.list(f"{path}/{log}")) if log in names else ()
            return max((int(number) for number in numbers if number.isdigit()), default=-1)

        return last(OFFSETS) if also_begun else -1, last(COMMITS)
