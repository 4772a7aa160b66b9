"""Python environments as archives that YARN unpacks in the containers.

Decides what of an environment goes into its archive, and whether an archive made earlier still
is that environment: its first file says which distributions and which interpreter it was made
of.  yarnflow itself is left out, since a client ships its own package with each application.
Never runs the environment's interpreter and never talks to a cluster.

Flink counterpart: what users of ``-pyarch`` and ``python.archives`` do by hand.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
import os
import secrets
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any, Final

from venv_pack import core as venv_pack_core

from yarnflow.client.environment.check import (
    MANIFEST_NAME,
    EnvironmentDescription,
    describe_archive,
    describe_directory,
    normalized_name,
    site_packages,
)
from yarnflow.errors import ConfigError, EnvironmentUnusable

SUFFIX: Final = ".tar.gz"
#: raised when archives of this version differ from those of earlier ones
FORMAT: Final = 1
#: jars and wheels' libraries are most of it and hardly get smaller
COMPRESSION_LEVEL: Final = 4
_OURSELVES: Final = "yarnflow"
_SKIPPED_DIRECTORIES: Final = frozenset({".git", ".hg"})


@dataclass(frozen=True, slots=True)
class PackedEnvironment:
    """An archive for ``python.environment``."""

    path: Path
    size_bytes: int
    description: EnvironmentDescription
    #: False = the archive was there already
    rebuilt: bool
    #: distributions that were left out because a client ships them
    left_out: tuple[str, ...] = ()


def pack_environment(
    prefix: Path,
    output: Path,
    *,
    python_prefix: str = "",
    force: bool = False,
    note: Callable[[str], None] = lambda text: None,
) -> PackedEnvironment:
    """Make an archive of an environment, unless it is there and of the same content.

    Parameters
    ----------
    prefix : Path
        Directory of a virtual or conda environment.
    output : Path
        The ``.tar.gz`` to write; replaced only once the new one is complete.
    python_prefix : str
        Where the base Python is on the nodes, when it is not where it is here.
    force : bool
        Make it again in any case.
    note : callable
        Told when the work begins.

    Raises
    ------
    EnvironmentUnusable
        Not an environment, or one with editable packages other than yarnflow.
    ConfigError
        The archive cannot be written.
    """
    if not output.name.endswith(SUFFIX):
        raise ConfigError(f"{output}: the archive's name must end with {SUFFIX}")
    if python_prefix and not os.path.isabs(python_prefix):
        raise ConfigError(f"--python-prefix {python_prefix}: expected an absolute path on the nodes")
    description = describe_directory(prefix)
    if description.kind not in ("venv", "conda"):
        raise EnvironmentUnusable(
            f"{prefix} is a Python installation and no environment; make one with `python -m venv DIR`, "
            "install your packages there and pack that, or set python.environment to this directory if all "
            "nodes have it"
        )
    prefix = prefix.absolute()
    editable = _Editable.find(prefix)
    key = _key(prefix, description, python_prefix, editable)
    if not force and (found := _same(output, key)) is not None:
        return PackedEnvironment(output, output.stat().st_size, found, False, editable.left_out)
    description = description.with_key(key, python_prefix)
    note(f"packing {prefix} ({len(description.distributions)} distributions) into {output}")
    if description.kind == "conda":
        _pack_conda(prefix, output)
    else:
        with _replacing(output) as stream:
            _pack_venv(prefix, stream, description, editable)
    return PackedEnvironment(output, output.stat().st_size, description, True, editable.left_out)


def default_output(prefix: Path) -> Path:
    """``venv.tar.gz`` in the working directory for ``somewhere/.venv``."""
    return Path(prefix.absolute().name.lstrip(".") + SUFFIX)


def _same(output: Path, key: str) -> EnvironmentDescription | None:
    if not output.is_file():
        return None
    try:
        found = describe_archive(output)
    except EnvironmentUnusable:
        return None  # of something else, or cut off: made again
    return found if found.key == key else None


def _key(
    prefix: Path, description: EnvironmentDescription, python_prefix: str, editable: _Editable
) -> str:
    """What an archive is made of: interpreter, distributions, and what else lies beside them."""
    digest = hashlib.sha256()
    facts = [FORMAT, description.kind, description.python_version, description.interpreter, python_prefix]
    digest.update(json.dumps(facts).encode())
    packages = site_packages(prefix)
    for entry in sorted(packages.iterdir()):
        target = os.path.relpath(entry, prefix)
        if editable.leaves_out(target) or entry.name == "__pycache__" or entry.name == _OURSELVES:
            continue
        digest.update(entry.name.encode())
        if entry.suffix == ".pth":
            digest.update(editable.rewritten.get(target) or entry.read_bytes())
        elif entry.suffix == ".dist-info":
            # hashes of all files of the distribution
            record = entry / "RECORD"
            digest.update(record.read_bytes() if record.is_file() else b"")
        elif entry.is_file():
            status = entry.stat()
            digest.update(f"{status.st_size} {int(status.st_mtime)}".encode())
    return digest.hexdigest()


# --- editable packages ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Editable:
    """What is installed as a reference to a directory elsewhere, and what is yarnflow's."""

    #: paths in the environment that stay out of the archive
    excluded: frozenset[str]
    #: ``.pth`` file → its content without lines about yarnflow
    rewritten: dict[str, bytes]
    left_out: tuple[str, ...]

    @classmethod
    def find(cls, prefix: Path) -> _Editable:
        """Look through an environment.

        Raises
        ------
        EnvironmentUnusable
            Others than yarnflow are editable: their code is not in the environment.
        """
        packages = site_packages(prefix)
        excluded: set[str] = set()
        others: set[str] = set()
        for distribution in metadata.distributions(path=[str(packages)]):
            name = normalized_name(distribution.metadata["Name"] or "")
            if name == _OURSELVES:
                for file in distribution.files or ():
                    # as relative to the environment as the archive's names are
                    located = os.path.normpath(str(packages / str(file)))
                    excluded.add(os.path.relpath(located, prefix))
                for info in packages.glob(f"{_OURSELVES}-*.*-info"):
                    excluded.add(os.path.relpath(info, prefix))
            elif _is_editable(distribution):
                others.add(name)
        for link in packages.glob("*.egg-link"):
            if normalized_name(link.stem) == _OURSELVES:
                excluded |= {os.path.relpath(link, prefix), f"bin/{_OURSELVES}"}
            else:
                others.add(normalized_name(link.stem))
        rewritten: dict[str, bytes] = {}
        for pth in packages.glob("*.pth"):
            kept = []
            lines = pth.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
            for line in lines:
                place = _outside(line, packages, prefix)
                if place is None:
                    kept.append(line)
                elif not (place / _OURSELVES / "__init__.py").is_file():
                    others.add(line.strip())
            if kept != lines:
                text = "".join(f"{line}\n" for line in kept)
                target = os.path.relpath(pth, prefix)
                if text:
                    rewritten[target] = text.encode("utf-8", "surrogateescape")
                else:
                    excluded.add(target)
        if others:
            raise EnvironmentUnusable(
                f"{prefix} has editable packages, whose code is elsewhere and cannot be packed: "
                f"{', '.join(sorted(others))}; install them without -e (pip install PATH) and pack again"
            )
        return cls(frozenset(excluded), rewritten, (_OURSELVES,) if excluded or rewritten else ())

    def leaves_out(self, target: str) -> bool:
        """Whether a file stays out of the archive."""
        return target in self.excluded or os.path.dirname(target) in self.excluded


def _is_editable(distribution: metadata.Distribution) -> bool:
    try:
        url = json.loads(distribution.read_text("direct_url.json") or "{}")
    except ValueError:
        return False
    return bool(isinstance(url, dict) and url.get("dir_info", {}).get("editable"))


def _outside(line: str, packages: Path, prefix: Path) -> Path | None:
    """The directory a line of a ``.pth`` file adds to the path, when it is outside of the environment."""
    text = line.strip()
    if not text or text.startswith(("#", "import ", "import\t")):
        return None
    place = Path(os.path.normpath(packages / text))
    return place if place.is_dir() and not place.is_relative_to(prefix) else None


# --- archives ------------------------------------------------------------------


def _pack_venv(
    prefix: Path, stream: IO[bytes], description: EnvironmentDescription, editable: _Editable
) -> None:
    try:
        context = venv_pack_core.check_prefix(str(prefix))
    except (venv_pack_core.VenvPackException, ValueError) as error:
        raise EnvironmentUnusable(f"{prefix} cannot be packed: {error}") from error
    with gzip.GzipFile("", "wb", COMPRESSION_LEVEL, stream, mtime=0) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            writer = _Writer(tar, prefix, description)
            # first, so that it is found without unpacking the rest
            writer.add_text(MANIFEST_NAME, description.to_json())
            packer = venv_pack_core.Packer(context, writer, None)
            for target in _files(prefix):
                if editable.leaves_out(target):
                    continue
                source = str(prefix / target)
                if target in editable.rewritten:
                    writer.add_bytes(source, editable.rewritten[target], target)
                else:
                    packer.add(venv_pack_core.File(source, target))
            packer.finish()


def _files(prefix: Path) -> Iterator[str]:
    """Files, links and empty directories of an environment, in an order that is always the same."""
    # both are written by venv-pack, in a form that does not name this directory
    replaced = {"pyvenv.cfg", "bin/activate", "bin/activate.csh", "bin/activate.fish"}
    for root, directories, files in os.walk(prefix):
        directories[:] = sorted(set(directories) - _SKIPPED_DIRECTORIES)
        links = [name for name in directories if os.path.islink(os.path.join(root, name))]
        if not directories and not files:
            yield os.path.relpath(root, prefix)
        for name in sorted([*files, *links]):
            target = os.path.relpath(os.path.join(root, name), prefix)
            if target not in replaced and target != MANIFEST_NAME and not name.endswith("~"):
                yield target


class _Writer:
    """The tar file as venv-pack's packer wants it: the same environment gives the same bytes."""

    def __init__(self, tar: tarfile.TarFile, prefix: Path, description: EnvironmentDescription) -> None:
        self._tar = tar
        self._prefix = prefix
        self._description = description

    def add(self, source: str, target: str) -> None:
        """A file, link or empty directory as it is."""
        status = os.lstat(source)
        if stat.S_ISLNK(status.st_mode):
            self.add_link(source, self._moved(os.readlink(source), target), target)
        elif target == "pyvenv.cfg":
            self.add_bytes(source, self._pyvenv_cfg(Path(source).read_text(encoding="utf-8")), target)
        elif stat.S_ISREG(status.st_mode):
            with open(source, "rb") as stream:
                self._tar.addfile(self._info(source, target), stream)
        elif stat.S_ISDIR(status.st_mode):
            self._tar.addfile(self._info(source, target))
        # a socket or pipe is nothing of an environment

    def add_bytes(self, source: str, content: bytes, target: str) -> None:
        """Other content in place of a file's own."""
        info = self._info(source, target)
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", len(content)
        self._tar.addfile(info, io.BytesIO(content))

    def add_link(self, source: str, link: str, target: str) -> None:
        """A symbolic link to somewhere else."""
        info = self._info(source, target)
        info.linkname = link
        self._tar.addfile(info)

    def add_text(self, target: str, text: str) -> None:
        """A file of our own."""
        info = tarfile.TarInfo(target)
        content = text.encode()
        info.size, info.mode = len(content), 0o644
        self._tar.addfile(info, io.BytesIO(content))

    def _info(self, source: str, target: str) -> tarfile.TarInfo:
        # a second name of one file is stored as a file: the order on disk must not matter
        self._tar.inodes = {}  # type: ignore[attr-defined]
        info = self._tar.gettarinfo(source, target)
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        # whole seconds, as Python compares them: compiled modules stay valid where it is unpacked
        info.mtime = int(info.mtime)
        return info

    def _moved(self, link: str, target: str) -> str:
        """Where a link leads on the nodes."""
        if not os.path.isabs(link):
            return link
        if Path(link).is_relative_to(self._prefix):
            return os.path.relpath(link, (self._prefix / target).parent)
        if self._description.interpreter and target.startswith("bin/python"):
            return self._description.interpreter
        return link

    def _pyvenv_cfg(self, text: str) -> bytes:
        lines = []
        for line in text.splitlines():
            name = line.partition("=")[0].strip().lower()
            if name == "home" and self._description.interpreter:
                line = f"home = {os.path.dirname(self._description.interpreter)}"
            # the others tell how it was made here
            if name not in ("executable", "command"):
                lines.append(line)
        return ("\n".join(lines) + "\n").encode()


def _pack_conda(prefix: Path, output: Path) -> None:
    try:
        conda_pack: Any = importlib.import_module("conda_pack")
    except ImportError as error:
        raise EnvironmentUnusable(
            f"{prefix} is a conda environment and conda-pack is not installed; run: pip install conda-pack"
        ) from error
    try:
        conda_pack.pack(
            prefix=str(prefix), output=str(output), force=True, ignore_editable_packages=True, n_threads=-1
        )
    except Exception as error:
        reason = " ".join(str(error).split())
        raise EnvironmentUnusable(f"conda-pack could not pack {prefix}: {reason}") from error


@contextmanager
def _replacing(output: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``output`` once it is complete."""
    temporary = output.with_name(f".{output.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "wb") as stream:
            yield stream
        os.replace(temporary, output)
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
