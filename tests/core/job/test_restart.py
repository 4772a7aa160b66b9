"""Restart strategies: scenarios with Flink's defaults."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.core.job.restart import (
    UNLIMITED,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    RestartDecision,
    RestartState,
    RestartStrategy,
    restart_strategy_from,
)
from yarnflow.errors import InvalidOption


def decide(strategy: RestartStrategy, *failures_ms: int, jitter: float = 0.0) -> list[RestartDecision]:
    """The decisions about failures at these times, one after the other."""
    state, decisions = RestartState(), []
    for at_ms in failures_ms:
        decision = strategy.on_failure(state, at_ms, jitter)
        decisions.append(decision)
        state = decision.state
    return decisions


def test_none_never_restarts() -> None:
    assert [d.can_restart for d in decide(NoRestart(), 1)] == [False]


def test_fixed_delay_counts_attempts() -> None:
    decisions = decide(FixedDelay(2, 500), 0, 10_000, 20_000)
    assert [(d.can_restart, d.delay_ms) for d in decisions] == [(True, 500), (True, 500), (False, 0)]


def test_fixed_delay_without_attempts_and_without_limit() -> None:
    assert not decide(FixedDelay(0), 0)[0].can_restart
    decision = decide(FixedDelay(UNLIMITED), 0)[0]
    assert (decision.can_restart, decision.delay_ms) == (True, 1000)


def test_failure_rate_allows_rare_failures() -> None:
    """Two per minute: the third within one minute is one too many, later ones are not."""
    strategy = FailureRate(2, 60_000, 1000)
    assert [d.can_restart for d in decide(strategy, 0, 30_000, 60_001, 90_002)] == [True] * 4
    assert [d.can_restart for d in decide(strategy, 0, 30_000, 60_000)] == [True, True, False]
    assert len(decide(strategy, *range(0, 10**7, 10**5))[-1].state.failures_ms) == 3


def test_exponential_delay_grows_to_its_maximum() -> None:
    delays, at_ms, state = [], 0, RestartState()
    for _ in range(13):
        decision = ExponentialDelay().on_failure(state, at_ms, 0.0)
        delays.append(decision.delay_ms)
        state, at_ms = decision.state, at_ms + decision.delay_ms + 1
    assert delays[:5] == [1000, 1500, 2250, 3375, 5062]
    assert delays[-2:] == [60_000, 60_000]
    assert decision.can_restart and state.attempts == 13


def test_exponential_delay_starts_anew_after_a_quiet_time() -> None:
    """The quiet time counts from the restart (1000), not from the failure (0)."""
    strategy = ExponentialDelay(reset_threshold_ms=5000)
    assert [d.delay_ms for d in decide(strategy, 0, 5999)] == [1000, 1500]
    second = decide(strategy, 0, 6000)[1]
    assert (second.delay_ms, second.state.attempts) == (1000, 1)


def test_failures_before_the_restart_are_one() -> None:
    first, second, third = decide(ExponentialDelay(), 0, 400, 1001)
    assert (second.can_restart, second.counted, second.delay_ms) == (True, False, 600)
    assert second.state == first.state
    assert (third.counted, third.state.attempts, third.delay_ms) == (True, 2, 1500)


def test_exponential_delay_gives_up_after_its_attempts() -> None:
    decisions = decide(ExponentialDelay(attempts_before_reset=2), 0, 10_000, 20_000)
    assert [d.can_restart for d in decisions] == [True, True, False]


@given(
    jitter=st.floats(-1, 1),
    gaps=st.lists(st.integers(1, 200_000), min_size=1, max_size=30),
)
def test_a_delay_is_never_outside_its_bounds(jitter: float, gaps: list[int]) -> None:
    strategy = ExponentialDelay()
    times = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    for decision in decide(strategy, *times, jitter=jitter):
        assert decision.can_restart
        if decision.counted:
            assert strategy.initial_backoff_ms <= decision.delay_ms <= strategy.max_backoff_ms


def test_jitter_moves_the_delay() -> None:
    assert decide(ExponentialDelay(), 0, 5000, jitter=1.0)[1].delay_ms == 1650
    assert decide(ExponentialDelay(), 0, 5000, jitter=-1.0)[1].delay_ms == 1350


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("none", NoRestart()),
        ("off", NoRestart()),
        ("disable", NoRestart()),
        ("fixed-delay", FixedDelay(1, 1000)),
        ("failure-rate", FailureRate(1, 60_000, 1000)),
        ("exponential-delay", ExponentialDelay(1000, 1.5, 60_000, 3_600_000, 0.1, UNLIMITED)),
    ],
)
def test_names_and_defaults(kind: str, made: RestartStrategy) -> None:
    assert restart_strategy_from(kind) == made


def test_values_reach_their_strategy() -> None:
    fixed = restart_strategy_from("fixed-delay", fixed_delay_attempts=7, fixed_delay_delay_ms=9)
    assert fixed == FixedDelay(7, 9)
    assert restart_strategy_from(
        "failure-rate", failure_rate_max_failures=2, failure_rate_interval_ms=3, failure_rate_delay_ms=4
    ) == FailureRate(2, 3, 4)
    assert restart_strategy_from(
        "exponential-delay",
        exponential_initial_backoff_ms=1,
        exponential_multiplier=2.0,
        exponential_max_backoff_ms=3,
        exponential_reset_threshold_ms=4,
        exponential_jitter_factor=0.5,
        exponential_attempts_before_reset=6,
    ) == ExponentialDelay(1, 2.0, 3, 4, 0.5, 6)


def test_values_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(InvalidOption, match="restart-strategy.type is 'sometimes'"):
        restart_strategy_from("sometimes")
    with pytest.raises(InvalidOption, match=r"max-backoff \(10 ms\) is below .*initial-backoff \(1000 ms\)"):
        restart_strategy_from("exponential-delay", exponential_max_backoff_ms=10)
