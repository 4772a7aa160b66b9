"""A TaskManager as a JobManager sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from yarnflow.core.ids import AllocationId, ExecutorId, JobId
from yarnflow.core.messages import ExecutorDescriptor, LogLevel, SlotRequest
from yarnflow.core.resources.diagnostics import LogFile, LogPart, ThreadInfo
from yarnflow.errors import FileMissing, YarnflowError


@dataclass
class FakeTaskExecutor:
    """:class:`~yarnflow.core.ports.TaskExecutorGateway` that records its calls; ``error`` makes them fail."""

    requests: list[SlotRequest] = field(default_factory=list)
    freed: list[AllocationId] = field(default_factory=list)
    started: list[ExecutorDescriptor] = field(default_factory=list)
    stopped: list[ExecutorId] = field(default_factory=list)
    pings: int = 0
    halts: int = 0
    levels: list[LogLevel] = field(default_factory=list)
    error: YarnflowError | None = None
    logs: dict[str, bytes] = field(default_factory=dict)

    def request_slot(self, request: SlotRequest) -> None:
        """Add to :attr:`requests`; offering the slot is left to the test."""
        self._fail()
        self.requests.append(request)

    def free_slot(self, allocation_id: AllocationId) -> None:
        """Add to :attr:`freed`."""
        self._fail()
        self.freed.append(allocation_id)

    def start_executor(self, descriptor: ExecutorDescriptor) -> None:
        """Add to :attr:`started`."""
        self._fail()
        self.started.append(descriptor)

    def stop_executor(self, job_id: JobId, executor_id: ExecutorId) -> None:
        """Add to :attr:`stopped`."""
        self._fail()
        self.stopped.append(executor_id)

    def ping(self) -> None:
        """Count, also those that fail."""
        self.pings += 1
        self._fail()

    def log_files(self) -> Sequence[LogFile]:
        """Of :attr:`logs`; what ends in ``.out`` is its output."""
        self._fail()
        return [
            LogFile(name, len(content), 0, name.endswith(".out"))
            for name, content in sorted(self.logs.items())
        ]

    def read_log(self, name: str, offset: int, max_bytes: int) -> LogPart:
        """Of :attr:`logs`; without a name the first."""
        self._fail()
        name = name or min(self.logs, default="")
        if name not in self.logs:
            raise FileMissing(f"there is no file {name} among the logs")
        content = self.logs[name]
        first = offset if offset >= 0 else max(0, len(content) + offset)
        return LogPart(content[first : first + max_bytes], first, len(content))

    def thread_dump(self) -> Sequence[ThreadInfo]:
        """One thread."""
        self._fail()
        return [ThreadInfo("MainThread", '"MainThread"\n')]

    def halt(self) -> None:
        """Count."""
        self._fail()
        self.halts += 1

    def set_log_level(self, level: LogLevel) -> None:
        """Add to :attr:`levels`."""
        self._fail()
        self.levels.append(level)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error
