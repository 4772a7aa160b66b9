"""A driver as a JobMaster sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from yarnflow.core.checkpoint.messages import CheckpointOrder
from yarnflow.core.messages import DriverDeployment, JobSubmission, LogLevel
from yarnflow.core.resources.diagnostics import ThreadInfo
from yarnflow.errors import SubmissionMissing, YarnflowError


@dataclass
class FakeDriver:
    """:class:`~yarnflow.core.ports.DriverGateway` that records its calls; ``error`` makes them fail."""

    #: with their submissions, sent with them or held from an earlier one
    deployments: list[DriverDeployment] = field(default_factory=list)
    #: digest → submission, as a driver process keeps it
    held: dict[str, JobSubmission] = field(default_factory=dict)
    #: number of submissions that were sent
    received: int = 0
    orders: list[CheckpointOrder] = field(default_factory=list)
    cancels: int = 0
    shut_downs: int = 0
    halts: int = 0
    levels: list[LogLevel] = field(default_factory=list)
    error: YarnflowError | None = None

    def deploy(self, deployment: DriverDeployment) -> None:
        """Add to :attr:`deployments`; a submission that is only named must have been sent before."""
        self._fail()
        digest = deployment.submission_digest
        if deployment.submission is not None:
            self.held[digest] = deployment.submission
            self.received += 1
        elif digest not in self.held:
            raise SubmissionMissing(f"no submission {digest}")
        self.deployments.append(replace(deployment, submission=self.held[digest]))

    def cancel(self) -> None:
        """Count."""
        self._fail()
        self.cancels += 1

    def take_checkpoint(self, order: CheckpointOrder) -> None:
        """Add to :attr:`orders`; reporting the outcome is left to the test."""
        self._fail()
        self.orders.append(order)

    def shut_down(self) -> None:
        """Count."""
        self._fail()
        self.shut_downs += 1

    def ping(self) -> None:
        """Answer."""
        self._fail()

    def thread_dump(self) -> Sequence[ThreadInfo]:
        """One thread."""
        self._fail()
        return (ThreadInfo("MainThread", "at work\n"),)

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
