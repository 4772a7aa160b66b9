"""When a job may run and when it gives up, by scheduler."""

from __future__ import annotations

import pytest

from yarnflow.core.resources.scheduling import NEVER_MS, SchedulerKind, SchedulerSettings, SlotWait

DEFAULT = SchedulerSettings(SchedulerKind.DEFAULT, slot_request_timeout_ms=100)
ADAPTIVE = SchedulerSettings(
    SchedulerKind.ADAPTIVE, resource_wait_timeout_ms=100, stabilization_timeout_ms=20
)


def wait(settings: SchedulerSettings, required: int = 3) -> SlotWait:
    """A wait that begins at 1000."""
    return SlotWait(settings, required).waiting(1000)


@pytest.mark.parametrize("settings", [DEFAULT, ADAPTIVE])
def test_all_slots_are_enough_at_once(settings: SchedulerSettings) -> None:
    made = wait(settings).with_slots(3, 1001)
    assert made.may_run(1001)
    assert made.check_at_ms == NEVER_MS
    assert not made.is_hopeless(9999, working=False)


def test_default_waits_for_every_slot() -> None:
    made = wait(DEFAULT).with_slots(2, 1010)
    assert made.check_at_ms == 1100
    assert not made.may_run(9999)
    assert not made.is_hopeless(1099, working=False)
    assert made.is_hopeless(1100, working=False)


def test_default_goes_on_with_fewer_while_something_works() -> None:
    made = wait(DEFAULT).with_slots(3, 1010).begin().with_slots(2, 2000).waiting(2000)
    assert made.may_run(2000)
    assert not made.is_hopeless(2100, working=True)
    assert made.is_hopeless(2100, working=False)
    assert not made.with_slots(0, 2000).may_run(2000)


def test_default_needs_all_of_them_again_for_a_new_driver() -> None:
    made = wait(DEFAULT).with_slots(3, 1010).begin().with_slots(2, 2000).driver_lost()
    assert not made.may_run(2000)


def test_adaptive_starts_once_no_further_slot_comes() -> None:
    made = wait(ADAPTIVE)
    assert made.check_at_ms == 1100
    made = made.with_slots(1, 1010)
    assert made.check_at_ms == 1030
    assert not made.may_run(1029)
    made = made.with_slots(2, 1025)
    assert not made.may_run(1044)
    assert made.may_run(1045)


def test_adaptive_waits_no_longer_than_it_may() -> None:
    made = wait(ADAPTIVE).with_slots(1, 1095)
    assert made.check_at_ms == 1100
    assert made.may_run(1100)
    assert not made.is_hopeless(9999, working=False)


def test_adaptive_without_a_slot_gives_up() -> None:
    made = wait(ADAPTIVE)
    assert not made.is_hopeless(1099, working=False)
    assert made.is_hopeless(1100, working=False)
    assert not made.may_run(1100)


def test_adaptive_never_ends_for_slots_while_it_has_one() -> None:
    made = wait(ADAPTIVE).with_slots(3, 1010).begin().with_slots(1, 2000).waiting(2000)
    assert made.may_run(2000)
    assert made.check_at_ms == NEVER_MS
    assert not made.is_hopeless(99_999, working=False)
    came = made.waiting(2995).with_slots(2, 3000).driver_lost()
    assert came.may_run(3000), "a new driver waits for slots the job has done without"
    assert made.with_slots(0, 3000).waiting(3000).is_hopeless(3100, working=False)


def test_adaptive_takes_what_there_is_when_there_can_never_be_more() -> None:
    made = wait(ADAPTIVE).refused(1005)
    assert made.check_at_ms == 1025
    assert made.is_hopeless(1025, working=False)
    assert made.refused(1024).check_at_ms == 1025, "being told again makes it wait longer"
    made = made.with_slots(1, 1006)
    assert made.may_run(1026)
    assert not made.is_hopeless(9999, working=False)
