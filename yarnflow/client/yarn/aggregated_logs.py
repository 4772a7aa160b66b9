"""Logs that YARN has collected on HDFS, by the command ``yarn logs``.

The command knows every layout and format those files ever had, and is there wherever an
application can be submitted.  What it prints is read as it comes: logs may be large.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from yarnflow.errors import ApplicationNotFound, YarnUnavailable

_CONTAINER: Final = re.compile(r"^Container: (\S+) on ")
_LOG_TYPE: Final = "LogType:"
_END: Final = "End of LogType:"
#: the second one is that of versions before 3
_CONTENTS: Final = ("LogContents:", "Log Contents:")


@dataclass(frozen=True, slots=True)
class CollectedLine:
    """One line of a log file, with its end."""

    container_id: str
    file: str
    line: str


def collected_lines(application_id: str, user: str, environ: Mapping[str, str]) -> Iterator[CollectedLine]:
    """All lines of an ended application's logs, file by file.

    Raises
    ------
    YarnUnavailable
        The command cannot be run; or it failed, after the lines it had printed.
    ApplicationNotFound
        There are no logs on HDFS.
    """
    program = shutil.which("yarn", path=environ.get("PATH", os.defpath))
    if program is None:
        raise YarnUnavailable(
            "the command yarn, which reads logs on HDFS, is not on the path; install Hadoop's client"
        )
    arguments = [program, "logs", "-applicationId", application_id, "-appOwner", user]
    found = False
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=dict(environ),
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise YarnUnavailable(f"{program} cannot be run: {error.strerror}") from error
        assert process.stdout is not None
        try:
            for line in parse_lines(process.stdout):
                found = True
                yield line
            status = process.wait()
        finally:
            process.stdout.close()
            if process.poll() is None:
                process.kill()
                process.wait()
        if not found:
            said.seek(0)
            raise ApplicationNotFound(
                f"YARN has no logs of {application_id} of user {user} on HDFS: {_reason(said.read())}"
            )
        if status != 0:
            said.seek(0)
            raise YarnUnavailable(
                f"the logs of {application_id} are not complete: {program} logs ended with status {status}: "
                f"{_reason(said.read())}; try again"
            )


def parse_lines(output: Iterable[str]) -> Iterator[CollectedLine]:
    """What ``yarn logs`` prints → the lines of each file."""
    container_id = file = ""
    inside = False
    held: str | None = None
    for line in output:
        if inside:
            if line.startswith(_END) and line[len(_END) :].strip() == file:
                inside = False
                # the command puts a line end of its own before this line
                if held is not None and held.rstrip("\n"):
                    yield CollectedLine(container_id, file, held)
                held = None
                continue
            if held is not None:
                yield CollectedLine(container_id, file, held)
            held = line
        elif match := _CONTAINER.match(line):
            container_id = match[1]
        elif line.startswith(_LOG_TYPE):
            file = line[len(_LOG_TYPE) :].strip()
        elif line.strip() in _CONTENTS and container_id and file:
            inside = True
    if held is not None:
        yield CollectedLine(container_id, file, held)


def _reason(said: bytes) -> str:
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines()]
    # log lines of the client say nothing about the application
    told = [line for line in lines if line and not re.match(r"^[\d/-]+ [\d:,]+ ", line)]
    return " ".join(" ".join(told).split())[:300] or "the command says no more"
