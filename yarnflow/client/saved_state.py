"""Savepoints and retained checkpoints as files: naming, reading and disposing of them.

Works on any file system of :mod:`yarnflow.fs` without a JVM or a cluster.  Decides what belongs to a
savepoint, and so what may be deleted with it; whether state can be started from is decided by
:mod:`yarnflow.graph.state`.  Flink counterparts: ``Checkpoints.loadAndValidateCheckpoint``,
``Checkpoints.disposeSavepoint``.
"""

from __future__ import annotations

import os
import posixpath
from typing import Final

from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.checkpoint.manifest import METADATA_FILE, checkpoint_id_of
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.checkpoint.query_files import query_directory
from yarnflow.core.files import FileSystems, HeldDirectory
from yarnflow.core.ids import JobId
from yarnflow.core.states import GLOBALLY_TERMINAL
from yarnflow.errors import CheckpointError, SavepointInvalid, StateIncompatible
from yarnflow.fs.saved_state import (
    SavedState,
    checked_file,
    delete_savepoint,
    read_state,
    state_uri,
)
from yarnflow.graph.state.comparison import differences

#: beside the checkpoints of a job, made by its drivers
_OF_A_JOB: Final = ("sources", "sinks", "restored.json", "saved-queries.json")
#: begins the names of markers there
_OWNER: Final = "owner."
_OVER: Final = frozenset(status.value for status in GLOBALLY_TERMINAL)


def typed_state_uri(text: str, *, on_hadoop: bool) -> str:
    """:func:`state_uri` with this process's environment and file systems."""

    def home() -> str:
        # only relative paths on Hadoop need the library
        from yarnflow.fs.file_systems import file_systems

        return file_systems()(HadoopConf.load(os.environ).default_fs)[0].home()

    return state_uri(text, os.environ, on_hadoop=on_hadoop, home=home)


def check_fits(state: SavedState, program: ProgramShape, *, allow_non_restored: bool = False) -> None:
    """Raises StateIncompatible, with every difference, when a program cannot start from a state."""
    found = differences(state.metadata.program, program, allow_non_restored=allow_non_restored)
    if found:
        raise StateIncompatible(f"the program does not fit the state in {state.uri}: {'; '.join(found)}")


def find_savepoint(file_systems: FileSystems, parent: str, job_id: JobId, since_ms: int) -> SavedState | None:
    """The savepoint of a job that was made in a directory since a time; the newest if there are several."""
    fs, path = file_systems(parent)
    found: list[SavedState] = []
    for entry in fs.list(path):
        name = posixpath.basename(entry.path)
        if name.startswith(f"savepoint-{job_id[:6]}-"):
            try:
                found.append(read_state(file_systems, f"{parent.rstrip('/')}/{name}"))
            except CheckpointError:
                pass  # one that was not completed
    own = (s for s in found if s.metadata.job_id == job_id and s.metadata.created_ms >= since_ms)
    return max(own, key=lambda state: state.metadata.created_ms, default=None)


def running_job_of(file_systems: FileSystems, state: SavedState) -> str:
    """What says that the job of a retained checkpoint is still running; empty = nothing does."""
    metadata = state.metadata
    if metadata.kind is CheckpointKind.SAVEPOINT or not metadata.job_key:
        return ""
    from yarnflow.ha.stores.latest_states import FileLatestStates

    record = FileLatestStates(file_systems, _root_of(state)).read(metadata.job_key)
    if record is None or record.job_id != metadata.job_id or record.status in _OVER:
        return ""
    return f"job {record.job_name} ({record.job_id}) was {record.status} when it last recorded a checkpoint"


def dispose(file_systems: FileSystems, state: SavedState) -> list[str]:
    """Delete a savepoint, or a retained checkpoint whose job is over.

    With the last checkpoint of a job its state goes as well.

    Returns
    -------
    list of str
        URIs of what was deleted.

    Raises
    ------
    SavepointInvalid
        Its directory has files of others, or is not called as such directories are; nothing is deleted.
    """
    if state.metadata.kind is CheckpointKind.SAVEPOINT:
        delete_savepoint(file_systems, state.uri, expected=state.metadata)
        return [state.uri]
    job, _, name = state.uri.rpartition("/")
    fs, path = file_systems(job)
    with fs.hold(path) as directory:
        to_delete = _checkpoint_parts(directory, state)
        # what makes it one goes first, so that half of it is never taken for a whole
        directory.delete(f"{name}/{METADATA_FILE}")
        for part in to_delete:
            directory.delete(part)
        _forget_latest(file_systems, state)
        if not directory.names():
            directory.remove(())
    return [f"{job}/{part}" for part in to_delete]


def _forget_latest(file_systems: FileSystems, state: SavedState) -> None:
    """The next job of the key must not look for what is gone."""
    metadata = state.metadata
    if metadata.job_key:
        from yarnflow.ha.stores.latest_states import FileLatestStates

        FileLatestStates(file_systems, _root_of(state)).disposed(metadata.job_key, state.uri)


def _root_of(state: SavedState) -> str:
    """``execution.checkpointing.dir`` of the job of a checkpoint."""
    return posixpath.dirname(posixpath.dirname(state.uri))


def _checkpoint_parts(job: HeldDirectory, state: SavedState) -> list[str]:
    """Return the names of what goes with a checkpoint in the directory of its job."""
    name = posixpath.basename(state.uri)
    if checkpoint_id_of(name) != state.metadata.checkpoint_id:
        raise SavepointInvalid(
            f"{state.uri} is not called chk-{state.metadata.checkpoint_id}, as the checkpoint it claims to "
            "be would be; nothing was deleted"
        )
    foreign = [f for f in job.files(name) if METADATA_FILE not in (f, checked_file(f))]
    if foreign:
        raise SavepointInvalid(
            f"{state.uri} has files that are not the checkpoint's ({foreign[0]}); nothing was deleted"
        )
    entries = job.names()
    if any(entry != name and checkpoint_id_of(entry) is not None for entry in entries):
        return [name]
    queries = {p.directory.rstrip("/").rpartition("/")[2] for p in state.metadata.positions}
    queries |= {query_directory(p.query) for p in state.metadata.positions}
    return [
        entry
        for entry in entries
        if entry == name or entry in queries or entry in _OF_A_JOB or entry.startswith(_OWNER)
    ]
