"""The file in a body of ``multipart/form-data``, as browsers and Flink's clients send it.

The body lies in a file already; only places of it are looked for, so its size does not matter.
"""

from __future__ import annotations

import mmap
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.rest.framework.errors import RestError

_BOUNDARY: Final = re.compile(r'multipart/form-data\s*;.*?\bboundary="?([^\s";,]{1,70})"?', re.IGNORECASE)
_FILE_NAME: Final = re.compile(rb'^content-disposition\s*:.*?;\s*filename="((?:[^"\\]|\\.)*)"', re.I | re.M)
#: of one part
_MAX_HEAD_BYTES: Final = 4 * 1024
_MAX_PARTS: Final = 16
#: how much is copied at once
_BLOCK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FilePart:
    """Where the one file of a body is."""

    name: str
    start: int
    end: int

    def copy(self, body: Path, target: Path) -> None:
        """Write it to a file that is not there yet, which only its owner may read."""
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with body.open("rb") as source, os.fdopen(descriptor, "wb") as sink:
            source.seek(self.start)
            left = self.end - self.start
            while left > 0:
                block = source.read(min(left, _BLOCK_BYTES))
                sink.write(block)
                left -= len(block)


def boundary_of(content_type: str) -> bytes:
    """What separates the parts.

    Raises
    ------
    RestError
        The body is of another type.
    """
    found = _BOUNDARY.match(content_type.strip())
    if found is None:
        raise RestError(400, "the body must be multipart/form-data with one file in it")
    return found[1].encode("latin-1", "replace")


def find_file(body: Path, boundary: bytes) -> FilePart:
    """The one file in a body.

    Raises
    ------
    RestError
        The body is not well formed, or there is not exactly one.
    """
    if body.stat().st_size == 0:
        raise RestError(400, "Exactly 1 file must be sent, received 0.")
    with body.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        parts = _parts(content, boundary)
    if len(parts) != 1:
        # Flink's words
        raise RestError(400, f"Exactly 1 file must be sent, received {len(parts)}.")
    return parts[0]


def _parts(content: mmap.mmap, boundary: bytes) -> list[FilePart]:
    delimiter = b"--" + boundary
    if content[: len(delimiter)] != delimiter:
        raise _broken("it does not begin with its boundary")
    found: list[FilePart] = []
    at = len(delimiter)
    for _ in range(_MAX_PARTS):
        if content[at : at + 2] == b"--":
            return found
        head_end = content.find(b"\r\n\r\n", at, at + _MAX_HEAD_BYTES)
        if content[at : at + 2] != b"\r\n" or head_end < 0:
            raise _broken("a part has no head")
        end = content.find(b"\r\n" + delimiter, head_end + 2)
        if end < 0:
            raise _broken("it has no end")
        named = _FILE_NAME.search(content[at + 2 : head_end])
        if named is not None:
            name = re.sub(rb"\\(.)", rb"\1", named[1]).decode("utf-8", "replace")
            found.append(FilePart(name, head_end + 4, max(end, head_end + 4)))
        at = end + 2 + len(delimiter)
    raise _broken(f"it has more than {_MAX_PARTS} parts")


def _broken(what: str) -> RestError:
    return RestError(400, f"the body is no multipart/form-data: {what}")
