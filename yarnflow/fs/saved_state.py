"""Savepoints as files: naming, reading and deleting them.

Works on any file system, without a JVM or a cluster.  Decides what belongs to a savepoint, and so what may be
deleted with it.  Flink counterparts: ``Checkpoints.loadAndValidateCheckpoint``,
``Checkpoints.disposeSavepoint``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.config.hadoop.paths import with_file_system
from yarnflow.core.checkpoint.manifest import (
    METADATA_FILE,
    SavepointMetadata,
    checkpoint_id_of,
    from_bytes,
)
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.files import FileSystem, FileSystems
from yarnflow.core.uris import split_uri
from yarnflow.errors import FileMissing, InvalidOption, SavepointInvalid, SavepointNotFound

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
        root = f"hdfs://{authority}" if authority else with_file_system("hdfs:///", environ).rstrip("/")
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
    directory = state_directory(uri)
    fs, path = file_systems(directory)
    where = f"{directory}/{METADATA_FILE}"
    try:
        content = fs.read(f"{path}/{METADATA_FILE}")
    except FileMissing:
        raise SavepointNotFound(_not_found(fs, path, directory)) from None
    return SavedState(directory, from_bytes(content, where))


def state_directory(uri: str) -> str:
    """Return the directory of a state that is named by itself or by the ``_metadata`` in it."""
    return uri.rstrip("/").removesuffix(f"/{METADATA_FILE}")


def _not_found(fs: FileSystem, path: str, uri: str) -> str:
    if fs.status(path) is None:
        return f"{uri} does not exist; check the path of the savepoint or checkpoint"
    numbers = [n for e in fs.list(path) if (n := checkpoint_id_of(posixpath.basename(e.path))) is not None]
    if numbers:
        return f"{uri} is the directory of a job; name one of its checkpoints: {uri}/chk-{max(numbers)}"
    return f"{uri} has no {METADATA_FILE}, so it is no (complete) savepoint or checkpoint; check the path"


def delete_savepoint(file_systems: FileSystems, uri: str, expected: SavepointMetadata | None = None) -> None:
    """Delete a savepoint: what is checked is what is deleted, whatever others do to its path meanwhile.

    Parameters
    ----------
    uri : str
        Its directory, or the ``_metadata`` in it.
    expected : SavepointMetadata, optional
        What it was when somebody decided to delete it.

    Raises
    ------
    SavepointNotFound
        There is none.
    SavepointInvalid
        It is a checkpoint, which is its job's, its directory has files of others, or it is not as expected;
        nothing is deleted.
    StorageDenied
        Another user of this machine could have its path lead elsewhere.
    """
    place = state_directory(uri)
    fs, path = file_systems(place)
    try:
        with fs.hold(path) as directory:
            metadata = from_bytes(directory.read(METADATA_FILE), f"{place}/{METADATA_FILE}")
            if metadata.kind is not CheckpointKind.SAVEPOINT:
                raise SavepointInvalid(
                    f"{place} is a checkpoint of job {metadata.job_id}, not a savepoint; delete it with "
                    "`yarnflow savepoint dispose`, which asks whether the job is over"
                )
            if expected is not None and metadata != expected:
                raise SavepointInvalid(f"{place} has changed since it was looked at; nothing was deleted")
            files = directory.files()
            _check_only_savepoint(place, metadata, files)
            # what makes it one goes first, so that half of it is never taken for a whole
            directory.delete(METADATA_FILE)
            directory.remove(files)
    except FileMissing:
        raise SavepointNotFound(_not_found(fs, path, place)) from None


def _check_only_savepoint(uri: str, metadata: SavepointMetadata, files: Collection[str]) -> None:
    own = {METADATA_FILE, *(file.path for file in metadata.files)}
    foreign = [file for file in files if file not in own and checked_file(file) not in own]
    if foreign:
        shown = ", ".join(sorted(foreign)[:_SHOWN]) + (" …" if len(foreign) > _SHOWN else "")
        raise SavepointInvalid(
            f"{uri} has {len(foreign)} files that are not the savepoint's: {shown}; move them "
            "elsewhere first; nothing was deleted"
        )


def checked_file(file: str) -> str:
    """The file a checksum file of Hadoop's local file system is about."""
    parent, name = posixpath.split(file)
    return posixpath.join(parent, name[1:-4]) if name.startswith(".") and name.endswith(".crc") else ""


def _file_uri(path: str) -> str:
    return f"file://{_normal(path)}"


def _normal(path: str) -> str:
    return "/" + posixpath.normpath(path).strip("/")
