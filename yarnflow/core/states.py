"""The states of jobs and executions: Flink's, and one of a job's own.

Flink counterparts: ``JobStatus`` (11 states), ``ExecutionState`` (10 states).  The spelling
differs on purpose, as in Flink: a job is CANCELLING, a task is CANCELING.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class JobStatus(Enum):
    """State of a job."""

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"
    RECONCILING = "RECONCILING"
    #: its graph cannot be read; Flink's master fails as a whole then
    RECOVERY_FAILED = "RECOVERY_FAILED"

    @property
    def in_flink(self) -> JobStatus:
        """The nearest one of Flink's states."""
        return JobStatus.RECONCILING if self is JobStatus.RECOVERY_FAILED else self

    @property
    def globally_terminal(self) -> bool:
        """The job is over for every master."""
        return self in GLOBALLY_TERMINAL

    @property
    def terminal(self) -> bool:
        """The job is over for this master at least."""
        return self in GLOBALLY_TERMINAL or self is JobStatus.SUSPENDED

    def is_globally_terminal_state(self) -> bool:
        """PyFlink's name of :attr:`globally_terminal`."""
        return self.globally_terminal

    def is_terminal_state(self) -> bool:
        """PyFlink's name of :attr:`terminal`."""
        return self.terminal


GLOBALLY_TERMINAL: Final = frozenset({JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED})


class ExecutionState(Enum):
    """State of one attempt of one subtask."""

    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    DEPLOYING = "DEPLOYING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    FAILED = "FAILED"
    RECONCILING = "RECONCILING"

    @property
    def terminal(self) -> bool:
        """No event leads out of this state."""
        return self in (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)


class RestartLevel(Enum):
    """How far up a failure had to go before the job went on."""

    #: Spark reran tasks; the query never stopped
    TASKS = "TASKS"
    #: the query was started again in the same driver
    QUERY = "QUERY"
    #: a new driver process on the same TaskManagers
    DRIVER = "DRIVER"
    #: another master adopted the job
    MASTER = "MASTER"
