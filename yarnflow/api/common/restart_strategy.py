"""What happens when a job fails.  PyFlink: ``pyflink.common.restart_strategy``."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from yarnflow.config.options import job
from yarnflow.graph.compatibility import same_and


def _millis(length: object, what: str) -> int:
    if isinstance(length, datetime.timedelta):
        return length // datetime.timedelta(milliseconds=1)
    if isinstance(length, int):
        return length
    raise TypeError(f"{what} is {length!r}; give milliseconds or a timedelta")


def _duration(length_ms: int) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=length_ms)


class RestartStrategyConfiguration:
    """Whether and when a failed job is started again."""

    def get_description(self) -> str:
        """The strategy in words."""
        return ", ".join(f"{key}={value}" for key, value in self.options().items())

    def options(self) -> dict[str, str]:
        """The options that say the same, key → text."""
        return {}


@dataclass(frozen=True)
class NoRestart(RestartStrategyConfiguration):
    """A failed job is not started again."""

    def options(self) -> dict[str, str]:
        return {job.RESTART_STRATEGY.key: "none"}


@dataclass(frozen=True)
class FallbackRestart(RestartStrategyConfiguration):
    """What the cluster is configured to do."""


@dataclass(frozen=True)
class FixedDelayRestart(RestartStrategyConfiguration):
    """So many restarts, with a pause before each."""

    restart_attempts: int
    delay_between_attempts_interval: datetime.timedelta | int

    def __post_init__(self) -> None:
        _millis(self.delay_between_attempts_interval, "the delay between attempts")

    def get_restart_attempts(self) -> int:
        """How many restarts."""
        return self.restart_attempts

    def get_delay_between_attempts_interval(self) -> datetime.timedelta:
        """The pause before each."""
        return _duration(_millis(self.delay_between_attempts_interval, "the delay between attempts"))

    def options(self) -> dict[str, str]:
        delay_ms = _millis(self.delay_between_attempts_interval, "the delay between attempts")
        return {
            job.RESTART_STRATEGY.key: "fixed-delay",
            job.RESTART_FIXED_DELAY_ATTEMPTS.key: str(self.restart_attempts),
            job.RESTART_FIXED_DELAY_DELAY_MS.key: f"{delay_ms} ms",
        }


@dataclass(frozen=True)
class FailureRateRestart(RestartStrategyConfiguration):
    """So many restarts within an interval, with a pause before each."""

    max_failure_rate: int
    failure_interval: datetime.timedelta | int
    delay_between_attempts_interval: datetime.timedelta | int

    def __post_init__(self) -> None:
        _millis(self.failure_interval, "the failure interval")
        _millis(self.delay_between_attempts_interval, "the delay between attempts")

    def get_max_failure_rate(self) -> int:
        """How many failures within the interval."""
        return self.max_failure_rate

    def get_failure_interval(self) -> datetime.timedelta:
        """The interval."""
        return _duration(_millis(self.failure_interval, "the failure interval"))

    def get_delay_between_attempts_interval(self) -> datetime.timedelta:
        """The pause before each restart."""
        return _duration(_millis(self.delay_between_attempts_interval, "the delay between attempts"))

    def options(self) -> dict[str, str]:
        interval_ms = _millis(self.failure_interval, "the failure interval")
        delay_ms = _millis(self.delay_between_attempts_interval, "the delay between attempts")
        return {
            job.RESTART_STRATEGY.key: "failure-rate",
            job.RESTART_FAILURE_RATE_MAX_FAILURES.key: str(self.max_failure_rate),
            job.RESTART_FAILURE_RATE_INTERVAL_MS.key: f"{interval_ms} ms",
            job.RESTART_FAILURE_RATE_DELAY_MS.key: f"{delay_ms} ms",
        }


@same_and("in PyFlink 2.3 every one raises, as Flink 2 has no such Java class")
class RestartStrategies:
    """Makes restart strategies; give one to ``env.set_restart_strategy`` or set the options."""

    NoRestartStrategyConfiguration = NoRestart
    FixedDelayRestartStrategyConfiguration = FixedDelayRestart
    FailureRateRestartStrategyConfiguration = FailureRateRestart
    FallbackRestartStrategyConfiguration = FallbackRestart

    @staticmethod
    def no_restart() -> NoRestart:
        """Do not start a failed job again."""
        return NoRestart()

    @staticmethod
    def fall_back_restart() -> FallbackRestart:
        """Do what the cluster is configured to do."""
        return FallbackRestart()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: int | datetime.timedelta
    ) -> FixedDelayRestart:
        """Start again so many times, each after a pause (milliseconds or a timedelta)."""
        return FixedDelayRestart(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int,
        failure_interval: int | datetime.timedelta,
        delay_interval: int | datetime.timedelta,
    ) -> FailureRateRestart:
        """Start again so many times per interval, each after a pause (milliseconds or timedeltas)."""
        return FailureRateRestart(failure_rate, failure_interval, delay_interval)
