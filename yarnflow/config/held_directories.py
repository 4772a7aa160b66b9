"""Directories of this machine that are held by descriptors while something in them is checked and deleted.

A path may lead elsewhere at each use of it: whoever owns a folder on the way can exchange what is in it.  So
each part of a path is opened within the one before it, links are followed only where nobody else could have
put them, and everything further goes by what was opened.  Flink has no counterpart.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

from yarnflow.errors import StorageDenied, StorageError

#: a directory on the way need not be readable
_PASSED: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: of a named pipe, too, it returns at once
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: as the kernel has it
_MOST_LINKS: Final = 40
#: directories in each other; each is open while those in it are looked at
_DEEPEST: Final = 50


class HeldDirectory:
    """A directory that stays the same one, whatever is put at its path.  Links in it are not followed.

    Parameters
    ----------
    path : str
        For messages.
    parent, descriptor : int
        Of the directory it was found in, and its own.
    """

    def __init__(self, path: str, parent: int, descriptor: int) -> None:
        self._path = path
        self._parent = parent
        self._descriptor = descriptor

    def read(self, path: str) -> bytes:
        """Return content of a file in it, by a relative path."""
        with self._holder(path) as (holder, name):
            with open(os.open(name, _READ, dir_fd=holder), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise StorageError(f"{self._path}/{path} is not a file; see who made it")
                return file.read()

    def names(self) -> list[str]:
        """Return its entries, sorted."""
        return sorted(os.listdir(self._descriptor))

    def files(self, below: str = "") -> list[str]:
        """Return the paths of all files and links in it, or in a directory below, relative to that."""
        if not below:
            return list(self._files_in(self._descriptor))
        with self._holder(below) as (holder, name), _opened(name, holder) as descriptor:
            return list(self._files_in(descriptor))

    def delete(self, path: str) -> bool:
        """Delete a file, a link or a directory in it; False when there was nothing."""
        try:
            with self._holder(path) as (holder, name):
                return _delete_entry(name, holder)
        except FileNotFoundError:
            return False

    def remove(self, files: Collection[str]) -> None:
        """Delete the directory itself with these files.

        Raises
        ------
        StorageError
            There are others, which have come meanwhile.
        """
        self._remove_files(self._descriptor, frozenset(files), "")
        name = self._path.rpartition("/")[2]
        found = os.stat(name, dir_fd=self._parent, follow_symlinks=False)
        if not os.path.samestat(found, os.fstat(self._descriptor)):
            raise StorageError(f"{self._path} was exchanged for another directory; see who may write there")
        os.rmdir(name, dir_fd=self._parent)

    @contextmanager
    def _holder(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield the directory a relative path is in, and its name there."""
        *parts, name = path.split("/")
        here = os.dup(self._descriptor)
        try:
            for part in parts:
                below = os.open(part, _PASSED, dir_fd=here)
                os.close(here)
                here = below
            yield here, name
        finally:
            os.close(here)

    def _files_in(self, directory: int, below: str = "") -> Iterator[str]:
        self._check_depth(below)
        for name in sorted(os.listdir(directory)):
            if _is_directory(name, directory):
                with _opened(name, directory) as inner:
                    yield from self._files_in(inner, f"{below}{name}/")
            else:
                yield f"{below}{name}"

    def _remove_files(self, directory: int, files: frozenset[str], below: str) -> None:
        self._check_depth(below)
        for name in sorted(os.listdir(directory)):
            if _is_directory(name, directory):
                with _opened(name, directory) as inner:
                    self._remove_files(inner, files, f"{below}{name}/")
                os.rmdir(name, dir_fd=directory)
            elif f"{below}{name}" in files:
                os.unlink(name, dir_fd=directory)
            else:
                raise StorageError(
                    f"{self._path}/{below}{name} has come while the directory was being deleted; look at "
                    "what is left there, and delete it by hand"
                )

    def _check_depth(self, below: str) -> None:
        if below.count("/") > _DEEPEST:
            raise StorageError(
                f"{self._path} has directories in more than {_DEEPEST} others; delete it by hand"
            )


@contextmanager
def hold(path: str) -> Iterator[HeldDirectory]:
    """Hold a directory.

    Parameters
    ----------
    path : str
        Absolute.

    Raises
    ------
    StorageDenied
        It, or a directory on the way, is a link that another user could have made.
    OSError
        It cannot be opened.
    """
    with _parent_of(path) as (parent, name):
        try:
            descriptor = os.open(name, _LISTED, dir_fd=parent)
        except NotADirectoryError as error:
            if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                raise StorageDenied(f"{path} is a link; name the directory to which it leads") from error
            raise
        try:
            yield HeldDirectory(path.rstrip("/"), parent, descriptor)
        finally:
            os.close(descriptor)


def delete_tree(path: str) -> bool:
    """Delete a file, a link or a whole directory; False when there was nothing.

    The path is this process's own choice, so links on the way to it are followed, whosever they are.  The
    directory in which it is stays the same while it is deleted.

    Raises
    ------
    OSError
        It cannot be deleted.
    """
    parent, name = _split(path)
    try:
        holder = os.open(parent or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return _delete_entry(name, holder)
    finally:
        os.close(holder)


def _delete_entry(name: str, directory: int) -> bool:
    try:
        if not _is_directory(name, directory):
            os.unlink(name, dir_fd=directory)
            return True
    except FileNotFoundError:
        return False
    # goes by descriptors itself
    shutil.rmtree(name, dir_fd=directory, **_GOES_ON)
    return True


def _unless_gone(_function: object, _path: object, error: Any) -> None:
    """Go on with what is left where somebody else deletes at the same time."""
    found = error if isinstance(error, BaseException) else error[1]
    if not isinstance(found, FileNotFoundError):
        raise found


#: the parameter has two names
_GOES_ON: Final[dict[str, Any]] = {"onexc" if sys.version_info >= (3, 12) else "onerror": _unless_gone}


@contextmanager
def _parent_of(path: str) -> Iterator[tuple[int, str]]:
    parent, name = _split(path)
    descriptor = _walked(parent, path)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def _split(path: str) -> tuple[str, str]:
    parent, _, name = path.rstrip("/").rpartition("/")
    if not path.startswith("/") or name in ("", ".", ".."):
        raise StorageError(f"{path} is not the absolute path of a file or directory; check it")
    return parent, name


def _walked(directory: str, path: str) -> int:
    """Return a descriptor of a directory, opened part by part from the root of the machine's file system."""
    left = _parts(directory)
    here = os.open("/", _PASSED)
    links = 0
    try:
        while left:
            part = left.pop()
            try:
                below = os.open(part, _PASSED, dir_fd=here)
            except NotADirectoryError:
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
                target = _link_target(part, here, path)
                left.extend(_parts(target))
                if not target.startswith("/"):
                    continue
                below = os.open("/", _PASSED)
            os.close(here)
            here = below
    except BaseException:
        os.close(here)
        raise
    return here


def _parts(path: str) -> list[str]:
    """Return the parts of a path, the last one first."""
    return [part for part in path.split("/") if part not in ("", ".")][::-1]


def _link_target(name: str, directory: int, path: str) -> str:
    """Return where a link leads that only this user or the administrator can have put where it is."""
    # what it says and whose it is are asked of the same one
    link = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        found, folder = os.fstat(link), os.fstat(directory)
        if not stat.S_ISLNK(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        own = (0, os.geteuid())
        open_to_all = folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX
        if found.st_uid not in own or folder.st_uid not in own or open_to_all:
            raise StorageDenied(
                f"{path}: {name} on the way is a link that others can exchange; name the directory to which "
                "it leads, or use one that nobody else may write to"
            )
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def _is_directory(name: str, directory: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)


@contextmanager
def _opened(name: str, directory: int) -> Iterator[int]:
    descriptor = os.open(name, _LISTED, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
