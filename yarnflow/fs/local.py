"""Directories of this machine, or mounted on all machines, as the shared file system.

For YARN with ``fs.defaultFS`` = ``file:///`` (one machine, or a network mount at the same path
everywhere) and for tests.  Same guarantees as on HDFS: files appear whole, ``create`` and
``rename`` never replace.
"""

from __future__ import annotations

import builtins
import os
import posixpath
import pwd
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from yarnflow.config import held_directories
from yarnflow.config.held_directories import delete_tree
from yarnflow.core.files import FileStatus, HeldDirectory
from yarnflow.errors import FileMissing, StorageDenied, StorageError


class LocalFileSystem:
    """:class:`yarnflow.core.files.FileSystem` on directories.

    Parameters
    ----------
    home : str
        Home directory; empty = the user's.
    """

    def __init__(self, home: str = "") -> None:
        self._home: Final = home or str(Path.home())

    @property
    def uri(self) -> str:
        return "file://"

    @property
    def user(self) -> str:
        return _name_of(os.geteuid())

    def home(self) -> str:
        return self._home

    def read(self, path: str) -> bytes:
        with _errors("read", path):
            return Path(path).read_bytes()

    def write(self, path: str, content: bytes, *, permission: int = 0o600) -> None:
        with _errors("write", path):
            self._put(path, lambda file: file.write(content), permission, _replace)

    def create(self, path: str, content: bytes, *, permission: int = 0o600) -> bool:
        """Create with content if nothing is there, atomically; False = something is."""
        with _errors("create", path):
            try:
                # unlike a rename, a link never replaces
                self._put(path, lambda file: file.write(content), permission, _link)
            except FileExistsError:
                return False
            return True

    def upload(self, local: str, path: str, *, permission: int = 0o644) -> int:
        """Copy a local file there, atomically; an older one is replaced."""
        with _errors("read", local):
            source = open(local, "rb")
        with source, _errors("write", path):
            self._put(path, lambda file: shutil.copyfileobj(source, file, 1 << 20), permission, _replace)
            return os.fstat(source.fileno()).st_size

    def status(self, path: str) -> FileStatus | None:
        """The entry, or None when there is none."""
        try:
            with _errors("look up", path):
                return _status(path)
        except FileMissing:
            return None

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory, sorted by path; empty when there is none, or it is a file."""
        found: builtins.list[FileStatus] = []
        with _errors("list", path):
            try:
                names = os.listdir(path)
            except (FileNotFoundError, NotADirectoryError):
                return found
            for name in sorted(names):
                # it may be gone by now
                with suppress(FileNotFoundError):
                    found.append(_status(posixpath.join(path, name)))
        return found

    def make_directory(self, path: str, *, permission: int = 0o700) -> None:
        """Create a directory and its missing parents, all with ``permission``.  Idempotent."""
        with _errors("create", path):
            missing = []
            while not os.path.isdir(path):
                missing.append(path)
                path = posixpath.dirname(path)
            for directory in reversed(missing):
                with suppress(FileExistsError):
                    os.mkdir(directory)
                    # whatever the umask is
                    os.chmod(directory, permission)
                if not os.path.isdir(directory):
                    raise StorageError(f"cannot create {directory}: a file is there; choose another path")

    def rename(self, source: str, target: str) -> bool:
        """Move; False when the target exists already.  Raises FileMissing."""
        with _errors("rename", source):
            if os.path.isdir(source):
                # there is no call for directories that never replaces; only an empty one can be lost here
                if os.path.lexists(target):
                    return False
                os.rename(source, target)
                return True
            parent, name = posixpath.split(source)
            # what is removed is what has the new name, whatever becomes of the path meanwhile
            with _directory(parent) as directory:
                try:
                    os.link(name, target, src_dir_fd=directory, follow_symlinks=False)
                except FileExistsError:
                    return False
                os.unlink(name, dir_fd=directory)
            return True

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory; False when there was nothing."""
        with _errors("delete", path):
            return delete_tree(path)

    @contextmanager
    def hold(self, path: str) -> Iterator[HeldDirectory]:
        """Hold a directory, whatever others put at its path.

        Raises
        ------
        FileMissing
        StorageDenied
            A directory on the way is a link that another user could have made.
        """
        with _errors("use", path), held_directories.hold(path) as directory:
            yield directory

    def _put(
        self,
        path: str,
        fill: Callable[[BinaryIO], object],
        permission: int,
        publish: Callable[[str, str, int], object],
    ) -> None:
        parent, name = posixpath.split(path)
        temporary = f".{name[:100]}.{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        # one directory for all steps, whatever becomes of its path meanwhile
        with _directory(parent) as directory:
            try:
                with open(os.open(temporary, flags, 0o600, dir_fd=directory), "wb") as file:
                    fill(file)
                    file.flush()
                    os.fchmod(file.fileno(), permission)
                    os.fsync(file.fileno())
                publish(temporary, name, directory)
            finally:
                # a replacing rename has taken it away already
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=directory)


@contextmanager
def _directory(path: str) -> Iterator[int]:
    descriptor = os.open(path or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _replace(source: str, target: str, directory: int) -> None:
    os.replace(source, target, src_dir_fd=directory, dst_dir_fd=directory)


def _link(source: str, target: str, directory: int) -> None:
    os.link(source, target, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)


@contextmanager
def _errors(doing: str, path: str) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except FileNotFoundError as error:
        raise FileMissing(
            f"cannot {doing} {path}: it, or its directory, does not exist; check the path"
        ) from error
    except PermissionError as error:
        raise StorageDenied(
            f"cannot {doing} {path}: {error.strerror}; use another directory or change its permissions"
        ) from error
    except OSError as error:
        raise StorageError(f"cannot {doing} {path}: {error.strerror}; check the disk and the path") from error


def _status(path: str) -> FileStatus:
    found = os.stat(path)
    directory = os.path.isdir(path)
    return FileStatus(
        path=path,
        is_directory=directory,
        length_bytes=0 if directory else found.st_size,
        modified_ms=found.st_mtime_ns // 1_000_000,
        permission=found.st_mode & 0o7777,
        owner=_name_of(found.st_uid),
    )


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
