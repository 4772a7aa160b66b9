"""Times between attempts and signs of life."""

from __future__ import annotations

from yarnflow.runtime.registration import RegistrationBackoff, jittered


def test_delays_double_up_to_a_bound_and_are_spread() -> None:
    backoff = RegistrationBackoff(100, 1_000)
    for failures, longest in ((1, 100), (2, 200), (4, 800), (5, 1_000), (10_000, 1_000)):
        delays = [backoff.delay_ms(failures) for _ in range(200)]
        assert longest * 0.8 <= min(delays) and max(delays) <= longest
        assert len(set(delays)) > 5


def test_many_that_begin_together_do_not_stay_together() -> None:
    """The thousand heartbeats of a new leader's TaskManagers: after some rounds they fill the interval."""
    at_ms = [0] * 1_000
    for _ in range(20):
        at_ms = [time_ms + jittered(10_000) for time_ms in at_ms]
    in_interval = {time_ms % 10_000 // 1_000 for time_ms in at_ms}
    assert in_interval == set(range(10))
