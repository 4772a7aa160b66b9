"""Paths of file systems as Hadoop reads them.

Decides that nothing in a path is special: no ``%`` is decoded, and neither ``#`` nor ``?`` ends it.
Python's ``urllib`` and ``Path.as_uri`` see that differently.  Flink counterpart:
``org.apache.flink.core.fs.Path``.
"""

from __future__ import annotations

from pathlib import Path


def split_uri(text: str) -> tuple[str, str, str]:
    """Scheme, authority and path; what is not there is empty.

    >>> split_uri("hdfs://nn:8020/a b#1")
    ('hdfs', 'nn:8020', '/a b#1')
    >>> split_uri("/tmp/10:30")
    ('', '', '/tmp/10:30')
    """
    scheme, colon, rest = text.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "", text
    if not rest.startswith("//"):
        return scheme.lower(), "", rest
    authority, slash, path = rest[2:].partition("/")
    return scheme.lower(), authority, slash + path


def file_uri(path: Path) -> str:
    """An absolute path of this machine."""
    return f"file://{path}"
