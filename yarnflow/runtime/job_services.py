"""What a JobMaster is given: the process's shared parts and its own job's options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from yarnflow.core.ids import JobId
from yarnflow.core.messages import LeaderInfo
from yarnflow.core.ports import Clock, DriverLauncher, GatewayFactory
from yarnflow.core.restart import RestartStrategy
from yarnflow.runtime.job_board import JobBoard
from yarnflow.runtime.mailbox import Effects


class SlotRequirements(Protocol):
    """The ResourceManager as a JobMaster sees it; every method only posts."""

    def declare_requirements(self, job_id: JobId, slots: int) -> None:
        """From now on the job wants ``slots`` slots in all."""

    def release_slots(self, job_id: JobId) -> None:
        """The job is over; take all its slots back."""


@dataclass(frozen=True, slots=True)
class JobMasterServices:
    """What all JobMasters of a process share."""

    clock: Clock
    effects: Effects
    gateways: GatewayFactory
    launcher: DriverLauncher
    slots: SlotRequirements
    board: JobBoard
    leader_info: Callable[[], LeaderInfo]
    new_id: Callable[[], str]
    #: uniform in [-1, 1]
    jitter: Callable[[], float]


@dataclass(frozen=True, slots=True)
class JobMasterSettings:
    """One job's options, read once."""

    restart_strategy: RestartStrategy
    slot_request_timeout_ms: int
    cancellation_timeout_ms: int
    driver_heartbeat_timeout_ms: int
    driver_registration_timeout_ms: int
    driver_memory_mib: int
    checkpoint_dir: str
    work_dir: str
    call_timeout_ms: int
    #: how long a driver may take to leave in good order
    shut_down_grace_ms: int = 5_000
    #: before a lost executor is replaced; a crash loop must not spin
    executor_replacement_delay_ms: int = 200
    #: patience with an executor the driver does not see any more although nobody reported its end
    executor_missing_ms: int = 10_000
    #: patience with an executor that has never come
    executor_start_ms: int = 120_000
