"""The uploaded programs: one file each in a directory, which is all that is known of them.

Flink counterpart: the ``web.upload.dir`` of ``JarListHandler`` and its neighbours.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.rest.framework.errors import RestError

#: further ones are refused
MAX_PROGRAMS: Final = 100
#: Flink's form of an id: a new UUID, and the name
_ID: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_([^/\\\x00-\x1f\x7f]{1,100})")
_NAME: Final = re.compile(r"(?!\.)[^/\\\x00-\x1f\x7f]{1,96}\.(?:py|zip)")
#: of the longest name in file systems, with room for the id and a dot
_MAX_NAME_BYTES: Final = 200
_RUN_PREFIX: Final = ".run-"
_BODY_SUFFIX: Final = ".part"
#: what is there only while a request is answered: runs, bodies, and programs that are being written
_LEFTOVER: Final = re.compile(
    rf"{re.escape(_RUN_PREFIX)}.+|\.[0-9a-f]{{32}}{re.escape(_BODY_SUFFIX)}|\.{_ID.pattern}"
)
#: far longer than any request may last
_LEFTOVER_S: Final = 3_600


@dataclass(frozen=True, slots=True)
class UploadedProgram:
    """One file."""

    #: that of Flink's paths
    program_id: str
    #: as it was uploaded
    name: str
    path: Path
    uploaded_ms: int

    @property
    def is_archive(self) -> bool:
        """It is a .zip."""
        return self.name.endswith(".zip")


class ProgramStore:
    """Those of one directory; thread-safe.

    Parameters
    ----------
    directory : Path
        Made when it is first needed; other files in it are left alone.
    now_s : callable
        The time of day, as files have it.
    """

    def __init__(self, directory: Path, now_s: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._now_s = now_s
        self._lock = threading.Lock()
        self._is_tidy = False

    def directory(self) -> Path:
        """The directory, which only its owner may look into.

        Raises
        ------
        OSError
            It cannot be made.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock:
            if not self._is_tidy:
                self._remove_leftovers()
                self._is_tidy = True
        return self._directory

    def run_directory(self) -> Path:
        """A new directory for one run; whoever asks removes it afterwards.

        Raises
        ------
        OSError
            It cannot be made.
        """
        return Path(tempfile.mkdtemp(prefix=_RUN_PREFIX, dir=self.directory()))

    def new_body(self) -> Path:
        """Where a body may be while it comes.

        Raises
        ------
        OSError
            The directory cannot be made.
        """
        return self.directory() / f".{secrets.token_hex(16)}{_BODY_SUFFIX}"

    def _remove_leftovers(self) -> None:
        """What masters that were killed had begun; of one that lives nothing is so old."""
        for entry in os.scandir(self._directory):
            with suppress(OSError):
                if not _LEFTOVER.fullmatch(entry.name):
                    continue
                if self._now_s() - entry.stat(follow_symlinks=False).st_mtime < _LEFTOVER_S:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)

    def all(self) -> list[UploadedProgram]:
        """Newest first."""
        try:
            found = [program for entry in os.scandir(self._directory) if (program := _program(entry))]
        except OSError:
            return []
        return sorted(found, key=lambda program: (-program.uploaded_ms, program.program_id))

    def get(self, program_id: str) -> UploadedProgram:
        """Raises RestError when there is none of this id."""
        for program in self.all():
            if program.program_id == program_id:
                return program
        # Flink's words, with the status of something that is not there
        raise RestError(404, f"File {program_id[:150]} does not exist in {self._directory}.")

    def add(self, name: str, save: Callable[[Path], object]) -> UploadedProgram:
        """Keep a program.

        Parameters
        ----------
        name : str
            As the client called it; a path before it is left out.
        save : callable
            Writes the file that it is given.

        Raises
        ------
        RestError
            It is no program by its name, or there are too many.
        OSError
            It cannot be written.
        """
        plain = re.split(r"[/\\]", name)[-1]
        if _NAME.fullmatch(plain) is None:
            raise RestError(400, "only Python files (.py) and archives with a program (.zip) can be uploaded")
        if len(plain.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
            raise RestError(400, f"the name of the file is longer than {_MAX_NAME_BYTES} bytes; rename it")
        program_id = f"{uuid.uuid4()}_{plain}"
        directory = self.directory()
        # under a name that is no program's
        written = directory / f".{program_id}"
        try:
            save(written)
            with self._lock:
                if len(self.all()) >= MAX_PROGRAMS:
                    raise RestError(409, f"{MAX_PROGRAMS} programs are uploaded already; delete one first")
                written.rename(directory / program_id)
        finally:
            written.unlink(missing_ok=True)
        return self.get(program_id)

    def delete(self, program_id: str) -> None:
        """Raises RestError when there is none of this id, or it cannot be deleted."""
        program = self.get(program_id)
        try:
            program.path.unlink(missing_ok=True)
        except OSError as error:
            raise RestError(503, f"{program.path} cannot be deleted: {error.strerror}") from None


def _program(entry: os.DirEntry[str]) -> UploadedProgram | None:
    found = _ID.fullmatch(entry.name)
    if found is None or not entry.is_file(follow_symlinks=False):
        return None
    try:
        modified_ns = entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return None
    return UploadedProgram(entry.name, found[2], Path(entry.path), modified_ns // 1_000_000)
