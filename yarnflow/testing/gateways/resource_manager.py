"""The ResourceManager as TaskManagers see it."""

from __future__ import annotations

from dataclasses import dataclass, field

from yarnflow.core.ids import TaskManagerId
from yarnflow.core.messages import LeaderInfo, TaskManagerHeartbeat, TaskManagerRegistration
from yarnflow.errors import YarnflowError


@dataclass
class FakeResourceManager:
    """:class:`~yarnflow.core.ports.ResourceManagerGateway` that records calls, or fails with ``error``."""

    #: the answer to registrations
    leader: LeaderInfo
    registrations: list[TaskManagerRegistration] = field(default_factory=list)
    heartbeats: list[TaskManagerHeartbeat] = field(default_factory=list)
    disconnected: list[TaskManagerId] = field(default_factory=list)
    error: YarnflowError | None = None

    def register_task_manager(self, registration: TaskManagerRegistration) -> LeaderInfo:
        """Add to :attr:`registrations`."""
        self._fail()
        self.registrations.append(registration)
        return self.leader

    def heartbeat(self, report: TaskManagerHeartbeat) -> None:
        """Add to :attr:`heartbeats`."""
        self._fail()
        self.heartbeats.append(report)

    def disconnect_task_manager(self, task_manager_id: TaskManagerId, reason: str) -> None:
        """Add to :attr:`disconnected`, also while :attr:`error` is set."""
        self.disconnected.append(task_manager_id)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error
