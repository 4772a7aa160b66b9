"""What a process shows of itself to whoever looks for a fault: log files, and what its threads do.

Flink counterparts: ``LogInfo``, ``ThreadDumpInfo``, the file uploads of ``TaskExecutorGateway``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

#: longest part of a file that one call answers
MAX_PART_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a process's directory of logs."""

    name: str
    size_bytes: int
    modified_ms: int
    #: the standard output of the process itself goes there
    own_output: bool = False


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of a file."""

    content: bytes
    #: where it begins
    offset: int
    #: of the whole file when it was read
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """What one thread does."""

    name: str
    #: several lines
    stack: str


class ProcessDiagnostics(Protocol):
    """One process, as others may look into it."""

    def log_files(self) -> Sequence[LogFile]:
        """Files of its directory of logs, by name.  Idempotent."""

    def read_log(self, name: str, offset: int, max_bytes: int) -> LogPart:
        """A part of one of them.  Idempotent.

        Parameters
        ----------
        name : str
            As :meth:`log_files` says; empty = the log of the process itself.
        offset : int
            Where to begin; negative = so many bytes before its end.
        max_bytes : int
            At most; never more than :data:`MAX_PART_BYTES`.

        Raises
        ------
        FileMissing
            There is no such file.
        """

    def thread_dump(self) -> Sequence[ThreadInfo]:
        """What its threads do, and those of the Java processes that it has started.  Idempotent."""
