from __future__ import annotations

import threading
from dataclasses import replace

from tests.patience import PATIENCE
from tests.runtime.driver.driver_harness import ASSIGNMENT
from yarnflow.core.ids import DriverId
from yarnflow.core.messages import DriverAssignment
from yarnflow.errors import LeadershipLost, RpcTimeout
from yarnflow.runtime.placement.standby_first import StandbyFirstLauncher
from yarnflow.runtime.placement.standby_hosts import NOT_ASKED_MS, StandbyHosts
from yarnflow.testing.driver_launcher import FakeDriverLauncher
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.gateways.master import FakeMaster
from yarnflow.testing.runtime import ManualClock


class Place:
    def __init__(self, **masters: FakeMaster) -> None:
        self.own, self.clock = FakeDriverLauncher(), ManualClock()
        self.masters = masters
        hosts = StandbyHosts(FakeGateways(masters=dict(masters)), self.clock)
        self.launcher = StandbyFirstLauncher(self.own, hosts, lambda: tuple(masters))

    def launch(self, number: int) -> DriverAssignment:
        """Launch a driver and wait until it has a place."""
        assignment = replace(ASSIGNMENT, driver_id=DriverId(f"driver-{number}"))
        self.launcher.launch(assignment, 1000)
        for thread in threading.enumerate():
            if thread.name == "place-driver":
                thread.join(PATIENCE.thread_s)
        return assignment


def test_standbys_have_drivers_in_turn() -> None:
    first, second = FakeMaster(), FakeMaster()
    place = Place(first=first, second=second)
    drivers = [place.launch(number) for number in range(4)]
    assert first.hosted == [drivers[0], drivers[2]] and second.hosted == [drivers[1], drivers[3]]
    assert not place.own.assignments


def test_it_is_the_leaders_while_no_standby_takes_it() -> None:
    alone = Place()
    assert alone.own.assignments == [alone.launch(1)]
    refusing = FakeMaster(error=LeadershipLost("who are you"))
    place = Place(first=refusing)
    driver = place.launch(1)
    assert place.own.assignments == [driver] and place.launcher.runs(driver.driver_id)
    place.launcher.kill(driver.driver_id)
    assert place.own.killed == [driver.driver_id]
    refusing.error = None
    place.launch(2)
    assert not refusing.hosted, "not asked again so soon"
    place.clock.advance(NOT_ASKED_MS)
    third = place.launch(3)
    assert refusing.hosted == [third] and third not in place.own.assignments


def test_a_standby_that_hangs_is_passed_over_and_has_no_order() -> None:
    hangs, second = FakeMaster(down=RpcTimeout("no answer")), FakeMaster()
    place = Place(first=hangs, second=second)
    driver = place.launch(1)
    assert second.hosted == [driver] and not hangs.asked.is_set() and not place.own.assignments
    hangs.down = None
    drivers = [place.launch(number) for number in (2, 3)]
    assert second.hosted == [driver, *drivers] and not hangs.asked.is_set(), "not asked again so soon"
    place.clock.advance(NOT_ASKED_MS)
    place.launch(4)
    place.launch(5)
    assert len(hangs.hosted) == 1


def test_one_that_may_have_been_started_is_not_started_twice() -> None:
    place = Place(first=FakeMaster(error=RpcTimeout("no answer")))
    place.launch(1)
    assert not place.own.assignments
