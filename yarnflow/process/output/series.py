"""A file that another process appends to, and those it was rotated to: ``a.out``, ``a.out.1``, ``a.out.2``.

A rotation copies the file and makes it empty, since the process that writes has it open.  At every moment of
a rotation each line is in a file that is found again, so it may be killed between any two steps:

1. ``.a.out.copying``: a copy begins; all it has is in the file still.
2. ``.a.out.rotating``: it is whole, and stands from now on whatever happens.
3. The file is made empty.
4. The rotated files get the next number, from the first one that is missing on.
5. The copy becomes ``a.out.1``.

What a killed process left is found by :func:`recover`: a copy that had only begun is removed, a whole one
gets its place.  If the kill came between steps 2 and 3, its lines are there twice.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

#: how often what was written meanwhile is copied, before a process that writes faster loses some
_CATCH_UPS: Final = 5
_BLOCK_BYTES: Final = 1024 * 1024
_COPYING: Final = ".copying"
_ROTATING: Final = ".rotating"
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)

logger = logging.getLogger(__name__)


def rotated_file(file: Path, number: int) -> Path:
    """The one that was rotated so many times."""
    return file.with_name(f"{file.name}.{number}")


def begun_copy(name: str) -> str:
    """Name of the copy of a file, while it lacks something."""
    return f".{name}{_COPYING}"


def whole_copy(name: str) -> str:
    """Name of the copy of a file that will be its newest rotated file."""
    return f".{name}{_ROTATING}"


def original(name: str) -> str | None:
    """Name of the file of which this is a whole copy; None = it is none."""
    return _between(name, _ROTATING)


def is_begun_copy(name: str) -> bool:
    """Whether this has nothing that is not elsewhere."""
    return _between(name, _COPYING) is not None


def _between(name: str, end: str) -> str | None:
    found = name.removeprefix(".").removesuffix(end)
    return found if found and name == f".{found}{end}" else None


def rotate(file: Path, kept: int) -> None:
    """Make a file empty, whose content is in its newest rotated file then.

    Where there is no room for the copy, the oldest rotated files are removed.

    Parameters
    ----------
    kept : int
        Rotated files that are kept.

    Raises
    ------
    OSError
        It failed, or another process is at it; nothing is lost, and it may be tried again.
    """
    put_in_place(file, kept)
    begun, whole = file.with_name(begun_copy(file.name)), file.with_name(whole_copy(file.name))
    with file.open("r+b", buffering=0) as source:
        # as readable as the file is: who collects the logs of containers is another user
        mode = os.fstat(source.fileno()).st_mode & 0o777
        target = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, mode)
        with _locked(target, begun):
            try:
                os.ftruncate(target, 0)
                # what came meanwhile, and at once
                for _ in range(1 + _CATCH_UPS):
                    if not _copy_with_room(source.fileno(), target, file, kept):
                        break
                os.rename(begun, whole)
                _copy_with_room(source.fileno(), target, file, kept)
                os.ftruncate(source.fileno(), 0)
            except OSError:
                # the file has all of it still
                begun.unlink(missing_ok=True)
                whole.unlink(missing_ok=True)
                raise
            _give_place(file, kept)


def put_in_place(file: Path, kept: int) -> None:
    """End the rotation of a file that another process did not end; nothing happens when there is none.

    Raises
    ------
    BlockingIOError
        Another process is at it.
    OSError
        It failed; nothing is lost, and it may be tried again.
    """
    with suppress(FileNotFoundError), _found(file.with_name(whole_copy(file.name))):
        _give_place(file, kept)


def recover(directory: Path, kept: int) -> None:
    """End all rotations in a directory that other processes did not end.

    Raises
    ------
    OSError
        One of them failed; nothing is lost, and it may be tried again.
    """
    for name in sorted(os.listdir(directory)):
        # a process that lives ends its own
        with suppress(BlockingIOError):
            if (of := original(name)) is not None:
                put_in_place(directory / of, kept)
            elif is_begun_copy(name):
                with suppress(FileNotFoundError), _found(directory / name):
                    (directory / name).unlink()


@contextmanager
def _locked(descriptor: int, copy: Path) -> Iterator[None]:
    """A copy is its process's for the block, and until the process ends; closes it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # since it was opened it may have got its place, and another one may be here
        if not copy.exists() or not os.path.samestat(os.fstat(descriptor), copy.stat()):
            raise BlockingIOError(errno.EAGAIN, "another process rotates it", str(copy))
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _found(copy: Path) -> Iterator[None]:
    """A copy that no process has any more is this process's for the block."""
    descriptor = os.open(copy, os.O_RDONLY | os.O_CLOEXEC)
    with _locked(descriptor, copy):
        yield


def _give_place(file: Path, kept: int) -> None:
    gap = next((number for number in range(1, kept) if not rotated_file(file, number).exists()), kept)
    for number in range(gap - 1, 0, -1):
        rotated_file(file, number).replace(rotated_file(file, number + 1))
    file.with_name(whole_copy(file.name)).replace(rotated_file(file, 1))


def _copy_with_room(source: int, target: int, file: Path, kept: int) -> int:
    while True:
        try:
            return _copy(source, target)
        except OSError as error:
            if error.errno not in _NO_SPACE or not _drop_oldest(file, kept):
                raise


def _drop_oldest(file: Path, kept: int) -> bool:
    for number in range(kept, 0, -1):
        oldest = rotated_file(file, number)
        if oldest.exists():
            oldest.unlink()
            logger.warning("%s is removed: there is no space left to rotate %s", oldest, file)
            return True
    return False


def _copy(source: int, target: int) -> int:
    """Copy what the target lacks; returns how many bytes that was."""
    before = position = os.lseek(target, 0, os.SEEK_CUR)
    size = os.fstat(source).st_size
    while position < size and (block := os.pread(source, min(size - position, _BLOCK_BYTES), position)):
        position += os.write(target, block)
    return position - before
