"""Pid files of processes in the background, and their output, in a folder that is the user's alone.

Whoever could write there would say which processes are ended, and which files are written to.  Flink
counterpart: ``flink-daemon.sh``, which trusts its folder.
"""

from __future__ import annotations

import fnmatch
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.core.resources.processes import PROC, process_stat
from yarnflow.errors import ConfigError
from yarnflow.process.dirs import base_directory

#: names the folder
FOLDER_VARIABLE: Final = "YARNFLOW_PID_DIR"
_SUFFIX: Final = ".pid"
#: most of a pid file that is read
_LONGEST: Final = 100
#: in the command line of what earlier versions started
_OLDER_WORDS: Final = b"yarnflow.cli"
#: of a named pipe, too, it returns at once
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class RecordedProcess:
    """A process of a pid file."""

    pid: int
    #: when, as :class:`ProcessStat` has it; empty = not recorded, by an earlier version
    began: str = ""

    @property
    def runs(self) -> bool:
        """It is this user's and still the one that was recorded; another may have its number by now."""
        found = process_stat(self.pid)
        if found is None or not found.runs:
            return False
        process = PROC / str(self.pid)
        try:
            if process.stat().st_uid != os.geteuid():
                return False
            if self.began:
                return self.began == found.began
            return _OLDER_WORDS in (process / "cmdline").read_bytes()
        except OSError:
            return False  # it has ended this very moment


class PidFolder:
    """An open folder with pid files; what is done there is not led elsewhere by links.

    Parameters
    ----------
    path : Path
    descriptor : int
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path: Final = path
        self._descriptor: Final = descriptor

    def names(self, pattern: str) -> list[str]:
        """Return the names of the processes that match a pattern and have pid files, sorted."""
        files = fnmatch.filter(os.listdir(self._descriptor), pattern + _SUFFIX)
        return sorted(name.removesuffix(_SUFFIX) for name in files)

    def recorded(self, name: str) -> RecordedProcess | None:
        """Return the process of a pid file; None = there is no file, or none that this user wrote."""
        try:
            file = os.open(name + _SUFFIX, _READ, dir_fd=self._descriptor)
        except OSError:
            return None
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                return None
            pid, _, began = os.read(file, _LONGEST).decode().strip().partition("\n")
            return RecordedProcess(int(pid), began)
        except ValueError:
            return None
        finally:
            os.close(file)

    def record(self, name: str, pid: int) -> None:
        """Write the pid file of a process of this user's."""
        found = process_stat(pid)
        file = self._new_file(name + _SUFFIX)
        try:
            os.write(file, f"{pid}\n{found.began if found else ''}\n".encode())
        finally:
            os.close(file)

    def forget(self, name: str) -> None:
        """Delete a pid file.  Idempotent."""
        with suppress(FileNotFoundError):
            os.unlink(name + _SUFFIX, dir_fd=self._descriptor)

    def new_output(self, name: str) -> int:
        """Return a descriptor of an empty file for what a process says; an earlier one's is deleted."""
        return self._new_file(self.output(name).name)

    def output(self, name: str) -> Path:
        """Return the file of :meth:`new_output`."""
        return self.path / f"{name}.out"

    def _new_file(self, name: str) -> int:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_APPEND
        return os.open(name, flags, 0o600, dir_fd=self._descriptor)


def pid_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the environment, else one in the user's own directory below ``/tmp``.

    Raises
    ------
    ConfigError
        That directory is another user's, or open to others.
    """
    named = environ.get(FOLDER_VARIABLE, "")
    if named:
        return Path(named).absolute()
    try:
        return base_directory(tempfile.gettempdir()) / "pids"
    except ConfigError as error:
        raise ConfigError(f"{error}; or name a directory for pid files: {FOLDER_VARIABLE}") from error


def older_pid_folder() -> Path:
    """Return where earlier versions had pid files by default."""
    return Path(tempfile.gettempdir()) / f"yarnflow-{os.geteuid()}-pids"


@contextmanager
def opened(path: Path, *, to_stop: bool = False) -> Iterator[PidFolder]:
    """Open a folder, which is made if it is missing.

    Parameters
    ----------
    to_stop : bool
        Nothing is started: the group may write there, as earlier versions let it, since only files of this
        user are believed.

    Raises
    ------
    ConfigError
        It is not a directory of this user, or others may write there.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(
            f"cannot use {path} for pid files: {error.strerror}; name another directory: {FOLDER_VARIABLE}"
        ) from error
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise ConfigError(
                f"{path} is not a directory of this user, so its pid files are not trusted; name another "
                f"directory: {FOLDER_VARIABLE}"
            )
        if status.st_mode & (stat.S_IWOTH if to_stop else _OTHERS_WRITE):
            raise ConfigError(
                f"others may write to {path}, so its pid files are not trusted; run: chmod 700 {path}"
            )
        yield PidFolder(path, descriptor)
    finally:
        os.close(descriptor)
