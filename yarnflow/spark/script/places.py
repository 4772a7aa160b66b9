"""Names for the queries of a script that gives them none.

A query is told from others by its name, else by its checkpoint location, else by the place in the program
where it is started: the number of the call of ``start()`` or ``toTable()`` in the text, so that changes
between such calls do not matter.  The name says place and location, and is the same in every run.  Pure, but
for reading the program's own files.  Flink counterpart: the ids of operators without ``uid()``.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import re
import threading
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Final

_STARTS: Final = ("start", "toTable")
_DIGITS: Final = 6
_NAME: Final = re.compile(rf"((?:\w+\.)*(?:start|call)-\d+)(?:-[0-9a-f]{{{_DIGITS}}}|\.\d+)?")
#: started by no line of the program, such as a thread of a library
_NOWHERE: Final = "start-0"


class CallPlaces:
    """Where in a program something is called.

    Parameters
    ----------
    root : Path
        Directory of the program's files.
    program : Path
        Its main file; places in it do not name it, so that it may be renamed.
    """

    def __init__(self, root: Path, program: Path) -> None:
        self._root = str(root)
        self._program = str(program)

    def place(self, frame: FrameType | None) -> str:
        """``start-2``: the second such call of the main file; ``helpers.start-1``: of a module.

        Parameters
        ----------
        frame : frame or None
            Of the call; frames of libraries between it and the program are skipped.
        """
        while frame is not None and not frame.f_code.co_filename.startswith(f"{self._root}/"):
            frame = frame.f_back
        if frame is None:
            return _NOWHERE
        file = frame.f_code.co_filename
        _, line, _, column = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
        # a process runs several jobs, which may have files of the same name
        linecache.checkcache(file)
        text = "".join(linecache.getlines(file, frame.f_globals))
        found = _numbered_calls(text).get((line or 0, column or 0), f"call-{frame.f_lineno}")
        return found if file == self._program else f"{Path(file).stem}.{found}"


class QueryNames:
    """Names of one run of a program.  Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}

    def name(self, place: str, location: str) -> str:
        """Of a query that is started at a place.

        Parameters
        ----------
        location : str
            Where the program has it keep its checkpoint (a URI); empty = nowhere, and each call is another
            query, as it is for Spark.
        """
        if location:
            return f"{place}-{hashlib.sha256(location.encode()).hexdigest()[:_DIGITS]}"
        with self._lock:
            count = self._counts[place] = self._counts.get(place, 0) + 1
        return place if count == 1 else f"{place}.{count}"


def place_of(name: str) -> str:
    """The place in a name of :class:`QueryNames`; empty = the program gave the name."""
    found = _NAME.fullmatch(name)
    return found[1] if found else ""


@cache
def _numbered_calls(text: str) -> dict[tuple[int, int], str]:
    """Where a call ends, line and column → what it is called; two calls never end at one place."""
    calls = sorted(_calls(text), key=_end)
    starts = [call for call in calls if _method(call) in _STARTS]
    others = {_end(call): f"call-{number}" for number, call in enumerate(calls, 1)}
    return others | {_end(call): f"start-{number}" for number, call in enumerate(starts, 1)}


def _calls(text: str) -> Iterator[ast.Call]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _end(call: ast.Call) -> tuple[int, int]:
    return call.end_lineno or 0, call.end_col_offset or 0
