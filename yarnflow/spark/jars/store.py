"""Packages that were resolved before, in the user's cache.

A result is known by what was asked for; it is good as long as its jars have the checksums they had.  What
is good is used without Ivy, without network and without a JVM.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from yarnflow.config.directories import cache_directory, writing_to
from yarnflow.core.jars.coordinates import MavenCoordinate
from yarnflow.core.jars.request import IVY_DIRECTORY, IVY_SETTINGS, JarRequest
from yarnflow.errors import JarError, JarNotFound
from yarnflow.spark.jars.paths import check_path

#: raised when what is remembered has another form
_FORMAT: Final = 1
#: results with versions that are published again and again are good so long
_SNAPSHOT_S: Final = 3600
_SNAPSHOT: Final = "-SNAPSHOT"
#: what no repository had is not asked for again so long, where there is something in its place
_MISSING_S: Final = 7 * 24 * 3600

Resolve = Callable[[JarRequest, Path], Sequence[Path]]


@dataclass(frozen=True, slots=True)
class _Jar:
    path: Path
    sha256: str
    #: size, time of change and the like: as long as it is the same nobody has written to the file
    signature: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> _Jar:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path, sha256, _signature(path))

    @property
    def good(self) -> bool:
        try:
            if _signature(self.path) == self.signature:
                return True
            return _Jar.of(self.path).sha256 == self.sha256
        except OSError:
            return False


class PackageStore:
    """Results of one user; several processes may use it at a time.

    Parameters
    ----------
    resolve : callable
        ``(request, directory for Ivy) -> jars``; raises JarError: :func:`yarnflow.spark.jars.ivy.resolve`.
    directory : Path, optional
        Default: in the user's cache.
    note : callable, optional
        Told when packages are looked for, which may take a while.
    """

    def __init__(
        self, resolve: Resolve, directory: Path | None = None, note: Callable[[str], None] | None = None
    ) -> None:
        self._resolve = resolve
        self._directory = directory
        self._note = note or (lambda _text: None)

    def get(self, request: JarRequest) -> list[Path]:
        """The jars of a request's packages.

        Raises
        ------
        JarError
            They cannot be found.
        ConfigError
            The cache cannot be written to.
        """
        if not request.packages:
            return []
        directory = self._place
        record = self._record(request, ".json")
        ivy_directory = Path(request.ivy_directory or directory / "ivy").expanduser().absolute()
        advice = f"let XDG_CACHE_HOME or {IVY_DIRECTORY} name another directory"
        check_path(ivy_directory, f"packages would be kept in {ivy_directory}", advice)
        known = _load(record)
        if _is_good(record, known):
            return [jar.path for jar in known]
        with writing_to(directory):
            record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            ivy_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(ivy_directory):
            # another process may have done it meanwhile
            known = _load(record)
            if _is_good(record, known):
                return [jar.path for jar in known]
            for jar in known:
                if not jar.good:
                    jar.path.unlink(missing_ok=True)
                if not jar.good or _SNAPSHOT in jar.path.name:
                    _forget_copy(jar.path, ivy_directory)
            self._note(f"Resolving {', '.join(map(str, request.packages))}.")
            try:
                paths = list(self._resolve(request, ivy_directory))
            except JarError as error:
                if not known or not all(jar.good for jar in known):
                    raise
                self._note(f"{error}; the last result is used again.")
                return [jar.path for jar in known]
            with writing_to(directory):
                _save(record, [_Jar.of(path) for path in paths])
        return paths

    def get_first(
        self, request: JarRequest, alternatives: Sequence[Sequence[MavenCoordinate]]
    ) -> tuple[tuple[MavenCoordinate, ...], list[Path]]:
        """The first of several lists of packages that there is, and its jars.

        Parameters
        ----------
        request : JarRequest
            Where to look, and for what besides.

        Raises
        ------
        JarError
            None of them can be had; the error is that of the first.
        """
        first: JarError | None = None
        for number, packages in enumerate(alternatives, start=1):
            wanted = replace(request, packages=tuple(packages))
            missing = self._record(wanted, ".missing")
            # else each submit would ask for it again before it takes the next one
            if number < len(alternatives) and _is_younger(missing, _MISSING_S):
                continue
            try:
                return wanted.packages, self.get(wanted)
            except JarError as error:
                first = first or error
                if isinstance(error, JarNotFound) and number < len(alternatives):
                    with writing_to(self._place):
                        missing.touch()
        assert first is not None, "no alternatives"
        raise first

    @property
    def _place(self) -> Path:
        return self._directory or cache_directory() / "jars"

    def _record(self, request: JarRequest, ending: str) -> Path:
        # what Spark has itself is no part of a result
        key = f"{request.key(_text_of(request.ivy_settings))}-{version('pyspark')}"
        return self._place / "resolved" / f"{key}{ending}"


def _text_of(ivy_settings: str) -> str:
    if not ivy_settings:
        return ""
    try:
        return Path(ivy_settings).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        said = f"{IVY_SETTINGS} is {ivy_settings}, which cannot be read"
        raise JarError(f"{said}: {error}; correct it") from error


def _is_younger(path: Path, seconds: float) -> bool:
    try:
        return time.time() - path.stat().st_mtime < seconds
    except OSError:
        return False


def _signature(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _load(record: Path) -> list[_Jar]:
    try:
        raw: Any = json.loads(record.read_bytes())
        if raw["format"] != _FORMAT:
            return []
        return [_Jar(Path(jar["path"]), jar["sha256"], tuple(jar["signature"])) for jar in raw["jars"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _save(record: Path, jars: Sequence[_Jar]) -> None:
    listed = [{"path": str(jar.path), "sha256": jar.sha256, "signature": jar.signature} for jar in jars]
    descriptor, temporary = tempfile.mkstemp(dir=record.parent, suffix=".tmp")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"format": _FORMAT, "jars": listed}, file)
    os.replace(temporary, record)


def _is_good(record: Path, jars: Sequence[_Jar]) -> bool:
    if not jars or not all(jar.good for jar in jars):
        return False
    return not any(_SNAPSHOT in jar.path.name for jar in jars) or _is_younger(record, _SNAPSHOT_S)


def _forget_copy(jar: Path, ivy_directory: Path) -> None:
    """Have Ivy fetch a jar again, which keeps one copy more than it hands out."""
    for module in (ivy_directory / "cache").glob("*/*/"):
        if jar.name.startswith(f"{module.parent.name}_{module.name}-"):
            shutil.rmtree(module, ignore_errors=True)


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory / ".yarnflow.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
