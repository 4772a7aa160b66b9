"""Run a command: how long it takes, when its first line comes, how much memory its processes take."""

from __future__ import annotations

import os
import subprocess
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from integration.bench.pyflink.engines import Command

_MARK: Final = "YARNFLOW_BENCH_RUN"
_LOOK_EVERY_S: Final = 0.5
_TIMEOUT_S: Final = 900.0
_MIB: Final = 2**20


@dataclass(frozen=True)
class MeasuredRun:
    """What was measured."""

    total_s: float
    #: None: it printed nothing
    first_line_s: float | None
    peak_mib: int
    #: what it printed
    lines: list[str]


def steady_rate(records: tuple[int, int], runs: Sequence[MeasuredRun]) -> int | None:
    """Records per second beyond the start, by a run on a small and one on a large input.

    None: the large one took no longer.
    """
    seconds = runs[1].total_s - runs[0].total_s
    return round((records[1] - records[0]) / seconds) if seconds > 0 else None


class RunFailed(Exception):
    """A command failed; the message has the end of what it said."""


def measure(command: Command) -> MeasuredRun:
    """Run a command to its end.

    Raises
    ------
    RunFailed
        The command failed, or takes longer than 15 minutes.
    """
    mark = uuid.uuid4().hex
    said = command.directory / "stderr"
    environment = {name: value for name, value in (os.environ | command.environment).items() if value}
    began = time.monotonic()
    with open(said, "wb") as errors:
        process = subprocess.Popen(
            command.words,
            cwd=command.directory,
            env={**environment, _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    ended = threading.Event()
    memory = _Memory(f"{_MARK}={mark}", ended)
    memory.start()
    # a command that hangs ends by itself only when its processes do
    limit = threading.Timer(_TIMEOUT_S, _kill, [f"{_MARK}={mark}"])
    limit.start()
    lines: list[str] = []
    first_line_s = None
    assert process.stdout is not None, "it is a pipe"
    for line in process.stdout:
        if line.startswith("(") or "> (" in line:
            if first_line_s is None:
                first_line_s = time.monotonic() - began
            lines.append(line.strip())
    status = process.wait()
    total_s = time.monotonic() - began
    limit.cancel()
    ended.set()
    memory.join()
    # what it may have left behind would slow the next one
    _kill(f"{_MARK}={mark}")
    if status != 0:
        raise RunFailed(f"{' '.join(command.words)}: exit status {status}\n{_end_of(said)}")
    return MeasuredRun(total_s, first_line_s, memory.peak_bytes // _MIB, lines)


def _end_of(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-30:])


class _Memory(threading.Thread):
    """Looks at all processes that carry a mark in their environment, whoever their parent is."""

    def __init__(self, mark: str, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self._mark = mark
        self._ended = ended
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._ended.wait(_LOOK_EVERY_S):
            self.peak_bytes = max(self.peak_bytes, sum(map(_pss_bytes, marked(self._mark))))


def marked(mark: str) -> list[psutil.Process]:
    """Processes whose environment holds ``name=value``."""
    wanted = mark.encode()
    found = []
    for process in psutil.process_iter():
        try:
            if wanted in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                found.append(process)
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


def _pss_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def _kill(mark: str) -> None:
    for process in marked(mark):
        try:
            process.kill()
        except psutil.Error:
            continue
