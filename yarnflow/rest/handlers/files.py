"""Parts of log files: never more than a bound at once, and never a file of another directory.

What users' code has printed is shown as it is; values that look like secrets in our own lines are hidden
where they are written.
"""

from __future__ import annotations

import re
from typing import Final

from yarnflow.core.resources.diagnostics import MAX_PART_BYTES, ProcessDiagnostics
from yarnflow.errors import FileMissing
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call, TextFile

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def read_file(diagnostics: ProcessDiagnostics, name: str, call: Call) -> TextFile:
    """What was asked for of a file; without a range its end, as much of it as one answer may have.

    Parameters
    ----------
    name : str
        Empty = the process's own log.

    Raises
    ------
    FileMissing
        There is none of this name.
    RestError
        The range is not in the file.
    """
    asked = _RANGE.fullmatch(call.headers.get("range", ""))
    if asked is None or asked[0] == "bytes=-":
        part = diagnostics.read_log(name, -MAX_PART_BYTES, MAX_PART_BYTES)
        whole = part.offset == 0
        return TextFile(name, part.content, None if whole else (part.offset, part.size_bytes))
    first, last = asked[1], asked[2]
    if first:
        length = int(last) - int(first) + 1 if last else MAX_PART_BYTES
        if length <= 0:
            raise RestError(416, f"the range {asked[0]} is empty")
        part = diagnostics.read_log(name, int(first), min(length, MAX_PART_BYTES))
    elif not int(last):
        raise RestError(416, f"the range {asked[0]} is empty")
    else:
        part = diagnostics.read_log(name, -min(int(last), MAX_PART_BYTES), MAX_PART_BYTES)
    if not first and not part.size_bytes:
        # as if no range had been asked for: browsers complain of every 416
        return TextFile(name, b"")
    if not part.content:
        raise RestError(416, f"the file has {part.size_bytes} bytes; the range {asked[0]} is not in it")
    return TextFile(name, part.content, (part.offset, part.size_bytes))


def stdout_name(diagnostics: ProcessDiagnostics) -> str:
    """The file that a process's standard output goes to.

    Raises
    ------
    FileMissing
        Its output goes elsewhere.
    """
    for file in diagnostics.log_files():
        if file.own_output:
            return file.name
    raise FileMissing("this process has no file of its standard output; see its log and the list of logs")
