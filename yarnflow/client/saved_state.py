"""Savepoints and retained checkpoints as files: naming, reading and disposing of them.

Works on any file system of :mod:`yarnflow.fs` without a JVM or a cluster.  Decides what belongs to a
savepoint, and so what may be deleted with it; whether state can be started from is decided by
:mod:`yarnflow.graph.state`.  Flink counterparts: ``Checkpoints.loadAndValidateCheckpoint``,
``Checkpoints.disposeSavepoint``.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.config.hadoop_conf import HadoopConf
from yarnflow.core.checkpoint.manifest import (
    METADATA_FILE,
    SavepointMetadata,
    checkpoint_id_of,
    from_bytes,
)
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.checkpoint.query_files import query_directory
from yarnflow.core.files import FileSystem, FileSystems
from yarnflow.core.ids import JobId
from yarnflow.core.states import GLOBALLY_TERMINAL
from yarnflow.core.uris import split_uri
from yarnflow.errors import (
    CheckpointError,
    FileMissing,
    InvalidOption,
    SavepointInvalid,
    SavepointNotFound,
    StateIncompatible,
)
from yarnflow.graph.state.comparison import differences

#: beside the checkpoints of a job, made by its drivers
_OF_A_JOB: Final = ("sources", "sinks", "restored.json", "saved-queries.json")
#: begins the names of markers there
_OWNER: Final = "owner."
_OVER: Final = frozenset(status.value for status in GLOBALLY_TERMINAL)
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class SavedState:
    """A savepoint or retained checkpoint."""

    #: its directory (a URI)
    uri: str
    metadata: SavepointMetadata

    @property
    def what(self) -> str:
        """``savepoint`` or ``checkpoint``."""
        return self.metadata.kind.value.lower()


def typed_state_uri(text: str, *, on_hadoop: bool) -> str:
    """:func:`state_uri` with this process's environment and file systems."""

    def home() -> str:
        # only relative paths on Hadoop need the library
        from yarnflow.fs.file_systems import file_systems

        return file_systems()(HadoopConf.load(os.environ).default_fs)[0].home()

    return state_uri(text, os.environ, on_hadoop=on_hadoop, home=home)


def state_uri(text: str, environ: Mapping[str, str], *, on_hadoop: bool, home: Callable[[], str]) -> str:
    """A path as typed, as a URI that means the same everywhere.

    Parameters
    ----------
    on_hadoop : bool
        A path without scheme is one of the cluster's default file system, else of this machine.
    home : callable
        Home directory there, for relative paths.

    Raises
    ------
    InvalidOption
        Neither HDFS nor a local path.
    """
    scheme, authority, path = split_uri(text)
    if not text.strip():
        raise InvalidOption("the path of the state is empty; name a directory, or leave the option out")
    if scheme == "file":
        if authority or not path.startswith("/"):
            raise InvalidOption(f"{text} is not an absolute path; write file:///…")
        return _file_uri(path)
    if scheme == "hdfs":
        if not path.startswith("/"):
            raise InvalidOption(f"{text} is not an absolute path; write hdfs://host:port/…")
        root = f"hdfs://{authority}" if authority else HadoopConf.load(environ).default_fs
        return f"{root}{_normal(path)}"
    if scheme and (authority or path.startswith("/")):
        raise InvalidOption(f"{text}: only hdfs://…, file:///… and paths without a scheme can be used")
    root = HadoopConf.load(environ).default_fs if on_hadoop else "file://"
    if root == "file://":
        return _file_uri(str(Path(text).absolute()))
    path = text if text.startswith("/") else f"{home().rstrip('/')}/{text}"
    return f"{root}{_normal(path)}"


def read_state(file_systems: FileSystems, uri: str) -> SavedState:
    """Read the manifest of a savepoint or checkpoint.

    Parameters
    ----------
    uri : str
        Its directory, or the ``_metadata`` in it.

    Raises
    ------
    SavepointNotFound
        There is none.
    SavepointInvalid
        It cannot be understood.
    """
    directory = uri.rstrip("/").removesuffix(f"/{METADATA_FILE}")
    fs, path = file_systems(directory)
    where = f"{directory}/{METADATA_FILE}"
    try:
        content = fs.read(f"{path}/{METADATA_FILE}")
    except FileMissing:
        raise SavepointNotFound(_not_found(fs, path, directory)) from None
    return SavedState(directory, from_bytes(content, where))


def _not_found(fs: FileSystem, path: str, uri: str) -> str:
    if fs.status(path) is None:
        return f"{uri} does not exist; check the path of the savepoint or checkpoint"
    numbers = [n for e in fs.list(path) if (n := checkpoint_id_of(posixpath.basename(e.path))) is not None]
    if numbers:
        return f"{uri} is the directory of a job; name one of its checkpoints: {uri}/chk-{max(numbers)}"
    return f"{uri} has no {METADATA_FILE}, so it is no (complete) savepoint or checkpoint; check the path"


def check_fits(state: SavedState, program: ProgramShape, *, allow_non_restored: bool = False) -> None:
    """Raises StateIncompatible, with every difference, when a program cannot start from a state."""
    found = differences(state.metadata.program, program, allow_non_restored=allow_non_restored)
    if found:
        raise StateIncompatible(f"the program does not fit the state in {state.uri}: {'; '.join(found)}")


def find_savepoint(
    file_systems: FileSystems, parent: str, job_id: JobId, since_ms: int
) -> SavedState | None:
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
        to_delete = _savepoint_parts(file_systems, state)
    else:
        to_delete = _checkpoint_parts(file_systems, state)
    # what makes it one goes first, so that half of it is never taken for a whole
    fs, path = file_systems(state.uri)
    fs.delete(f"{path}/{METADATA_FILE}")
    for uri in to_delete:
        fs, path = file_systems(uri)
        fs.delete(path)
    if state.metadata.kind is CheckpointKind.CHECKPOINT:
        _forget_latest(file_systems, state)
        fs, path = file_systems(posixpath.dirname(state.uri))
        if fs.status(path) is not None and not fs.list(path):
            fs.delete(path)
    return to_delete


def _forget_latest(file_systems: FileSystems, state: SavedState) -> None:
    """The next job of the key must not look for what is gone."""
    metadata = state.metadata
    if metadata.job_key:
        from yarnflow.ha.stores.latest_states import FileLatestStates

        FileLatestStates(file_systems, _root_of(state)).disposed(metadata.job_key, state.uri)


def _root_of(state: SavedState) -> str:
    """``execution.checkpointing.dir`` of the job of a checkpoint."""
    return posixpath.dirname(posixpath.dirname(state.uri))


def _savepoint_parts(file_systems: FileSystems, state: SavedState) -> list[str]:
    fs, path = file_systems(state.uri)
    own = {METADATA_FILE, *(file.path for file in state.metadata.files)}
    foreign = [file for file in _files(fs, path) if file not in own and _checked(file) not in own]
    if foreign:
        shown = ", ".join(sorted(foreign)[:_SHOWN]) + (" …" if len(foreign) > _SHOWN else "")
        raise SavepointInvalid(
            f"{state.uri} has {len(foreign)} files that are not the savepoint's: {shown}; move them "
            "elsewhere first; nothing was deleted"
        )
    return [state.uri]


def _checkpoint_parts(file_systems: FileSystems, state: SavedState) -> list[str]:
    job, _, name = state.uri.rpartition("/")
    if checkpoint_id_of(name) != state.metadata.checkpoint_id:
        raise SavepointInvalid(
            f"{state.uri} is not called chk-{state.metadata.checkpoint_id}, as the checkpoint it claims to "
            "be would be; nothing was deleted"
        )
    fs, path = file_systems(state.uri)
    foreign = [f for f in _files(fs, path) if METADATA_FILE not in (f, _checked(f))]
    if foreign:
        raise SavepointInvalid(
            f"{state.uri} has files that are not the checkpoint's ({foreign[0]}); nothing was deleted"
        )
    fs, path = file_systems(job)
    entries = [posixpath.basename(entry.path) for entry in fs.list(path)]
    if any(entry != name and checkpoint_id_of(entry) is not None for entry in entries):
        return [state.uri]
    queries = {p.directory.rstrip("/").rpartition("/")[2] for p in state.metadata.positions}
    queries |= {query_directory(p.query) for p in state.metadata.positions}
    return [
        f"{job}/{entry}"
        for entry in entries
        if entry == name or entry in queries or entry in _OF_A_JOB or entry.startswith(_OWNER)
    ]


def _files(fs: FileSystem, root: str, below: str = "") -> Iterator[str]:
    """Paths of all files of a directory, relative to it."""
    for entry in fs.list(posixpath.join(root, below)):
        relative = posixpath.join(below, posixpath.basename(entry.path))
        if entry.is_directory:
            yield from _files(fs, root, relative)
        else:
            yield relative


def _checked(file: str) -> str:
    """The file a checksum file of Hadoop's local file system is about."""
    parent, name = posixpath.split(file)
    return posixpath.join(parent, name[1:-4]) if name.startswith(".") and name.endswith(".crc") else ""


def _file_uri(path: str) -> str:
    return f"file://{_normal(path)}"


def _normal(path: str) -> str:
    return "/" + posixpath.normpath(path).strip("/")
