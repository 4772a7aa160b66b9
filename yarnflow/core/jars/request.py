"""What the options of a job ask for, and how it is noted that a part of it has been brought.

Options reach a job from several sides, one after the other: configuration, command line, program, the
program's session builder in the driver.  Each side brings what is new and notes in the options themselves
what became of it, so the next one, in another process or container, finds only what is left.  A note counts
as long as the jars that it names are in ``spark.jars``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from yarnflow.config.options import job
from yarnflow.core.jars.coordinates import MavenCoordinate, check_names, check_together

SPARK_JARS: Final = "spark.jars"
PACKAGES: Final = "spark.jars.packages"
REPOSITORIES: Final = "spark.jars.repositories"
EXCLUDES: Final = "spark.jars.excludes"
IVY_SETTINGS: Final = "spark.jars.ivySettings"
IVY_DIRECTORY: Final = "spark.jars.ivy"
#: a document of what ``spark.jars`` has already, see :class:`_Notes`
BROUGHT: Final = "spark.yarnflow.jars.brought"
#: what a program may set in its own session builder
JAR_KEYS: Final = (SPARK_JARS, PACKAGES, REPOSITORIES, EXCLUDES, IVY_SETTINGS, IVY_DIRECTORY)
#: of two sides both count
_LISTS: Final = (
    *(SPARK_JARS, PACKAGES, REPOSITORIES, EXCLUDES, job.PIPELINE_JARS.key, job.PIPELINE_CLASSPATHS.key),
)


@dataclass(frozen=True, slots=True)
class _Notes:
    """What was asked for → the addresses that it became."""

    #: paths and URIs; a jar that was left out has no address
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: comma lists of coordinates that were resolved together
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: address of a jar that may change in its place → what tells one content from another
    contents: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Notes:
        raw = json.loads(options.get(BROUGHT) or "{}")
        files, packages = (
            {asked: tuple(addresses) for asked, addresses in raw.get(name, {}).items()}
            for name in ("files", "packages")
        )
        return cls(files, packages, raw.get("contents", {}))

    def __or__(self, other: _Notes) -> _Notes:
        return _Notes(
            {**self.files, **other.files},
            {**self.packages, **other.packages},
            {**self.contents, **other.contents},
        )

    def moved(self, places: Mapping[str, str]) -> _Notes:
        """With other addresses; copies do not change any more."""
        def copies(notes: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
            return {asked: tuple(places.get(jar, jar) for jar in jars) for asked, jars in notes.items()}

        # the next side may name a jar by the address that this one gave it
        files = {**{old: (new,) for old, new in places.items()}, **copies(self.files)}
        contents = {jar: text for jar, text in self.contents.items() if jar not in places}
        return _Notes(files, copies(self.packages), contents)

    def there(self, options: Mapping[str, str]) -> set[str]:
        """All that was brought, as it was asked for and as it is called now."""
        jars = set(jars_of(options))
        found = set[str]()
        for notes in (self.files, self.packages):
            for asked, addresses in notes.items():
                if jars.issuperset(addresses):
                    found.update(asked.split(","), addresses)
        return found

    def text(self) -> str:
        """Empty if there are none."""
        notes = {"files": self.files, "packages": self.packages, "contents": self.contents}
        kept = {name: mapping for name, mapping in notes.items() if mapping}
        return json.dumps(kept, sort_keys=True, ensure_ascii=False) if kept else ""


@dataclass(frozen=True, slots=True)
class JarRequest:
    """Jars that are to be brought."""

    #: paths and URIs
    files: tuple[str, ...] = ()
    #: URIs that every machine can read; nothing is copied
    class_paths: tuple[str, ...] = ()
    packages: tuple[MavenCoordinate, ...] = ()
    #: URIs, beside Maven Central
    repositories: tuple[str, ...] = ()
    #: ``group:artifact`` of what packages depend on and is left out
    excludes: tuple[str, ...] = ()
    #: path of a file; empty = none
    ivy_settings: str = ""
    #: path of a directory; empty = one of ours
    ivy_directory: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> JarRequest:
        """What is left to bring.

        Raises
        ------
        JarError
            A coordinate of another form, or packages that cannot go together: also with what was brought.
        """
        brought = _Notes.of(options).there(options)
        packages = _packages(options)
        check_together(packages, ())
        # of two options that name one file it is one
        files = (*_listed(options, job.PIPELINE_JARS.key), *_listed(options, SPARK_JARS))
        request = cls(
            files=tuple(dict.fromkeys(files)),
            class_paths=tuple(_listed(options, job.PIPELINE_CLASSPATHS.key)),
            packages=packages,
            repositories=tuple(_listed(options, REPOSITORIES)),
            excludes=tuple(_listed(options, EXCLUDES)),
            ivy_settings=options.get(IVY_SETTINGS, "").strip(),
            ivy_directory=options.get(IVY_DIRECTORY, "").strip(),
        )
        return replace(
            request,
            files=tuple(file for file in request.files if file not in brought),
            class_paths=tuple(path for path in request.class_paths if path not in brought),
            packages=tuple(package for package in packages if str(package) not in brought),
        )

    @property
    def empty(self) -> bool:
        """Nothing is to be brought."""
        return not (self.files or self.class_paths or self.packages)

    def key(self, ivy_settings_text: str = "") -> str:
        """Changes whenever other packages would be found: 64 hexadecimal digits.

        Parameters
        ----------
        ivy_settings_text : str
            Content of the file :attr:`ivy_settings`.
        """
        parts = [
            sorted(map(str, self.packages)),
            # the first repository that has a package gives it
            self.repositories,
            sorted(self.excludes),
            ivy_settings_text,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def check_files(options: Mapping[str, str], found: Mapping[str, Sequence[str]]) -> None:
    """Refuse jars that cannot go together with each other, with packages and with what was brought.

    Parameters
    ----------
    found : mapping of str to sequence of str
        Jars as they are asked for → their addresses, see :func:`with_jars`; none of a jar that is left out.

    Raises
    ------
    JarError
        See :func:`yarnflow.core.jars.coordinates.check_together`.
    """
    before = _Notes.of(options).files
    named = (address for addresses in (*before.values(), *found.values()) for address in addresses)
    check_together(_packages(options), dict.fromkeys(named))


def with_jars(
    options: Mapping[str, str],
    files: Mapping[str, Sequence[str]],
    packages: Sequence[MavenCoordinate] = (),
    resolved: Sequence[str] = (),
    contents: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The options once what they ask for has been brought.

    Parameters
    ----------
    files : mapping of str to sequence of str
        A jar as it is asked for, path or URI → where it is: several places of a pattern, none of a jar that
        is left out.
    packages : sequence of MavenCoordinate
        Those that were resolved together.
    resolved : sequence of str
        Where the jars are that came of it.
    contents : mapping of str to str, optional
        Address of a jar that may change in its place → a text that changes with its content.

    Raises
    ------
    JarError
        Two jars of one name, which executors could not keep apart.
    """
    found = {asked: tuple(addresses) for asked, addresses in files.items()}
    together = {",".join(map(str, packages)): tuple(resolved)} if packages else {}
    notes = _Notes.of(options) | _Notes(found, together, contents or {})
    there = [jar for jar in jars_of(options) if jar not in found]
    jars = (*there, *(address for addresses in found.values() for address in addresses), *resolved)
    check_names(dict.fromkeys(jars))
    return {**options, SPARK_JARS: _joined(jars), BROUGHT: notes.text()}


def moved(options: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
    """The options once jars have been copied to where the cluster can read them.

    Parameters
    ----------
    places : mapping of str to str
        URI that is among ``spark.jars`` → URI of the copy.
    """
    jars = [places.get(jar, jar) for jar in jars_of(options)]
    return {**options, SPARK_JARS: _joined(jars), BROUGHT: _Notes.of(options).moved(places).text()}


def layered(below: Mapping[str, str], above: Mapping[str, str]) -> dict[str, str]:
    """Options over others; of jars and packages those of both sides are there.

    A session's jars are there for all of its jobs, and those of the command line for a program that sets
    ``spark.jars`` itself.
    """
    options = {**below, **above}
    notes = _Notes.of(below) | _Notes.of(above)
    if notes != _Notes():
        options[BROUGHT] = notes.text()
    for key in _LISTS:
        if key in below and key in above:
            options[key] = _joined((*_listed(below, key), *_listed(above, key)))
    if SPARK_JARS in options:
        # what was brought is there under its address
        jars = jars_of(options)
        brought = {asked for asked, found in notes.files.items() if set(found) <= set(jars) - {asked}}
        options[SPARK_JARS] = _joined(jar for jar in jars if jar not in brought)
    return options


def merged(options: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Options with those that a program sets itself: lists of both are joined.

    Parameters
    ----------
    more : mapping
        Options that are not about jars are passed over.
    """
    return layered(options, {key: text for key, text in more.items() if key in (*JAR_KEYS, *_LISTS)})


def jars_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """All of ``spark.jars``."""
    return tuple(_listed(options, SPARK_JARS))


def _packages(options: Mapping[str, str]) -> tuple[MavenCoordinate, ...]:
    return tuple(MavenCoordinate.parse(text) for text in _listed(options, PACKAGES))


def _listed(options: Mapping[str, str], key: str) -> list[str]:
    return [item for item in (part.strip() for part in re.split("[;,]", options.get(key, ""))) if item]


def _joined(items: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(items))
