from __future__ import annotations

from random import Random

import pytest

from yarnflow.core.ids import DriverId
from yarnflow.core.job_run.driver_starts import DriverStarts

A, B, C, D = (DriverId(name) for name in "abcd")


def test_those_beyond_the_limit_wait_in_order() -> None:
    starts = DriverStarts(2)
    for driver_id in (A, B, C, D, C, A):
        starts = starts.asked(driver_id)
    assert starts.starting == {A, B} and starts.waiting == (C, D)
    starts = starts.over(C)
    assert starts.starting == {A, B} and starts.waiting == (D,), "one that is not wanted any more"
    assert starts.over(A).starting == {B, D}
    assert starts.over(DriverId("adopted")) == starts


def test_without_limit_nobody_waits() -> None:
    starts = DriverStarts(0).asked(A).asked(B)
    assert starts.starting == {A, B} and not starts.waiting


@pytest.mark.parametrize("seed", range(20))
def test_never_more_than_the_limit_and_never_idle(seed: int) -> None:
    random = Random(seed)
    starts = DriverStarts(3)
    wanted: set[DriverId] = set()
    for _ in range(200):
        driver_id = DriverId(str(random.randrange(10)))
        if random.random() < 0.6:
            starts, wanted = starts.asked(driver_id), wanted | {driver_id}
        else:
            starts, wanted = starts.over(driver_id), wanted - {driver_id}
        assert starts.starting | set(starts.waiting) == wanted
        assert len(starts.starting) == min(3, len(wanted))
        assert len(starts.waiting) == len(set(starts.waiting) - starts.starting)
