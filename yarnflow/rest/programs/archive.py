"""Archives with a program: which modules can be run, and how one is unpacked without harm."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
from pathlib import Path, PurePosixPath
from typing import Final

from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.programs.store import UploadedProgram

#: what Python runs of an archive by itself
MAIN: Final = "__main__"
_MAX_FILES: Final = 10_000
#: that are told of one archive
_MAX_ENTRIES: Final = 20
#: an archive may hold so many times what one may be large
_UNPACKED: Final = 4
_BLOCK_BYTES: Final = 256 * 1024
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


def modules(program: UploadedProgram) -> list[str]:
    """Modules of a program that can be run, the usual one first; none where it cannot be read."""
    if not program.is_archive:
        return [program.name.removesuffix(".py")]
    try:
        with zipfile.ZipFile(program.path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return []
    found = {name.removesuffix(".py") for name in names if "/" not in name and name.endswith(".py")}
    return sorted(found - {"__init__"}, key=lambda name: (name != MAIN, name))[:_MAX_ENTRIES]


def module_of(program: UploadedProgram, wanted: str | None) -> str:
    """The module that is run.

    Parameters
    ----------
    wanted : str, optional
        The one that was asked for.

    Raises
    ------
    RestError
        It is not said which, or the program is another one.
    """
    known = modules(program)
    if wanted:
        if not program.is_archive and wanted != known[0]:
            raise RestError(400, f"{program.name} is the module {known[0]}; entryClass names {wanted[:100]}")
        if not all(part.isidentifier() for part in wanted.split(".")):
            raise RestError(400, f"entryClass {wanted[:100]!r} is no name of a Python module")
        return wanted
    if len(known) == 1 or known[:1] == [MAIN]:
        return known[0]
    there = f" ({', '.join(known)})" if known else ""
    raise RestError(
        400,
        f"{program.name} has no {MAIN}.py; say in entryClass which of its modules{there} is the program",
    )


def check(path: Path, name: str) -> None:
    """Refuse what is no archive, as soon as it is uploaded; raises RestError."""
    if not zipfile.is_zipfile(path):
        raise RestError(400, f"{name} is no .zip archive")


def unpack(program: UploadedProgram, directory: Path, max_bytes: int) -> None:
    """Write the files of an archive below a directory, and nowhere else.

    Parameters
    ----------
    max_bytes : int
        Of the largest archive.

    Raises
    ------
    RestError
        400: it is damaged, too large, or names files elsewhere; 503: the disk is full.
    """
    left = _UNPACKED * max_bytes
    try:
        with zipfile.ZipFile(program.path) as archive:
            members = archive.infolist()
            if len(members) > _MAX_FILES:
                raise _refused(program, f"more than {_MAX_FILES} files")
            for member in members:
                target = _target(program, directory, member)
                if target is not None:
                    left = _write(program, archive, member, target, left)
    except RestError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            why = f"{program.name} cannot be unpacked: {error.strerror} (web.upload.dir)"
            raise RestError(503, why) from None
        # encrypted, or broken: what is raised then depends on how each of its files is compressed
        raise RestError(400, f"{program.name} cannot be unpacked: {error}") from None


def _target(program: UploadedProgram, directory: Path, member: zipfile.ZipInfo) -> Path | None:
    path = PurePosixPath(member.filename)
    is_link = stat.S_ISLNK(member.external_attr >> 16)
    if is_link or path.is_absolute() or ".." in path.parts or "\\" in member.filename:
        raise _refused(program, f"a link or a path that leads elsewhere: {member.filename[:100]!r}")
    return None if member.is_dir() else directory.joinpath(*path.parts)


def _write(
    program: UploadedProgram, archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, left: int
) -> int:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with archive.open(member) as source, os.fdopen(descriptor, "wb") as sink:
        # what the archive says of its sizes may be wrong
        while block := source.read(_BLOCK_BYTES):
            left -= len(block)
            if left < 0:
                raise _refused(program, "too much: unpacked it is larger than web.upload.max-size allows")
            sink.write(block)
    return left


def _refused(program: UploadedProgram, what: str) -> RestError:
    return RestError(400, f"{program.name} has {what}")
