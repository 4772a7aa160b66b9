from __future__ import annotations

from dataclasses import replace

import pytest

from tests.runtime.driver.driver_harness import ASSIGNMENT
from yarnflow.core.ids import DriverId
from yarnflow.errors import ResourceError
from yarnflow.runtime.placement.paced_launcher import PacedLauncher
from yarnflow.testing.driver_launcher import FakeDriverLauncher


class Pace:
    def __init__(self, limit: int) -> None:
        self.own = FakeDriverLauncher()
        self.waits: list[tuple[str, bool]] = []
        self.failures: list[tuple[str, str]] = []
        self.launcher = PacedLauncher(
            self.own,
            limit,
            lambda job_id, driver_id, waits: self.waits.append((driver_id, waits)),
            lambda job_id, driver_id, error: self.failures.append((driver_id, str(error))),
        )

    def launch(self, *names: str) -> None:
        for name in names:
            self.launcher.launch(replace(ASSIGNMENT, driver_id=DriverId(name)), 1000)

    @property
    def started(self) -> list[str]:
        return [assignment.driver_id for assignment in self.own.assignments]


def test_a_driver_waits_until_another_one_has_registered() -> None:
    pace = Pace(2)
    pace.launch("a", "b", "c", "d")
    assert pace.started == ["a", "b"] and pace.waits == [("c", True), ("d", True)]
    pace.launcher.settled(DriverId("b"))
    assert pace.started == ["a", "b", "c"] and pace.waits[2:] == [("c", False)]
    pace.launcher.settled(DriverId("b"))
    assert pace.started == ["a", "b", "c"], "it counts once"


def test_a_driver_that_is_killed_makes_room_and_never_starts_itself() -> None:
    pace = Pace(1)
    pace.launch("a", "b", "c")
    pace.launcher.kill(DriverId("b"))
    pace.launcher.kill(DriverId("a"))
    assert pace.started == ["a", "c"]


def test_a_driver_that_cannot_be_started_makes_room() -> None:
    pace = Pace(1)
    pace.own.error = ResourceError("no more processes")
    with pytest.raises(ResourceError):
        pace.launch("a")
    pace.own.error = None
    pace.launch("b")
    assert pace.started == ["b"] and not pace.waits


def test_drivers_that_cannot_be_started_when_it_is_their_turn_are_told_and_make_room() -> None:
    pace = Pace(2)
    pace.launch("a", "b", "c", "d", "e", "f")
    pace.own.errors = {
        DriverId("c"): ResourceError("no processes"),
        DriverId("d"): ResourceError("nor these"),
    }
    pace.launcher.settled(DriverId("a"))
    assert pace.started == ["a", "b", "e"]
    assert pace.failures == [("c", "no processes"), ("d", "nor these")]
    pace.launcher.settled(DriverId("e"))
    assert pace.started == ["a", "b", "e", "f"], "no order is lost"


def test_that_one_cannot_be_started_is_not_the_error_of_another_one() -> None:
    pace = Pace(1)
    pace.launch("a", "b")
    pace.own.error = ResourceError("no more processes")
    pace.launcher.kill(DriverId("a"))
    assert pace.own.killed == ["a"] and pace.failures == [("b", "no more processes")]
