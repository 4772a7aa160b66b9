"""Whether and when a failed job is started again.

Decides from the history of failures; never from what failed (a caller that knows a failure
cannot be cured, e.g. a program error, does not ask).  Randomness for the jitter comes in as
a number.

``none``, ``fixed-delay``, ``failure-rate`` and ``exponential-delay`` have Flink 1.20's keys
(:mod:`yarnflow.config.options.job`), defaults and meaning.

Flink counterparts: ``RestartBackoffTimeStrategy`` and its four implementations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from yarnflow.config.options import job
from yarnflow.errors import InvalidOption

#: for ``fixed-delay.attempts`` and ``attempts-before-reset-backoff``
UNLIMITED: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RestartState:
    """What a strategy remembers of one job; start with ``RestartState()``."""

    #: failures counted since the start (or, exponential-delay, since the last reset)
    attempts: int = 0
    #: failure-rate only: times of the latest failures, oldest first
    failures_ms: tuple[int, ...] = ()
    #: exponential-delay only: the backoff of the next failure; 0 = the initial one
    backoff_ms: int = 0
    #: exponential-delay only: when the last restart was due; -1 = none yet
    next_restart_ms: int = -1


@dataclass(frozen=True, slots=True)
class RestartDecision:
    """Answer to one failure."""

    can_restart: bool
    #: how long to wait before the restart
    delay_ms: int
    #: for the next failure
    state: RestartState
    #: False = one of several failures before one restart; not an attempt of its own
    counted: bool = True


class RestartStrategy(Protocol):
    """A restart strategy with its options."""

    @property
    def name(self) -> str:
        """Its name in ``restart-strategy.type``."""

    def on_failure(self, state: RestartState, at_ms: int, jitter: float) -> RestartDecision:
        """Decide about one failure.

        Parameters
        ----------
        state : RestartState
            From the last decision.
        at_ms : int
            Time of the failure.
        jitter : float
            Random number in [-1, 1]; used by exponential-delay only.
        """


@dataclass(frozen=True, slots=True)
class NoRestart:
    """The first failure is the last."""

    name: str = "none"

    def on_failure(self, state: RestartState, at_ms: int, jitter: float) -> RestartDecision:
        after = replace(state, attempts=state.attempts + 1)
        return RestartDecision(False, 0, after)


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """So many restarts, each after the same time."""

    max_attempts: int = 1
    delay_ms: int = 1000
    name: str = "fixed-delay"

    def on_failure(self, state: RestartState, at_ms: int, jitter: float) -> RestartDecision:
        after = replace(state, attempts=state.attempts + 1)
        if after.attempts > self.max_attempts:
            return RestartDecision(False, 0, after)
        return RestartDecision(True, self.delay_ms, after)


@dataclass(frozen=True, slots=True)
class FailureRate:
    """Restarts as long as failures are rare."""

    max_failures: int = 1
    interval_ms: int = 60_000
    delay_ms: int = 1000
    name: str = "failure-rate"

    def on_failure(self, state: RestartState, at_ms: int, jitter: float) -> RestartDecision:
        # One more than allowed is all that is needed to see that the rate is exceeded.
        recent = (*state.failures_ms, at_ms)[-(self.max_failures + 1) :]
        after = replace(state, attempts=state.attempts + 1, failures_ms=recent)
        if len(recent) > self.max_failures and at_ms - recent[0] <= self.interval_ms:
            return RestartDecision(False, 0, after)
        return RestartDecision(True, self.delay_ms, after)


@dataclass(frozen=True, slots=True)
class ExponentialDelay:
    """Waits longer after each failure, and starts anew after a quiet time."""

    initial_backoff_ms: int = 1000
    multiplier: float = 1.5
    max_backoff_ms: int = 60_000
    reset_threshold_ms: int = 3_600_000
    jitter_factor: float = 0.1
    attempts_before_reset: int = UNLIMITED
    name: str = "exponential-delay"

    def on_failure(self, state: RestartState, at_ms: int, jitter: float) -> RestartDecision:
        due = state.next_restart_ms
        if 0 <= at_ms <= due:
            # The restart this failure would lead to is waiting already.
            return RestartDecision(True, due - at_ms, state, counted=False)
        if due >= 0 and at_ms - due >= self.reset_threshold_ms:
            state = RestartState()
        attempts = state.attempts + 1
        backoff = state.backoff_ms or self.initial_backoff_ms
        if attempts > self.attempts_before_reset:
            return RestartDecision(False, 0, replace(state, attempts=attempts))
        moved = backoff + round(backoff * self.jitter_factor * max(-1.0, min(1.0, jitter)))
        delay = max(self.initial_backoff_ms, min(self.max_backoff_ms, moved))
        grown = min(self.max_backoff_ms, round(backoff * self.multiplier))
        after = RestartState(attempts, (), grown, at_ms + delay)
        return RestartDecision(True, delay, after)


def restart_strategy_from(
    kind: str,
    *,
    fixed_delay_attempts: int = 1,
    fixed_delay_delay_ms: int = 1000,
    failure_rate_max_failures: int = 1,
    failure_rate_interval_ms: int = 60_000,
    failure_rate_delay_ms: int = 1000,
    exponential_initial_backoff_ms: int = 1000,
    exponential_multiplier: float = 1.5,
    exponential_max_backoff_ms: int = 60_000,
    exponential_reset_threshold_ms: int = 3_600_000,
    exponential_jitter_factor: float = 0.1,
    exponential_attempts_before_reset: int = UNLIMITED,
) -> RestartStrategy:
    """The strategy ``restart-strategy.type`` names, with its options.

    Raises
    ------
    InvalidOption
        No such strategy, or backoffs that exclude each other.
    """
    if kind in ("none", "off", "disable"):
        return NoRestart()
    if kind == "fixed-delay":
        return FixedDelay(fixed_delay_attempts, fixed_delay_delay_ms)
    if kind == "failure-rate":
        return FailureRate(failure_rate_max_failures, failure_rate_interval_ms, failure_rate_delay_ms)
    if kind != "exponential-delay":
        raise InvalidOption(
            f"{job.RESTART_STRATEGY.key} is {kind!r}; expected none, fixed-delay, failure-rate or "
            "exponential-delay"
        )
    if exponential_max_backoff_ms < exponential_initial_backoff_ms:
        raise InvalidOption(
            f"{job.RESTART_EXPONENTIAL_MAX_BACKOFF_MS.key} ({exponential_max_backoff_ms} ms) is below "
            f"{job.RESTART_EXPONENTIAL_INITIAL_BACKOFF_MS.key} ({exponential_initial_backoff_ms} ms); "
            "raise it"
        )
    return ExponentialDelay(
        exponential_initial_backoff_ms,
        exponential_multiplier,
        exponential_max_backoff_ms,
        exponential_reset_threshold_ms,
        exponential_jitter_factor,
        exponential_attempts_before_reset,
    )
