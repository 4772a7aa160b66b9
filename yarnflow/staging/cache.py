"""Content-addressed files on the shared file system: what is there already is not uploaded again.

A file's path is made of the hash of its content, so files in the cache never change, and YARN
localises each one once per node.  A file appears under its name only when it is whole.  Nothing
is ever deleted here: containers of running applications may still be started from it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import posixpath
import secrets
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.config.directories import cache_directory
from yarnflow.core.files import FileStatus, FileSystem
from yarnflow.core.yarn import LocalResource, Visibility
from yarnflow.errors import FileMissing, StorageError
from yarnflow.staging.layout import StagingLayout

logger: Final = logging.getLogger(__name__)
#: hashes remembered; the oldest go first
_MAX_HASHES: Final = 200
#: a file changed this recently may change again without its time of change showing it
_SETTLED_NS: Final = 2_000_000_000
#: others may enter the directory, others may read the file
_OTHERS_ENTER: Final = 0o001
_OTHERS_READ: Final = 0o004


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file of the cache."""

    resource: LocalResource
    #: 0 when it was there already
    uploaded_bytes: int


class ContentCache:
    """The cache of one staging directory; safe to use from several threads.

    Parameters
    ----------
    fs : FileSystem
    layout : StagingLayout
        ``layout.prepare`` was called.
    hashes_file : Path, optional
        Where hashes of local files are remembered; default ``~/.cache/yarnflow/hashes.json``.
    """

    def __init__(self, fs: FileSystem, layout: StagingLayout, hashes_file: Path | None = None) -> None:
        self._fs: Final = fs
        self._layout: Final = layout
        self._hashes: Final = _LocalHashes(hashes_file or cache_directory() / "hashes.json")
        self._lock: Final = threading.Lock()
        self._enterable: bool | None = None

    def put(self, local: Path, name: str, *, archive: bool = False, shared: bool = True) -> CachedFile:
        """Make sure a local file's content is in the cache under ``name``.

        Parameters
        ----------
        local : Path
        name : str
            File name; for archives its suffix tells YARN how to unpack it.
        archive : bool
            YARN unpacks it.
        shared : bool
            Everybody may read it, so that a node has it once for all; else its user only.

        Raises
        ------
        FileMissing
            The local file does not exist.
        StorageError
            It cannot be read, or as :class:`yarnflow.core.files.FileSystem` says.
        """
        try:
            length_bytes = local.stat().st_size
            sha256 = self._hashes.of(local)
        except FileNotFoundError as error:
            raise FileMissing(f"{local} does not exist; check the path") from error
        except OSError as error:
            raise StorageError(f"cannot read {local}: {error.strerror}; check the file") from error

        def upload(path: str) -> None:
            self._fs.upload(str(local), path, permission=_permission(shared))

        return self._put(sha256, length_bytes, name, archive, upload)

    def put_bytes(
        self, content: bytes, name: str, *, archive: bool = False, shared: bool = True
    ) -> CachedFile:
        """The same for content in memory."""
        sha256 = hashlib.sha256(content).hexdigest()

        def upload(path: str) -> None:
            self._fs.write(path, content, permission=_permission(shared))

        return self._put(sha256, len(content), name, archive, upload)

    def _put(
        self, sha256: str, length_bytes: int, name: str, archive: bool, upload: Callable[[str], None]
    ) -> CachedFile:
        path = self._layout.cached_file(sha256, name)
        uploaded_bytes = 0
        status = self._fs.status(path)
        if status is None:
            # not into its place, where replacing the file of another client that is quicker would
            # change its time, on which YARN insists
            temporary = f"{self._layout.uploads}/{secrets.token_hex(16)}"
            try:
                upload(temporary)
                self._fs.make_directory(posixpath.dirname(path), permission=0o755)
                if self._fs.rename(temporary, path):
                    uploaded_bytes = length_bytes
                else:
                    self._fs.delete(temporary)
            except StorageError:
                with suppress(StorageError):
                    self._fs.delete(temporary)
                raise
            status = self._fs.status(path)
        if status is None or status.length_bytes != length_bytes:
            found = "is missing" if status is None else f"has {status.length_bytes} bytes"
            raise StorageError(
                f"{self._fs.uri}{path} {found} instead of {length_bytes} bytes; if no application uses it, "
                f"run: hdfs dfs -rm -r {posixpath.dirname(path)}"
            )
        return CachedFile(self._resource(status, archive), uploaded_bytes)

    def _resource(self, status: FileStatus, archive: bool) -> LocalResource:
        public = bool(status.permission & _OTHERS_READ) and self._all_enterable()
        return LocalResource(
            source=self._fs.uri + status.path,
            archive=archive,
            visibility=Visibility.PUBLIC if public else Visibility.PRIVATE,
            size_bytes=status.length_bytes,
            modified_ms=status.modified_ms,
        )

    def _all_enterable(self) -> bool:
        """Whether everybody may go down to the cache; YARN refuses PUBLIC files elsewhere."""
        with self._lock:
            if self._enterable is None:
                self._enterable = all(
                    status is not None and bool(status.permission & _OTHERS_ENTER)
                    for status in map(self._fs.status, _ancestors(self._layout.cache))
                )
            return self._enterable


def _permission(shared: bool) -> int:
    return 0o644 if shared else 0o600


def _ancestors(path: str) -> list[str]:
    """The path itself and all directories above it."""
    found = [path]
    while found[-1] != "/":
        found.append(posixpath.dirname(found[-1]))
    return found


class _LocalHashes:
    """SHA-256 of local files, remembered by path as long as size, times and inode are the same.

    The file is a help only: when it cannot be read or written, hashes are computed again.
    """

    def __init__(self, file: Path) -> None:
        self._file: Final = file
        self._lock: Final = threading.Lock()

    def of(self, path: Path) -> str:
        """Raises OSError for a file that cannot be read."""
        resolved = path.resolve()
        before = _signature(resolved)
        with self._lock:
            remembered = self._load().get(str(resolved))
        if remembered is not None and remembered[:-1] == before:
            return str(remembered[-1])
        with resolved.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if _signature(resolved) == before and time.time_ns() - int(before[1]) > _SETTLED_NS:
            with self._lock:
                self._remember(str(resolved), [*before, sha256])
        return sha256

    def _load(self) -> dict[str, list[int | str]]:
        try:
            raw = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return {}
        if not isinstance(raw, dict):
            return {}
        return {path: entry for path, entry in raw.items() if isinstance(entry, list) and len(entry) == 5}

    def _remember(self, path: str, entry: list[int | str]) -> None:
        known = self._load()
        known.pop(path, None)
        known[path] = entry
        for oldest in list(known)[: max(0, len(known) - _MAX_HASHES)]:
            del known[oldest]
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix=".hashes", dir=self._file.parent)
            with os.fdopen(descriptor, "w") as file:
                json.dump(known, file)
            os.replace(temporary, self._file)
        except OSError as error:
            logger.debug("hashes are not remembered in %s: %s", self._file, error)


def _signature(path: Path) -> list[int | str]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
