"""Packages by their Maven coordinates, and what cannot go together.

A job has one class path, on which the first of two versions hides the other, and Scala's libraries work
with one binary version of Scala only.  Both show late and far from their cause, so they are refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NoReturn

from yarnflow.config.secrets import masked_urls
from yarnflow.core.uris import split_uri
from yarnflow.errors import JarError

#: binary version of the Scala that Spark is made with
SCALA_VERSION: Final = "2.13"
#: ``name_2.12``, as artifacts and jars of Scala end before their version
_SCALA_SUFFIX: Final = re.compile(r"_(2\.1\d)(?=[-:.]|$)")
_PART: Final = re.compile(r"[A-Za-z0-9_.+$-]+")
#: after the version may be a classifier, or a qualifier such as ``-jre``, which does not make it another one
_JAR_NAME: Final = re.compile(r"(?P<artifact>.+)-(?P<version>\d[\w.+]*)(?:-[A-Za-z][\w.+-]*)?\.jar")


@dataclass(frozen=True, slots=True, order=True)
class MavenCoordinate:
    """One version of one artifact."""

    group: str
    artifact: str
    version: str

    @classmethod
    def parse(cls, text: str) -> MavenCoordinate:
        """From ``group:artifact:version``; Spark allows ``group/artifact:version`` as well.

        Raises
        ------
        JarError
            It has another form.
        """
        parts = [part.strip() for part in text.replace("/", ":").split(":")]
        if len(parts) != 3 or not all(_PART.fullmatch(part) for part in parts):
            raise JarError(f"package {text!r} is not of the form group:artifact:version; correct it")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def check_together(packages: Iterable[MavenCoordinate], files: Iterable[str]) -> None:
    """Refuse what cannot be on one class path with Spark.

    Parameters
    ----------
    packages : iterable of MavenCoordinate
    files : iterable of str
        Paths or addresses of jars; their names tell artifact and version.

    Raises
    ------
    JarError
        Two versions of one artifact, or something made for another Scala.
    """
    asked: dict[str, tuple[str, str]] = {}
    of_artifact: dict[str, dict[str, str]] = {}
    for package in packages:
        _check_scala(package.artifact, f"package {package}")
        _note(asked, f"{package.group}:{package.artifact}", package.version, str(package))
        # a name of a file has no qualifier
        versions = of_artifact.setdefault(package.artifact, {})
        versions.setdefault(package.version.partition("-")[0], str(package))
    for file in files:
        name = _name(file)
        _check_scala(name, masked_urls(f"jar {file}"))
        match = _JAR_NAME.fullmatch(name)
        if match is None:
            continue
        # a file does not tell its group: it may be any package of its name
        versions = of_artifact.get(match["artifact"], {})
        if versions and match["version"] not in versions:
            _refuse(match["artifact"], next(iter(versions.values())), file)
        _note(asked, match["artifact"], match["version"], file)


def check_names(jars: Iterable[str]) -> None:
    """Refuse jars of one name, of which an executor would have only one.

    Parameters
    ----------
    jars : iterable of str
        Addresses.

    Raises
    ------
    JarError
        Two have one name.
    """
    names: dict[str, str] = {}
    for jar in jars:
        other = names.setdefault(_name(jar), jar)
        if _place(other) != _place(jar):
            said = f"two jars are called {_name(jar)}, {other} and {jar}; rename one of them"
            raise JarError(masked_urls(said))


def _name(jar: str) -> str:
    return jar.rpartition("/")[2]


def _place(jar: str) -> tuple[str, str, str]:
    """The same for one file that is shipped and that all machines have as well."""
    scheme, authority, path = split_uri(jar)
    return ("", "", path) if scheme in ("file", "local") else (scheme, authority, path)


def _note(asked: dict[str, tuple[str, str]], name: str, version: str, said: str) -> None:
    other_version, other = asked.setdefault(name, (version, said))
    if other_version != version:
        _refuse(name, other, said)


def _refuse(name: str, one: str, other: str) -> NoReturn:
    said = f"two versions of {name} are asked for, {one} and {other}; keep one of them"
    raise JarError(masked_urls(said))


def _check_scala(name: str, what: str) -> None:
    match = _SCALA_SUFFIX.search(name)
    if match is not None and match[1] != SCALA_VERSION:
        wanted = _SCALA_SUFFIX.sub(f"_{SCALA_VERSION}", name)
        raise JarError(
            f"{what} is made for Scala {match[1]}, and Spark here is made with {SCALA_VERSION}; "
            f"take {wanted} instead"
        )
