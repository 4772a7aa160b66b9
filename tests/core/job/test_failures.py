"""Which failures no restart cures, and which are one that has been cured."""

from __future__ import annotations

import pytest

from yarnflow.core.job.failures import FailurePolicy, ended_by, error_info
from yarnflow.core.job.restart import ExponentialDelay
from yarnflow.errors import (
    JobFailed,
    StateDamaged,
    StateWentBack,
    StorageUnavailable,
    YarnflowError,
)


@pytest.mark.parametrize("has_committed", [False, True])
@pytest.mark.parametrize(
    "error, goes_on",
    [
        # the files are the same at the next attempt
        (StateDamaged("commits/5 is empty"), False),
        # they were brought back to what is sound
        (StateWentBack("commits/5 is empty; goes on from batch 4"), True),
        # they may be there later
        (StorageUnavailable("no answer"), True),
    ],
)
def test_damaged_state_does_not_restart_for_ever(
    error: YarnflowError, goes_on: bool, has_committed: bool
) -> None:
    policy = FailurePolicy(ExponentialDelay(), has_committed=has_committed)
    _, decision = policy.decide(error_info(error), False, 0, 0.0)
    assert (decision is not None) is goes_on


def test_what_has_worked_may_have_failed_by_accident() -> None:
    policy = FailurePolicy(ExponentialDelay())
    error = error_info(JobFailed("x"))
    assert policy.decide(error, False, 0, 0.0)[1] is None
    assert policy.committed().decide(error, False, 0, 0.0)[1] is not None


@pytest.mark.parametrize(
    ("status", "tail", "said"),
    [
        (0, "bye", "ended by status 0"),
        (3, "a\nb", "ended by status 3: b"),
        (-9, "b", "ended by signal 9"),
        (-100, "on a lost node", "was ended by YARN (status -100): on a lost node"),
    ],
)
def test_how_a_process_ended(status: int, tail: str, said: str) -> None:
    assert ended_by(status, tail) == said
