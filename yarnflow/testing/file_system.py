"""A shared file system in memory, whose every step a test can see, delay or let fail."""

from __future__ import annotations

import builtins
import posixpath
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from yarnflow.core.files import FileStatus, HeldDirectory
from yarnflow.core.ports import Clock
from yarnflow.errors import FileMissing, StorageError
from yarnflow.fs.by_path import DirectoryByPath


@dataclass(frozen=True, slots=True)
class _Entry:
    #: None for a directory
    content: bytes | None
    permission: int
    modified_ms: int
    #: empty = the user
    owner: str = ""


class MemoryFileSystem:
    """:class:`yarnflow.core.files.FileSystem` as HDFS behaves; every operation is atomic.

    Parameters
    ----------
    clock : Clock, optional
        Times of changes; without it, a counter of changes.
    user : str
        Owner of everything but what :meth:`set_owner` says.
    before : callable, optional
        Called with the operation's name and path before each one, outside of any lock: a test may
        wait there, raise a StorageError, or just note it down.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        user: str = "ann",
        before: Callable[[str, str], None] = lambda operation, path: None,
    ) -> None:
        self.before = before
        self.user: Final = user
        self._clock: Final = clock
        self._changes = 0
        self._lock: Final = threading.RLock()
        self._entries: dict[str, _Entry] = {"/": _Entry(None, 0o755, 0)}
        self._make(self.home(), 0o755)

    @property
    def uri(self) -> str:
        """Scheme and authority."""
        return "hdfs://memory:8020"

    def home(self) -> str:
        """Home directory of the user."""
        return f"/user/{self.user}"

    def read(self, path: str) -> bytes:
        """Whole content."""
        self.before("read", path)
        with self._lock:
            entry = self._entry(path)
            if entry.content is None:
                raise StorageError(f"cannot read {self.uri}{path}: it is a directory; check the path")
            return entry.content

    def write(self, path: str, content: bytes, *, permission: int = 0o600) -> None:
        """Create or replace."""
        self.before("write", path)
        with self._lock:
            self._put(path, content, permission)

    def create(self, path: str, content: bytes, *, permission: int = 0o600) -> bool:
        """Create; False = something is there."""
        self.before("create", path)
        with self._lock:
            if path in self._entries:
                return False
            self._put(path, content, permission)
            return True

    def upload(self, local: str, path: str, *, permission: int = 0o644) -> int:
        """Copy a local file there."""
        self.before("upload", path)
        try:
            content = Path(local).read_bytes()
        except FileNotFoundError as error:
            raise FileMissing(f"{local} does not exist; check the path") from error
        with self._lock:
            self._put(path, content, permission)
        return len(content)

    def status(self, path: str) -> FileStatus | None:
        """The entry, or None."""
        self.before("status", path)
        with self._lock:
            return self._status(path) if path in self._entries else None

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory, sorted by path."""
        self.before("list", path)
        with self._lock:
            return [self._status(name) for name in sorted(self._entries) if _parent(name) == path != name]

    def make_directory(self, path: str, *, permission: int = 0o700) -> None:
        """Create a directory and its missing parents, all with ``permission``."""
        self.before("make_directory", path)
        with self._lock:
            self._make(path, permission)

    def set_permission(self, path: str, permission: int) -> None:
        """Change a mode, as an administrator may."""
        with self._lock:
            self._entries[path] = replace(self._entry(path), permission=permission)

    def set_owner(self, path: str, owner: str) -> None:
        """As if another user had made it."""
        with self._lock:
            self._entries[path] = replace(self._entry(path), owner=owner)

    def rename(self, source: str, target: str) -> bool:
        """Move; False when the target exists."""
        self.before("rename", source)
        with self._lock:
            self._entry(source)
            if target in self._entries:
                return False
            self._directory(target)
            for name in [name for name in self._entries if _within(name, source)]:
                self._entries[target + name.removeprefix(source)] = self._entries.pop(name)
            self._touch(_parent(source))
            self._touch(_parent(target))
            return True

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory; False when there was nothing."""
        self.before("delete", path)
        with self._lock:
            found = [name for name in self._entries if _within(name, path)]
            for name in found:
                del self._entries[name]
            if found:
                self._touch(_parent(path))
            return bool(found)

    @contextmanager
    def hold(self, path: str) -> Iterator[HeldDirectory]:
        """Hold a directory by its path.  Raises FileMissing."""
        yield DirectoryByPath(self, path)

    def paths(self, below: str = "/") -> builtins.list[str]:
        """All files and directories below a directory; not counted as an operation."""
        with self._lock:
            return sorted(name for name in self._entries if _within(name, below) and name != below)

    def _entry(self, path: str) -> _Entry:
        if path not in self._entries:
            raise FileMissing(f"{self.uri}{path} does not exist; check the path")
        return self._entries[path]

    def _directory(self, path: str) -> None:
        """Check that a path can be made: its parent is a directory."""
        if self._entry(_parent(path)).content is not None:
            raise StorageError(f"{self.uri}{_parent(path)} is a file; choose another path")

    def _put(self, path: str, content: bytes, permission: int) -> None:
        self._directory(path)
        if path in self._entries and self._entries[path].content is None:
            raise StorageError(f"{self.uri}{path} is a directory; choose another path")
        self._entries[path] = _Entry(content, permission, self._now_ms())
        self._touch(_parent(path))

    def _make(self, path: str, permission: int) -> None:
        if path in self._entries:
            if self._entries[path].content is not None:
                raise StorageError(f"cannot create {self.uri}{path}: a file is there; choose another path")
            return
        self._make(_parent(path), permission)
        self._entries[path] = _Entry(None, permission, self._now_ms())
        self._touch(_parent(path))

    def _touch(self, path: str) -> None:
        self._entries[path] = replace(self._entries[path], modified_ms=self._now_ms())

    def _now_ms(self) -> int:
        self._changes += 1
        return self._changes if self._clock is None else self._clock.now_ms()

    def _status(self, path: str) -> FileStatus:
        entry = self._entries[path]
        length_bytes = 0 if entry.content is None else len(entry.content)
        return FileStatus(
            path,
            entry.content is None,
            length_bytes,
            entry.modified_ms,
            entry.permission,
            entry.owner or self.user,
        )


def _parent(path: str) -> str:
    return posixpath.dirname(path)


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
