"""Which driver waits for another job, and which job gets it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from yarnflow.core.ids import DriverId
from yarnflow.core.job_run.kept_drivers import KeptDriver, KeptDrivers

OPTIONS = {"parallelism.default": "2"}
FIRST = KeptDriver(DriverId("d1"), 1600, OPTIONS, 1, 3)
SECOND = replace(FIRST, driver_id=DriverId("d2"))
NONE = KeptDrivers(idle_timeout_ms=1_000)
WAITING = NONE.keep(FIRST, 500)[0]


def test_a_job_with_the_same_options_gets_it_and_nobody_else() -> None:
    left, driver, ended = WAITING.take(1600, dict(OPTIONS))
    assert (driver, ended) == (FIRST, ())
    assert left.take(1600, OPTIONS)[1:] == (None, ())


@pytest.mark.parametrize(
    ("memory_mib", "options"), [(1601, OPTIONS), (1600, {}), (1600, {**OPTIONS, "spark.x": "1"})]
)
def test_it_ends_when_a_job_needs_another_kind(memory_mib: int, options: dict[str, str]) -> None:
    left, driver, ended = WAITING.take(memory_mib, options)
    assert (driver, ended) == (None, ("d1",))
    assert left.waiting is None


def test_one_waits_at_most() -> None:
    later, ended = WAITING.keep(SECOND, 900)
    assert ended == ("d1",)
    assert later.take(1600, OPTIONS)[1] == SECOND


def test_it_does_not_wait_for_ever() -> None:
    assert WAITING.at(1_499) == (WAITING, ())
    left, ended = WAITING.at(1_500)
    assert (left.waiting, ended) == (None, ("d1",))
    # the time of the one before is not that of the next
    assert WAITING.keep(SECOND, 1_400)[0].at(1_500)[1] == ()


def test_one_that_has_ended_is_nobody_s() -> None:
    assert WAITING.exited(DriverId("d2")) == WAITING
    assert WAITING.exited(DriverId("d1")).take(1600, OPTIONS)[1:] == (None, ())
