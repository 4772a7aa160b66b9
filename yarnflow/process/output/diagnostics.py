"""What this process shows of itself: its log files, and what its threads do.

Files are read in parts, and only those of the one directory.  Flink counterparts: ``TaskExecutor``'s
``requestFileUploadByName``, ``JvmUtils.createThreadDump``.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from yarnflow.core.resources.diagnostics import MAX_PART_BYTES, LogFile, LogPart, ThreadInfo
from yarnflow.errors import FileMissing

#: files that are listed, newest first if there are more
MAX_FILES: Final = 1_000
#: for all Java processes together; less than the default of ``rpc.ask.timeout``, in which a JobManager asks
_JCMD_TIMEOUT_S: Final = 6.0
#: asked at a time; each is a JVM of its own for half a second
_JCMD_PARALLEL: Final = 4
_THREAD: Final = re.compile(r'^"(.*)" ')


class Diagnostics:
    """See :class:`~yarnflow.core.resources.diagnostics.ProcessDiagnostics`.

    Parameters
    ----------
    logs : Path
        Directory of its files; what lies in directories below it is not shown.
    own_log, own_output : str
        Names of the files that this process's own lines and its standard output go to; empty = elsewhere.
    java_processes : callable
        Name → pid of the Java processes it has started.
    java_home : callable
        Directory of the Java they run on.
    """

    def __init__(
        self,
        logs: Path,
        own_log: str = "",
        own_output: str = "",
        java_processes: Callable[[], Mapping[str, int]] = dict,
        java_home: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._logs = logs
        self._own_log = own_log
        self._own_output = own_output
        self._java_processes = java_processes
        self._java_home = java_home

    def log_files(self) -> Sequence[LogFile]:
        """Its files."""
        found = []
        try:
            entries = list(os.scandir(self._logs))
        except OSError:
            return ()
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # rotated away at this moment
            if stat.S_ISREG(status.st_mode) and not entry.name.startswith("."):
                is_output = entry.name == self._own_output
                found.append(LogFile(entry.name, status.st_size, int(status.st_mtime * 1000), is_output))
        newest = sorted(found, key=lambda file: file.modified_ms, reverse=True)[:MAX_FILES]
        return sorted(newest, key=lambda file: file.name)

    def read_log(self, name: str, offset: int, max_bytes: int) -> LogPart:
        """A part of one of them.

        Raises
        ------
        FileMissing
            There is no such file in the directory.
        """
        name = name or self._own_log
        path = self._logs / name
        # one name of one directory, and no link to another place
        if not name or name != os.path.basename(name) or name.startswith(".") or "\0" in name:
            raise _missing(name)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            raise _missing(name) from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _missing(name)
            size = status.st_size
            first = offset if offset >= 0 else max(0, size + offset)
            length = max(0, min(max_bytes, MAX_PART_BYTES))
            return LogPart(os.pread(descriptor, length, first) if first < size else b"", first, size)
        finally:
            os.close(descriptor)

    def thread_dump(self) -> Sequence[ThreadInfo]:
        """What its threads do, and those of the Java processes."""
        names = {thread.ident: thread for thread in threading.enumerate()}
        found = []
        for ident, frame in sys._current_frames().items():
            thread = names.get(ident)
            name = thread.name if thread is not None else f"thread {ident}"
            kind = " daemon" if thread is not None and thread.daemon else ""
            lines = "".join(traceback.format_stack(frame))
            found.append(ThreadInfo(name, f'"{name}" Id={ident}{kind}\n{lines}\n'))
        found.sort(key=lambda info: info.name)
        end_s = time.monotonic() + _JCMD_TIMEOUT_S
        with ThreadPoolExecutor(_JCMD_PARALLEL, "jcmd") as asking:
            processes = sorted(self._java_processes().items())
            for threads in asking.map(lambda each: self._java_threads(each[0], each[1], end_s), processes):
                found.extend(threads)
        return found

    def _java_threads(self, name: str, pid: int, end_s: float) -> list[ThreadInfo]:
        def told(instead: str) -> list[ThreadInfo]:
            return [ThreadInfo(name, f"{name} (pid {pid}): {instead}\n")]

        home = self._java_home()
        program = None if home is None else home / "bin" / "jcmd"
        if program is None or not program.is_file():
            return told(f"its threads can be shown with a JDK only, and {home} is none")
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            return told(f"not asked, as others took {_JCMD_TIMEOUT_S:.0f} s")
        try:
            done = subprocess.run(
                [str(program), str(pid), "Thread.print"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=left_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return told(f"did not tell of its threads in {left_s:.1f} s")
        except OSError as error:
            return told(f"{error}")
        if done.returncode != 0:
            return told(done.stderr.decode("utf-8", "replace").strip()[:500])
        return java_threads(name, done.stdout.decode("utf-8", "replace"))


def java_threads(process: str, text: str) -> list[ThreadInfo]:
    """The threads of ``jcmd … Thread.print``, with the process before the name of each."""
    found = []
    for block in text.split("\n\n"):
        head = _THREAD.match(block.lstrip("\n"))
        if head is not None:
            found.append(ThreadInfo(f"{process}: {head[1]}", block.strip("\n") + "\n"))
    return found


def _missing(name: str) -> FileMissing:
    return FileMissing(f"there is no file {name!r:.200} among the logs of this process")
