"""What of ``~/.m2/settings.xml`` concerns the resolver: the mirror of Maven Central."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: the variable by which Spark's resolver takes another repository in place of Maven Central
CENTRAL_VARIABLE: Final = "DEFAULT_ARTIFACT_REPOSITORY"
#: Maven Central is asked by https: ``external:http:*`` is not about it
_OF_CENTRAL: Final = {"*", "external:*", "central"}


def resolver_environment(environ: Mapping[str, str], settings: Path | None = None) -> dict[str, str]:
    """The environment of a JVM that may resolve packages.

    Parameters
    ----------
    environ : mapping
        To start from; a repository that it names stays.
    settings : Path, optional
        Maven's; default: the user's.
    """
    mirror = central_mirror(settings or Path("~/.m2/settings.xml").expanduser())
    return {**({CENTRAL_VARIABLE: mirror} if mirror else {}), **environ}


def central_mirror(settings: Path) -> str:
    """Address of the first mirror that stands for Maven Central; empty = none, or no readable file."""
    if not settings.is_file():
        return ""
    # a driver that finds no settings does not pay for the import
    from xml.etree import ElementTree

    try:
        root = ElementTree.parse(settings).getroot()
    except (OSError, ElementTree.ParseError):
        return ""
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        of = {part.strip() for part in (mirror.findtext("{*}mirrorOf") or "").split(",")}
        url = (mirror.findtext("{*}url") or "").strip()
        # Maven's own settings block all of http with one whose address is made up
        blocked = (mirror.findtext("{*}blocked") or "").strip().lower() == "true"
        # a variable of Maven's is nothing that the resolver could fill in
        if of & _OF_CENTRAL and "!central" not in of and url and "${" not in url and not blocked:
            return url
    return ""
