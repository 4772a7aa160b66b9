"""Signals while a command watches a job."""

import signal
from types import FrameType

import pytest

from yarnflow.client.job_watch import interrupts_to


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


@pytest.mark.parametrize(("number", "times"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_a_parents_death_is_told_once_and_an_impatient_user_is_heard(number: int, times: int) -> None:
    """The kernel sends the signal of a parent's death for each of its threads, as they end."""
    told: list[KeyboardInterrupt] = []
    before = signal.signal(number, _interrupt)
    try:
        with interrupts_to(told.append):
            signal.raise_signal(number)
            signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    assert len(told) == times
