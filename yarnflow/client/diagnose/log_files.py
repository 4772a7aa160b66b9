"""Which log files of a container belong together, and in which order they are read.

What is in ``a.out`` goes on from ``a.out.1``, and that from ``a.out.2``; a rotation whose process was killed
leaves a copy (:mod:`yarnflow.process.output.series`).  YARN lists and collects files by name.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator
from types import TracebackType
from typing import Final

from yarnflow.process.output.series import is_begun_copy, original

#: YARN's own helpers in a container's log directory; the first has the container's environment
HIDDEN_FILES: Final = frozenset({"launch_container.sh", "directory.info", "prelaunch.out"})
_ROTATED: Final = re.compile(r"(.+)\.(\d+)")
#: of a container's logs, from which on they are on disk
_IN_MEMORY_BYTES: Final = 8 * 1024 * 1024

#: name of a file, and how many times it was rotated; 0 is the one that is written to
Place = tuple[str, int]


def shown_files(names: Collection[str]) -> dict[str, Place]:
    """Files that are shown → their places, by name, each behind those it was rotated to.

    A copy that a killed process left is in the place that its rotation would have given it.
    """
    copied = {original(name): name for name in names if original(name)}
    taken = {_place(name) for name in names}

    def place(name: str) -> Place:
        if (of := original(name)) is not None:
            return of, 1
        file, number = _place(name)
        # the rotation moves them up to the first gap
        moves = file in copied and number > 0 and all((file, n) in taken for n in range(1, number))
        return file, number + moves

    places = {name: place(name) for name in names if name not in HIDDEN_FILES and not is_begun_copy(name)}
    return dict(sorted(places.items(), key=lambda item: (item[1][0], -item[1][1])))


def being_rotated(names: Collection[str]) -> frozenset[str]:
    """Files of which there is a copy that will be in the place of another one."""
    return frozenset(of for name in names if (of := original(name)))


def _place(name: str) -> Place:
    found = _ROTATED.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, 0)


class CollectedFiles:
    """Log files of one container, which come in another order than they are read; closed after use."""

    def __init__(self) -> None:
        self._content = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)
        #: file → beginnings and ends of what there is of it
        self._parts: dict[str, list[tuple[int, int]]] = {}
        self._size = 0

    def __enter__(self) -> CollectedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._content.close()

    def add(self, name: str, line: str) -> None:
        """The next line of a file."""
        begin = self._size
        self._size += self._content.write(line.encode("utf-8", "replace"))
        parts = self._parts.setdefault(name, [])
        if parts and parts[-1][1] == begin:
            begin = parts.pop()[0]
        parts.append((begin, self._size))

    def lengths(self) -> dict[str, int]:
        """File → bytes."""
        return {name: sum(end - begin for begin, end in parts) for name, parts in self._parts.items()}

    def lines(self, name: str) -> Iterator[str]:
        """All lines of a file, with their ends."""
        for begin, end in self._parts[name]:
            self._content.seek(begin)
            while begin < end:
                line = self._content.readline()
                begin += len(line)
                yield line.decode("utf-8", "replace")
