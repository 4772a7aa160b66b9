"""Where hot spares are started."""

from __future__ import annotations

import threading
from dataclasses import replace

from tests.patience import PATIENCE
from tests.runtime.driver.driver_harness import ASSIGNMENT
from yarnflow.core.ids import DriverId
from yarnflow.errors import LeadershipLost, RpcTimeout
from yarnflow.runtime.jobmaster.hot_spare_launcher import (
    STANDBY_PATIENCE_MS,
    STANDBY_SETTLES_MS,
    HotSpareLauncher,
)
from yarnflow.runtime.placement.standby_hosts import NOT_ASKED_MS, StandbyHosts
from yarnflow.testing.driver_launcher import FakeDriverLauncher
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.gateways.master import FakeMaster
from yarnflow.testing.runtime import ManualClock


class Place:
    def __init__(self, expected: bool = True, **masters: FakeMaster) -> None:
        self.own, self.clock = FakeDriverLauncher(), ManualClock()
        self.standbys = tuple(masters)
        hosts = StandbyHosts(FakeGateways(masters=dict(masters)), self.clock)
        self.launcher = HotSpareLauncher(self.own, hosts, lambda: self.standbys, expected, self.clock)

    def run_the_jobs_driver(self) -> None:
        """It is this master's, as it was launched here."""
        self.own.assignments.append(replace(ASSIGNMENT, driver_id=DriverId("the-jobs")))


def test_the_next_leader_keeps_it() -> None:
    first, second = FakeMaster(), FakeMaster()
    place = Place(first=first, second=second)
    place.launcher.launch(ASSIGNMENT, 1000)
    assert first.asked.wait(PATIENCE.thread_s)
    assert first.hosted == [ASSIGNMENT]
    assert not second.hosted and not place.own.assignments


def test_one_that_refuses_is_passed_over() -> None:
    first, second = FakeMaster(error=LeadershipLost("who are you")), FakeMaster()
    Place(first=first, second=second).launcher.launch(ASSIGNMENT, 1000)
    assert second.asked.wait(PATIENCE.thread_s)
    assert second.hosted == [ASSIGNMENT]


def test_it_is_kept_here_where_there_is_no_other() -> None:
    place = Place(first=FakeMaster(error=LeadershipLost("no")))
    place.launcher.launch(ASSIGNMENT, 1000)
    assert place.own.launched.wait(PATIENCE.thread_s)
    assert place.own.assignments == [ASSIGNMENT]


def test_one_that_may_have_been_started_is_not_started_twice() -> None:
    first = FakeMaster(error=RpcTimeout("no answer"))
    place = Place(first=first)
    place.launcher.launch(ASSIGNMENT, 1000)
    assert first.asked.wait(PATIENCE.thread_s)
    _await_placed()
    assert place.own.assignments == []


def _await_placed() -> None:
    for thread in threading.enumerate():
        if thread.name == "place-hot-spare":
            thread.join(PATIENCE.thread_s)


def test_a_standby_that_should_come_is_waited_for() -> None:
    place = Place()
    assert place.launcher.awaits_standby()
    place.standbys = ("first",)
    assert place.launcher.awaits_standby(), "its TaskManagers are still to come"
    place.clock.advance(STANDBY_SETTLES_MS)
    assert not place.launcher.awaits_standby()


def test_but_not_without_end() -> None:
    place = Place()
    place.clock.advance(STANDBY_PATIENCE_MS)
    assert not place.launcher.awaits_standby()


def _moves(place: Place, driver_id: str = ASSIGNMENT.driver_id) -> bool:
    return place.launcher.misplaced(DriverId(driver_id), DriverId("the-jobs"))


def _kept_here(expected: bool = False, **masters: FakeMaster) -> Place:
    place = Place(expected, **masters)
    place.run_the_jobs_driver()
    place.launcher.launch(ASSIGNMENT, 1000)
    assert place.own.launched.wait(PATIENCE.thread_s)
    return place


def test_it_moves_when_a_standby_comes() -> None:
    place = _kept_here()
    assert not _moves(place), "where to?"
    place.standbys = ("second",)
    assert _moves(place)


def test_it_stays_where_the_jobs_driver_is_not() -> None:
    place = _kept_here()
    place.standbys = ("second",)
    place.own.kill(DriverId("the-jobs"))
    assert not _moves(place)


def test_it_stays_where_it_is_when_that_is_another_master() -> None:
    place = Place(first=FakeMaster())
    place.run_the_jobs_driver()
    assert not _moves(place)


def test_it_does_not_go_to_and_fro_between_masters_that_refuse_it() -> None:
    place = _kept_here(first=FakeMaster(error=LeadershipLost("no")))
    assert not _moves(place)
    place.standbys = ("first", "second")
    assert _moves(place)
    place.standbys = ("first",)
    place.clock.advance(NOT_ASKED_MS)
    assert _moves(place), "it may have been in doubt itself"
    place.own.launched.clear()
    place.launcher.launch(ASSIGNMENT, 1000)
    assert place.own.launched.wait(PATIENCE.thread_s)
    place.clock.advance(NOT_ASKED_MS)
    assert not _moves(place), "not so soon again"


def test_one_that_does_not_answer_is_not_asked_again_at_once() -> None:
    first = FakeMaster(error=RpcTimeout("no answer"))
    place = Place(first=first)
    place.launcher.launch(ASSIGNMENT, 1000)
    assert first.asked.wait(PATIENCE.thread_s)
    _await_placed()
    place.launcher.launch(ASSIGNMENT, 1000)
    assert place.own.launched.wait(PATIENCE.thread_s)
    assert place.own.assignments == [ASSIGNMENT]


def test_it_moves_when_the_standbys_task_managers_have_had_their_time() -> None:
    place = _kept_here(expected=True)
    place.standbys = ("second",)
    assert not _moves(place)
    place.clock.advance(STANDBY_SETTLES_MS)
    assert _moves(place)
    place.standbys = ("third",)
    assert not _moves(place), "one standby's time is not another's"


def test_nobody_is_waited_for_where_none_comes_by_itself() -> None:
    assert not Place(expected=False).launcher.awaits_standby()
