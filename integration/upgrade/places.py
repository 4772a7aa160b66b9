"""Where recorded state lies while it is made and while it is used: in the same place, as it names paths.

Sources remember the files that they have read, checkpoints the directories of their queries, stored jobs the
programs' arguments: all by absolute path.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PROGRAMS: Final = HERE / "programs"
DATA: Final = HERE / "data"
#: the version whose data is tested
VERSION: Final = "797657a"
#: the same on all machines, whatever their folder for temporary files is
ROOT: Final = Path("/tmp/yarnflow-upgrade")


@contextmanager
def own_place(name: str) -> Iterator[Path]:
    """Make a directory below :data:`ROOT` with the programs, and remove it at the end.

    It is one process's at a time; another one that wants it waits.
    """
    with _locked(name):
        place = ROOT / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        try:
            shutil.copytree(PROGRAMS, place / "programs", ignore=shutil.ignore_patterns("__pycache__"))
            yield place
        except BaseException:
            # its job may run still, and write there; what is left is removed by who is here next
            shutil.rmtree(place, ignore_errors=True)
            raise
        shutil.rmtree(place)


@contextmanager
def _locked(name: str) -> Iterator[None]:
    file = ROOT / f"{name}.lock"
    lock = _lock(file)
    try:
        yield
    finally:
        file.unlink()
        os.close(lock)
        with suppress(OSError):  # others have places, too
            ROOT.rmdir()


def _lock(file: Path) -> int:
    """Make a file and lock it; whoever has it removes it at the end, so it may be another one by then."""
    while True:
        ROOT.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            lock = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), file.stat()):
                    return lock
            os.close(lock)


def pack(directory: Path, names: list[str], archive: Path) -> None:
    """Put some of a directory's content into an archive, without owners and the times of this machine."""

    def neutral(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for name in names:
            tar.add(directory / name, name, filter=neutral)


def unpack(archive: Path, directory: Path) -> None:
    """Bring an archive's content into a directory; it belongs to this user then."""
    with tarfile.open(archive) as tar:
        tar.extractall(directory, filter="tar")
    for path in directory.rglob("*"):
        # what is restored must not be writable by others, whatever the umask was
        assert not path.stat().st_mode & 0o022, path


def put_secret(place: Path) -> Path:
    """Put the recorded cluster's secret, which is of tests only, where a process takes it."""
    path = place / "cluster-secret"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write((DATA / VERSION / "cluster-secret").read_text())
    return path


def python_version() -> tuple[int, int]:
    """Return the version of Python that the recorded functions were pickled by."""
    major, minor, _ = (DATA / VERSION / "python-version").read_text(encoding="utf-8").split(".")
    return int(major), int(minor)
