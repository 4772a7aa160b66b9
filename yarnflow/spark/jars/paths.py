"""Paths that Spark can read in its lists of jars."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from yarnflow.errors import JarError

#: Spark reads some paths of jars as lists and some as URIs
_NOT_IN_PATHS: Final = re.compile(r"[\s,;%#?]")


def check_path(path: Path, what: str, advice: str) -> None:
    """Refuse a path that Spark would take for another.

    Parameters
    ----------
    what, advice : str
        What the path is of, and what to do; for the message.

    Raises
    ------
    JarError
        It has a blank or another sign of lists or URIs.
    """
    unreadable = _NOT_IN_PATHS.search(str(path))
    if unreadable is not None:
        raise JarError(f"{what}: Spark cannot read a path with {unreadable[0]!r}; {advice}")
