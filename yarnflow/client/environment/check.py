"""What is in a Python environment, and whether containers can work with it.

Looks at directories and archives from outside: no interpreter is started.  An archive made by
:mod:`yarnflow.client.environment.pack` says what is in it with its first file; others are read
through.  What only the nodes know, such as whether the base Python is there, is found out by
``yarnflow doctor``, which runs the environment in a container.
"""

from __future__ import annotations

import configparser
import json
import os
import platform
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import metadata
from pathlib import Path
from typing import Final

from yarnflow.errors import EnvironmentUnusable

MANIFEST_NAME: Final = "yarnflow-environment.json"
#: distributions that the processes in containers import; a program beside the JobManager runs the command
REQUIRED: Final = (
    "click",
    "cloudpickle",
    "hdfs",
    "kazoo",
    "msgspec",
    "pandas",
    "protobuf",
    "pyarrow",
    "pyspark",
    "pyyaml",
    "requests",
    "rich",
    "skein",
    "sqlglot",
    "thrift",
)
#: where drivers and executors of another version could not talk to each other or read the same plan
SAME_AS_CLIENT: Final = ("pyspark",)

_DIST_INFO: Final = re.compile(
    r"^(?:\./)?(?P<above>.*?)lib/python(?P<python>\d+\.\d+)/site-packages/"
    r"(?P<name>[^/]+?)-(?P<version>[^/-]+)\.dist-info/METADATA$"
)
_INTERPRETER: Final = re.compile(r"^(?:\./)?(?P<above>.*?)bin/python$")


@dataclass(frozen=True, slots=True)
class EnvironmentDescription:
    """What an environment is made of."""

    #: ``venv``, ``conda``, ``python`` (an installation) or ``unknown`` (an archive of somebody else)
    kind: str
    #: ``3.11.7``; ``3.11`` where nobody says more; empty = unknown
    python_version: str
    #: the base interpreter its ``bin/python`` links to, which the nodes need; empty = it has its own
    interpreter: str = ""
    #: normalised name → version
    distributions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    #: fingerprint of what it was packed from
    key: str = ""
    #: distributions of the base Python count as well, which are not in an archive
    uses_system_packages: bool = False

    def with_key(self, key: str, python_prefix: str) -> EnvironmentDescription:
        """The description for an archive: of this key, for nodes with Python in another place."""
        interpreter = self.interpreter
        if python_prefix and interpreter:
            minor = ".".join(self.python_version.split(".")[:2])
            interpreter = os.path.join(python_prefix, "bin", f"python{minor}")
        return replace(self, key=key, interpreter=interpreter)

    def to_json(self) -> str:
        """Text for an archive's manifest."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> EnvironmentDescription:
        """Read a manifest.  Raises ValueError or TypeError for anything else."""
        content = json.loads(text)
        known = {item.name for item in fields(cls)}
        return cls(**{name: value for name, value in dict(content).items() if name in known})


@dataclass(frozen=True, slots=True)
class EnvironmentFinding:
    """One thing that was looked at."""

    ok: bool
    text: str


def describe(path: Path) -> EnvironmentDescription:
    """Describe a directory or an archive.  Raises EnvironmentUnusable."""
    if path.is_dir():
        return describe_directory(path)
    if path.is_file():
        return describe_archive(path)
    raise EnvironmentUnusable(f"{path} does not exist; expected an environment's directory or its archive")


def examine(description: EnvironmentDescription) -> list[EnvironmentFinding]:
    """Compare an environment with what containers and this client need."""
    return [
        _python(description),
        *(_distribution(description, name) for name in REQUIRED),
        *_machine(description),
    ]


def require_usable(path: Path) -> EnvironmentDescription:
    """Check an environment before it is shipped.

    Raises
    ------
    EnvironmentUnusable
        The message has all that is wrong with it.
    """
    description = describe(path)
    wrong = [finding.text for finding in examine(description) if not finding.ok]
    if wrong:
        raise EnvironmentUnusable(f"{path} cannot be used in containers: {'; '.join(wrong)}")
    return description


def normalized_name(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


# --- directories ---------------------------------------------------------------


def site_packages(prefix: Path) -> Path:
    """Where an environment's packages are.  Raises EnvironmentUnusable."""
    found = sorted(prefix.glob("lib/python3*/site-packages"))
    if len(found) != 1:
        raise EnvironmentUnusable(
            f"{prefix} is not a Python environment: it has {len(found)} directories "
            "lib/python3*/site-packages where one is expected"
        )
    return found[0]


def describe_directory(prefix: Path) -> EnvironmentDescription:
    """Describe an environment or a Python installation in a directory."""
    if not prefix.is_dir():
        raise EnvironmentUnusable(f"{prefix} is not a directory")
    packages = site_packages(prefix)
    program = prefix / "bin" / "python"
    if not os.access(program, os.X_OK):
        raise EnvironmentUnusable(f"{prefix} has no bin/python that can be run")
    settings = _pyvenv_cfg(prefix)
    minor = packages.parent.name.removeprefix("python")
    if settings is not None:
        kind = "venv"
        version = settings.get("version") or settings.get("version_info", "")
        version = ".".join(version.split(".")[:3]) or minor
    elif (prefix / "conda-meta").is_dir():
        kind, version = "conda", _conda_python(prefix) or minor
    else:
        kind, version = "python", minor
    resolved = program.resolve()
    system = (settings or {}).get("include-system-site-packages", "")
    return EnvironmentDescription(
        kind=kind,
        python_version=version,
        interpreter="" if resolved.is_relative_to(prefix.resolve()) else str(resolved),
        distributions=_installed(packages),
        machine=platform.machine(),
        uses_system_packages=system.lower() == "true",
    )


def _installed(packages: Path) -> dict[str, str]:
    found = {}
    for distribution in metadata.distributions(path=[str(packages)]):
        name = distribution.metadata["Name"]
        if name:
            found[normalized_name(name)] = distribution.version
    # whatever is installed of us: a client ships its own
    found.pop("yarnflow", None)
    return dict(sorted(found.items()))


def _pyvenv_cfg(prefix: Path) -> Mapping[str, str] | None:
    try:
        text = (prefix / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return None
    parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
    try:
        parser.read_string("[venv]\n" + text)
    except configparser.Error as error:
        reason = " ".join(str(error).split())
        raise EnvironmentUnusable(f"{prefix / 'pyvenv.cfg'} cannot be read: {reason}") from error
    return parser["venv"]


def _conda_python(prefix: Path) -> str:
    for path in (prefix / "conda-meta").glob("python-3*.json"):
        return path.name.split("-")[1]
    return ""


# --- archives ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    link: str
    content: bytes | None


def describe_archive(path: Path) -> EnvironmentDescription:
    """Describe an archive without unpacking it.

    Raises
    ------
    EnvironmentUnusable
        Not an archive YARN could unpack, or not one of an environment.
    """
    try:
        return _described(path, _entries(path))
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise EnvironmentUnusable(
            f"{path} cannot be read as an archive: {' '.join(str(error).split()) or type(error).__name__}; "
            "make one with `yarnflow env pack`"
        ) from error


def _entries(path: Path) -> Iterator[_Entry]:
    """Names in an archive, with the content of the manifest only."""
    if path.name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield _Entry(name, "", archive.read(name) if name == MANIFEST_NAME else None)
        return
    if not path.name.endswith((".tar.gz", ".tgz", ".tar")):
        raise EnvironmentUnusable(f"{path}: YARN unpacks .tar.gz, .tgz, .tar and .zip only")
    with tarfile.open(path, "r|*") as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.name == MANIFEST_NAME else None
            link = member.linkname if member.issym() else ""
            yield _Entry(member.name, link, stream.read() if stream else None)


def _described(path: Path, entries: Iterable[_Entry]) -> EnvironmentDescription:
    distributions: dict[str, str] = {}
    links: dict[str, str] = {}
    above: str | None = None
    python = ""
    kind = "unknown"
    for entry in entries:
        if entry.content is not None:
            try:
                return EnvironmentDescription.from_json(entry.content.decode())
            except (ValueError, TypeError) as error:
                raise EnvironmentUnusable(
                    f"{path}: its {MANIFEST_NAME} is damaged; make it again with `yarnflow env pack --force`"
                ) from error
        name = entry.name.removeprefix("./")
        if match := _DIST_INFO.match(entry.name):
            distributions[normalized_name(match["name"])] = match["version"]
            python = match["python"]
        elif match := _INTERPRETER.match(entry.name):
            above = match["above"] if above is None else min(above, match["above"], key=len)
        elif name.startswith("conda-meta/"):
            kind = "conda"
        if entry.link and "bin/python" in name:
            links[os.path.basename(name)] = entry.link
    if above is None:
        raise EnvironmentUnusable(
            f"{path} has no bin/python: it is not an archive of a Python environment; "
            "make one with `yarnflow env pack`"
        )
    if above:
        raise EnvironmentUnusable(
            f"{path} has its environment in the directory {above}, where no container looks; archive the "
            "content of the environment's directory, or make it with `yarnflow env pack`"
        )
    distributions.pop("yarnflow", None)
    return EnvironmentDescription(kind, python, _outside_link(links), dict(sorted(distributions.items())))


def _outside_link(links: Mapping[str, str]) -> str:
    """The interpreter outside of the archive that ``bin/python`` leads to."""
    name = "python"
    for _ in range(len(links)):
        link = links.get(name, "")
        if os.path.isabs(link):
            return link
        name = os.path.basename(link)
    return ""


# --- what is needed ------------------------------------------------------------


def _python(description: EnvironmentDescription) -> EnvironmentFinding:
    version = description.python_version
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if not version:
        return EnvironmentFinding(False, "its Python version cannot be told: no lib/python3*/site-packages")
    if ".".join(version.split(".")[:2]) != own:
        return EnvironmentFinding(
            False,
            f"Python {version}, but the client runs {platform.python_version()}, and functions do not travel "
            f"between the two; submit with Python {version} or make an environment of {own}",
        )
    return EnvironmentFinding(True, f"Python {version}")


def _distribution(description: EnvironmentDescription, name: str) -> EnvironmentFinding:
    version = description.distributions.get(name)
    if version is None:
        where = "the environment itself (it sees system packages, which do not travel)"
        place = where if description.uses_system_packages else "it"
        return EnvironmentFinding(False, f"{name} is missing; pip install {_wanted(name)} into {place}")
    own = _own_version(name)
    if name in SAME_AS_CLIENT and own and own.split(".")[:2] != version.split(".")[:2]:
        return EnvironmentFinding(
            False, f"{name} {version}, but the client has {own}; pip install {name}=={own} into it"
        )
    return EnvironmentFinding(True, f"{name} {version}")


def _machine(description: EnvironmentDescription) -> list[EnvironmentFinding]:
    return [EnvironmentFinding(True, f"made for {description.machine}")] if description.machine else []


def _wanted(name: str) -> str:
    own = _own_version(name)
    return f"{name}=={own}" if own else name


def _own_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
