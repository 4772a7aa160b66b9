"""Whether a job goes on after a failure, and how failures are told.

It asks the restart strategy and knows which failures no restart cures; what a restart consists of
is decided by :mod:`yarnflow.core.job_run.decider`.

Flink counterpart: ``ExecutionFailureHandler``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.job.restart import RestartDecision, RestartState, RestartStrategy
from yarnflow.core.messages import ErrorInfo
from yarnflow.errors import (
    ERRORS_BY_CODE,
    DriverLost,
    LeaseLost,
    SavepointInvalid,
    SavepointNotFound,
    StateDamaged,
    StateDrained,
    StateIncompatible,
    StateInUse,
    StateUndecided,
    YarnflowError,
    ZooKeeperUnavailable,
)

#: Linux has no higher signals; what is below is a code of YARN's
_LAST_SIGNAL: Final = 64
#: the state a job is to start from is the same at the next attempt
_STATE_UNUSABLE: Final = {
    cls.code
    for cls in (
        SavepointNotFound,
        SavepointInvalid,
        StateIncompatible,
        StateDrained,
        StateUndecided,
        StateInUse,
        StateDamaged,
    )
}


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """Decides about a job's failures, one after the other; every method returns a new value."""

    strategy: RestartStrategy
    state: RestartState = RestartState()
    #: something of the job was committed at some time: what fails from then on may be an accident
    has_committed: bool = False

    def committed(self) -> FailurePolicy:
        """It works."""
        return self if self.has_committed else replace(self, has_committed=True)

    def decide(
        self, error: ErrorInfo, final: bool, wall_ms: int, jitter: float
    ) -> tuple[FailurePolicy, RestartDecision | None]:
        """What follows from a failure; None = no restart.

        Parameters
        ----------
        error : ErrorInfo
            What happened.
        final : bool
            Whoever saw it knows that a restart is no use.
        wall_ms, jitter : int, float
            See :meth:`~yarnflow.core.job.restart.RestartStrategy.on_failure`.
        """
        decision = self.strategy.on_failure(self.state, wall_ms, jitter)
        never_worked = not self.has_committed and not _may_pass(error)
        if final or never_worked or error.code in _STATE_UNUSABLE or not decision.can_restart:
            return self, None
        # not before: who goes on without a restart has not had one
        return replace(self, state=decision.state), decision


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
    last_line = output_tail.strip().splitlines()[-1:] if exit_status else []
    if exit_status < -_LAST_SIGNAL:
        return ": ".join([f"was ended by YARN (status {exit_status})", *last_line])
    if exit_status < 0:
        return f"ended by signal {-exit_status}"
    return ": ".join([f"ended by status {exit_status}", *last_line])


def _may_pass(error: ErrorInfo) -> bool:
    """Whether a failure before the first commit may be an accident of the machinery.

    User code or a query that fails before anything was ever committed fails the same way again;
    restarting it for ever would only hide the error from its author.
    """
    cls = ERRORS_BY_CODE.get(error.code)
    return cls is not None and cls.retryable
