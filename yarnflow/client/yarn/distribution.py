"""This very version of yarnflow as one archive, so that client and cluster always run the same.

The archive has the package's files and their byte code for the Python that makes it, compiled
once and never checked against the sources again: nothing is compiled in a container.  The same
sources make the same bytes, so an upload happens once per version.  Flink counterpart: the
``flink-dist`` jar.
"""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Final

import yarnflow
from yarnflow.config.directories import cache_directory, writing_to

#: the archive's name for YARN, which unpacks by the ending
DISTRIBUTION_NAME: Final = "yarnflow-dist.zip"
_SKIPPED: Final = "__pycache__"
#: older archives that are kept in the cache directory
_KEPT: Final = 4
#: without references: with them the bytes depend on what else the interpreter holds
_MARSHAL_VERSION: Final = 2
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def distribution(package: Path | None = None, directory: Path | None = None) -> Path:
    """The archive of the running package; made when its files have changed.

    Parameters
    ----------
    package : Path, optional
        Directory of the package.
    directory : Path, optional
        Where archives are kept; default: in the user's cache.

    Raises
    ------
    ConfigError
        They cannot be kept there.
    """
    package = package or Path(yarnflow.__file__).parent
    directory = directory or cache_directory() / "dist"
    files = [(f"{package.name}/{name}", content) for name, content in _sources(package)]
    path = directory / f"{_signature(files)}.zip"
    if path.exists():
        with suppress(OSError):  # it is as good where this user may only read it
            os.utime(path)
        return path
    content = zip_bytes(_with_byte_code(files))
    with writing_to(directory):
        directory.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=directory, suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        _forget_old(directory)
    return path


def zip_bytes(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip archive whose bytes depend on names and contents only."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def _sources(package: Path) -> Iterator[tuple[str, bytes]]:
    for directory, names, files in os.walk(package):
        names[:] = sorted(name for name in names if name != _SKIPPED)
        for file in sorted(files):
            path = Path(directory, file)
            yield str(path.relative_to(package)), path.read_bytes()


def _signature(files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER + sys.implementation.name.encode())
    for name, content in files:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _with_byte_code(files: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    for name, content in files:
        yield name, content
        if name.endswith(".py"):
            yield importlib.util.cache_from_source(name, optimization=""), _byte_code(name, content)


def _byte_code(name: str, source: bytes) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    # flags: hash-based and never compared with the source (PEP 552)
    header = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little") + importlib.util.source_hash(source)
    return header + marshal.dumps(code, _MARSHAL_VERSION)


def _forget_old(directory: Path) -> None:
    archives = sorted(directory.glob("*.zip"), key=_modified_ns)
    for path in archives[:-_KEPT]:
        path.unlink(missing_ok=True)


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0  # another client has just forgotten it
