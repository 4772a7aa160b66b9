"""Starts and stops processes in the background, for the scripts that do so.

    python -P -m yarnflow.entrypoint.standalone.background start NAME SENTENCE COMMAND...
    python -P -m yarnflow.entrypoint.standalone.background stop WHAT SCRIPT PATTERN...

``start`` returns when the process has said the sentence, and prints that line; ``stop`` ends processes whose
names match, in this order.  ``YARNFLOW_START_TIMEOUT`` and ``YARNFLOW_STOP_TIMEOUT`` are in seconds.  Flink
counterpart: ``flink-daemon.sh``.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from yarnflow.entrypoint.standalone.pid_files import (
    PidFolder,
    RecordedProcess,
    older_pid_folder,
    opened,
    pid_folder,
)
from yarnflow.errors import YarnflowError

_LOOK_S: Final = 0.1


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments say; returns an exit status."""
    verb, *words = arguments
    try:
        if verb == "start":
            name, sentence, *command = words
            return start(name, sentence, command)
        what, script, *patterns = words
        return stop(what, script, patterns)
    except YarnflowError as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def start(name: str, sentence: str, command: Sequence[str]) -> int:
    """Start a process, and print the line with which it says that it is there."""
    limit_s = float(os.environ.get("YARNFLOW_START_TIMEOUT") or 60)
    with opened(pid_folder(os.environ)) as folder:
        earlier = folder.recorded(name)
        if earlier is not None and earlier.runs:
            return _failed(f"{name} runs already (pid {earlier.pid}); stop it first")
        output = folder.new_output(name)
        # no terminal that it was started from ends it
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        folder.record(name, process.pid)
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            # first: it may say it and end
            ended = process.poll() is not None
            said = _read(output)
            line = next((line for line in said.splitlines() if sentence in line), "")
            if line:
                print(line)
                return 0
            if ended:
                folder.forget(name)
                return _failed(f"{name} ended at once:\n{said}")
            time.sleep(_LOOK_S)
    return _failed(f"{name} did not start within {limit_s:g} s; see {folder.output(name)}")


def stop(what: str, script: str, patterns: Sequence[str]) -> int:
    """End processes, and say how each went.

    Parameters
    ----------
    what, script : str
        What they are, and who starts them; for the message when there are none.
    """
    found = False
    with _folders() as folders:
        for pattern in patterns:
            for folder in folders:
                for name in folder.names(pattern):
                    found = True
                    print(f"{name} {_end(folder.recorded(name))}")
                    folder.forget(name)
    if not found:
        print(f"No {what} of this user was started by {script} (no pid files in {pid_folder(os.environ)}).")
    return 0


@contextmanager
def _folders() -> Iterator[list[PidFolder]]:
    """Return the folder, and the one of earlier versions if it is as private as that must be."""
    with opened(pid_folder(os.environ), to_stop=True) as folder:
        older = older_pid_folder()
        if not _is_private(older) or older == folder.path:
            yield [folder]
            return
        with opened(older) as earlier:
            yield [folder, earlier]


def _is_private(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    private = status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077
    return stat.S_ISDIR(status.st_mode) and private


def _end(process: RecordedProcess | None) -> str:
    """End a process; returns what became of it."""
    if process is None or not process.runs:
        return "was not running"
    limit_s = float(os.environ.get("YARNFLOW_STOP_TIMEOUT") or 20)
    _send(process, signal.SIGTERM)
    if _await(lambda: not process.runs, limit_s):
        return f"(pid {process.pid}) stopped"
    # its children end with it: the kernel sees to that
    _send(process, signal.SIGKILL)
    return f"(pid {process.pid}) killed"


def _send(process: RecordedProcess, number: signal.Signals) -> None:
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        pass  # it has ended this very moment


def _await(condition: Callable[[], bool], limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_S)
    return True


def _read(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def _failed(why: str) -> int:
    print(f"error: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
