"""Whether a job goes on after a failure, and how failures are told.

It asks the restart strategy and knows which failures no restart cures; what a restart consists of
is the JobMaster's business.  Used in the JobMaster's mailbox only.

Flink counterpart: ``ExecutionFailureHandler``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from yarnflow.core.messages import ErrorInfo
from yarnflow.core.ports import Clock
from yarnflow.core.restart import RestartDecision, RestartState, RestartStrategy
from yarnflow.errors import (
    ERRORS_BY_CODE,
    DriverLost,
    LeaseLost,
    SavepointInvalid,
    SavepointNotFound,
    StateDrained,
    StateIncompatible,
    YarnflowError,
    ZooKeeperUnavailable,
)

#: the state a job is to start from is the same at the next attempt
_STATE_UNUSABLE: Final = {
    cls.code for cls in (SavepointNotFound, SavepointInvalid, StateIncompatible, StateDrained)
}


class FailurePolicy:
    """Decides about a job's failures, one after the other.

    Parameters
    ----------
    strategy : RestartStrategy
        The job's.
    clock : Clock
        The process's.
    jitter : callable
        Uniform in [-1, 1].
    """

    def __init__(self, strategy: RestartStrategy, clock: Clock, jitter: Callable[[], float]) -> None:
        self._strategy = strategy
        self._clock = clock
        self._jitter = jitter
        self._state = RestartState()
        #: something of the job was committed at some time
        self.has_committed = False

    def committed(self) -> None:
        """It works: what fails from now on may be an accident."""
        self.has_committed = True

    def decide(self, error: ErrorInfo, final: bool = False) -> RestartDecision | None:
        """What follows from a failure; None = no restart.

        Parameters
        ----------
        error : ErrorInfo
            What happened.
        final : bool
            Whoever saw it knows that a restart is no use.
        """
        decision = self._strategy.on_failure(self._state, self._clock.now_ms(), self._jitter())
        never_worked = not self.has_committed and not _may_pass(error)
        if final or never_worked or error.code in _STATE_UNUSABLE or not decision.can_restart:
            return None
        # not before: who goes on without a restart has not had one
        self._state = decision.state
        return decision


def error_info(error: YarnflowError) -> ErrorInfo:
    """As it is shown and sent."""
    return ErrorInfo(error.code, error.message, getattr(error, "traceback_text", ""))


def is_loss(error: ErrorInfo) -> bool:
    """Whether a driver was lost, rather than that what runs in it failed."""
    return error.code in (DriverLost.code, LeaseLost.code)


def is_outage(error: ErrorInfo) -> bool:
    """Whether a driver could not go on without ZooKeeper, which is no fault of its job."""
    return error.code in (LeaseLost.code, ZooKeeperUnavailable.code)


def ended_by(exit_status: int, output_tail: str) -> str:
    """How a process ended; the subject of the sentence is the process."""
    if exit_status < 0:
        return f"ended by signal {-exit_status}"
    last_line = output_tail.strip().splitlines()[-1:] if exit_status else []
    return ": ".join([f"ended by status {exit_status}", *last_line])


def _may_pass(error: ErrorInfo) -> bool:
    """Whether a failure before the first commit may be an accident of the machinery.

    User code or a query that fails before anything was ever committed fails the same way again;
    restarting it for ever would only hide the error from its author.
    """
    cls = ERRORS_BY_CODE.get(error.code)
    return cls is not None and cls.retryable
