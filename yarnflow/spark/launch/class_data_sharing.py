"""Archives of loaded classes, which take most of the waiting out of a JVM's start.

Decides where the archives lie, whether they fit this machine's Java and Spark, and how they are
made: by one tiny streaming job, once per machine, when asked to (``yarnflow prepare``).  A JVM
that is given an archive it cannot use ignores it, so nothing here can make a start fail.

Flink has no counterpart; its start-up is not dominated by class loading.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pwd
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Final

from yarnflow.config.directories import cache_directory
from yarnflow.errors import YarnflowError
from yarnflow.spark.launch.java import JavaRuntime
from yarnflow.spark.launch.spark_home import class_path_fingerprint

#: anything smaller was cut off
_SMALLEST_ARCHIVE_BYTES: Final = 1 << 20
_STALE_AFTER_S: Final = 30 * 24 * 3600
#: raised when flags change in a way an archive depends on
_FORMAT: Final = "1"


class Role(Enum):
    """Whose classes an archive holds."""

    DRIVER = "driver"
    EXECUTOR = "executor"


def default_cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """``$XDG_CACHE_HOME/yarnflow/cds``, by default below ``~/.cache``."""
    return cache_directory(environ) / "cds"


def cache_dirs(environ: Mapping[str, str] | None = None) -> list[Path]:
    """Where archives are looked for: :func:`default_cache_dir`, then the same below the user's own home.

    The two differ where ``HOME`` is not the user's, as in YARN's containers.
    """
    found = [default_cache_dir(environ)]
    with contextlib.suppress(KeyError):
        found.append(Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".cache" / "yarnflow" / "cds")
    return list(dict.fromkeys(found))


def archive_path(role: Role, java: JavaRuntime, cache_dir: Path) -> Path:
    """Where the archive of this Java and this class path lies, or would lie."""
    parts = f"{_FORMAT}:{java.program}:{java.version}:{class_path_fingerprint()}"
    key = hashlib.sha256(parts.encode()).hexdigest()
    return cache_dir / f"{role.value}-java{java.feature}-{key[:16]}.jsa"


def jvm_flags(role: Role, java: JavaRuntime, cache_dir: Path) -> list[str]:
    """JVM options that use the archive; none when there is no archive yet."""
    path = archive_path(role, java, cache_dir)
    return ["-Xshare:auto", f"-XX:SharedArchiveFile={path}"] if _usable(path) else []


def installed_flags(role: Role, java: JavaRuntime) -> list[str]:
    """:func:`jvm_flags` for the first directory of :func:`cache_dirs` that has the archive."""
    return next((flags for path in cache_dirs() if (flags := jvm_flags(role, java, path))), [])


def archives_exist(java: JavaRuntime, cache_dir: Path) -> bool:
    """Both archives have been made for this Java and Spark."""
    return all(_usable(archive_path(role, java, cache_dir)) for role in Role)


def build_archives(
    java: JavaRuntime,
    cache_dir: Path,
    train: Callable[[Mapping[Role, list[str]]], None],
) -> bool:
    """Make the archives unless they exist or somebody is making them now.

    Parameters
    ----------
    java : JavaRuntime
    cache_dir : Path
        Created with mode 0700: a JVM trusts what it finds in an archive.
    train : callable
        Runs a representative job; is given the JVM options of each role and must have waited
        for both JVMs when it returns, since they write their archives when they end.

    Returns
    -------
    bool
        This call made them.

    Raises
    ------
    YarnflowError
        The training did not leave both archives.
    """
    if archives_exist(java, cache_dir):
        return False
    cache_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _only_builder(cache_dir) as alone:
        if not alone or archives_exist(java, cache_dir):
            return False
        scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=cache_dir))
        try:
            made = {role: scratch / f"{role.value}.jsa" for role in Role}
            train({role: [f"-XX:ArchiveClassesAtExit={path}"] for role, path in made.items()})
            for role, path in made.items():
                if not _usable(path):
                    raise YarnflowError(f"no class-data archive of the {role.value} was written")
            for role, path in made.items():
                os.replace(path, archive_path(role, java, cache_dir))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        _remove_stale(cache_dir, time.time())
    return True


def _usable(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    # an archive somebody else could have written could carry somebody else's code
    return status.st_size >= _SMALLEST_ARCHIVE_BYTES and status.st_uid in (os.getuid(), 0)


def _remove_stale(cache_dir: Path, now_s: float) -> None:
    """Remove archives of Javas and Sparks that nobody has used for a month."""
    for path in cache_dir.glob("*.jsa"):
        with contextlib.suppress(OSError):
            status = path.stat()
            if now_s - max(status.st_atime, status.st_mtime) > _STALE_AFTER_S:
                path.unlink()


@contextlib.contextmanager
def _only_builder(cache_dir: Path) -> Iterator[bool]:
    """Hold the lock file, if nobody else does; the kernel frees it when a builder dies."""
    descriptor = os.open(cache_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)
