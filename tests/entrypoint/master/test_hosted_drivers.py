"""What a leader is told of the drivers that a standby has started for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.patience import PATIENCE
from tests.runtime.driver.driver_harness import ASSIGNMENT
from yarnflow.core.ids import DriverId
from yarnflow.core.messages import DriverPhase, DriverReport, Fence, LeaderInfo
from yarnflow.entrypoint.master.hosted_drivers import DriverEnd, HostedDrivers
from yarnflow.errors import (
    DriverLost,
    InvalidMemory,
    JobNotFound,
    LeadershipLost,
    ResourceError,
    RpcUnavailable,
    StaleEpoch,
    YarnflowError,
)
from yarnflow.testing.driver_launcher import FakeDriverLauncher
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.gateways.job_master import FakeJobMaster

LEADER = LeaderInfo(Fence("l", 3), "leader:1", "1", "c")
NEXT_LEADER = LeaderInfo(Fence("m", 4), "leader:2", "1", "c")
DRIVER = ASSIGNMENT.driver_id


def _await_reports() -> None:
    while threads := [each for each in threading.enumerate() if each.name.startswith("report-")]:
        for thread in threads:
            thread.join(PATIENCE.thread_s)
            assert not thread.is_alive(), thread.name


class World:
    def __init__(self, reports: bool = True) -> None:
        self.own, self.job_master = FakeDriverLauncher(), FakeJobMaster()
        self.next_job_master = FakeJobMaster()
        #: known leaders from look to look; the last one stays
        self.leaders: list[LeaderInfo | None] = [LEADER]
        gateways = FakeGateways(
            job_masters={LEADER.address: self.job_master, NEXT_LEADER.address: self.next_job_master}
        )
        self.hosted = HostedDrivers(self.own, self._known_leader, gateways, retry_s=0, waiting_s=0)
        if reports:
            self.hosted.report_ends()
        self.hosted.launch(ASSIGNMENT, 1000)

    def _known_leader(self) -> LeaderInfo | None:
        return self.leaders.pop(0) if len(self.leaders) > 1 else self.leaders[0]

    def end(
        self, driver_id: DriverId = DRIVER, status: int = -100, tail: str = "on a lost node"
    ) -> list[DriverReport]:
        """The driver ends; returns what the leader has been told by then."""
        self.own.end(driver_id, status, tail)
        _await_reports()
        return self.job_master.reports


def test_the_end_of_a_driver_is_its_last_report() -> None:
    world = World()
    assert world.own.assignments == [ASSIGNMENT] and world.hosted.runs(DRIVER)
    (report,) = world.end()
    assert (report.job_id, report.driver_id, report.attempt) == (ASSIGNMENT.job_id, DRIVER, 0)
    assert report.phase is DriverPhase.FAILED and report.driver_unusable
    assert report.error is not None and report.error.code == DriverLost.code
    assert "ended by YARN" in report.error.message and "lost node" in report.error.message
    assert len(world.end()) == 1, "told once"


def test_an_error_of_ours_stays_what_it_is() -> None:
    (report,) = World().end(status=InvalidMemory.exit_code, tail="noise\nerror: too large")
    assert report.error is not None
    assert (report.error.code, report.error.message) == (InvalidMemory.code, "too large")


@pytest.mark.parametrize("why", ["another's driver", "no leader", "it leads itself", "no containers"])
def test_nothing_is_told(why: str) -> None:
    world = World(reports=why != "no containers")
    if why == "no leader":
        world.leaders = [None]
    if why == "it leads itself":
        world.hosted.close()
    driver_id = DriverId("driver-other") if why == "another's driver" else DRIVER
    assert world.end(driver_id) == []
    kept = [(driver_id, -100, "on a lost node")] if why in ("another's driver", "no leader") else []
    assert world.hosted.close() == kept, "what this master hears of when it leads"


def test_an_end_that_was_not_taken_is_kept() -> None:
    world = World()
    world.job_master.report_error = RpcUnavailable("nobody listens")
    assert world.end() == []
    assert len(world.hosted.close()) == 1, "for when this master leads"


def test_a_driver_that_could_not_be_started_is_not_this_masters() -> None:
    world = World()
    other = replace(ASSIGNMENT, driver_id=DriverId("driver-other"))
    world.own.error = ResourceError("no more processes")
    with pytest.raises(ResourceError):
        world.hosted.launch(other, 1000)
    assert world.end(other.driver_id) == [], "the leader has had the error for an answer"


def test_an_end_is_told_as_soon_as_the_leader_is_known() -> None:
    world = World()
    world.leaders = [None, None, LEADER]
    assert len(world.end()) == 1
    assert world.hosted.close() == [], "it is not told again when this master leads"


@pytest.mark.parametrize("error", [RpcUnavailable("it is gone"), StaleEpoch("it leads no more")])
def test_an_end_that_a_lost_leader_did_not_take_is_told_to_the_next_one(error: YarnflowError) -> None:
    world = World()
    world.job_master.report_error = error
    world.leaders = [LEADER, None, NEXT_LEADER]
    assert world.end() == [] and len(world.next_job_master.reports) == 1
    assert world.hosted.close() == []


@pytest.mark.parametrize("error", [DriverLost("it was replaced"), JobNotFound("no such job")])
def test_an_end_that_nobody_waits_for_is_told_once(error: YarnflowError) -> None:
    world = World()
    world.job_master.report_error = error
    assert world.end() == []
    assert world.job_master.refused == 1 and world.hosted.close() == []


def test_nobody_is_told_once_this_master_leads() -> None:
    world = World()
    looks = 0

    def leads() -> LeaderInfo | None:
        nonlocal looks
        looks += 1
        assert looks == 1, "looked for another leader"
        kept.extend(world.hosted.close())
        return None

    kept: list[DriverEnd] = []
    world.hosted = HostedDrivers(world.own, leads, FakeGateways(), retry_s=0)
    world.hosted.report_ends()
    world.hosted.launch(ASSIGNMENT, 1000)
    world.end()
    assert looks == 1 and kept == [(DRIVER, -100, "on a lost node")]


class Waiting(World):
    """A driver without a container; the fake JobMaster's next answers are those that the test gives."""

    def __init__(self, *answers: YarnflowError | Callable[[], None]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.job_master.before_report = self._answer

    def _answer(self) -> None:
        answer = self.answers.pop(0) if self.answers else lambda: None
        if isinstance(answer, YarnflowError):
            raise answer
        answer()

    def phases(self) -> list[DriverPhase]:
        """What the leader has been told when there is no more to tell."""
        if not self.job_master.reports:
            self.own.wait(DRIVER)
        _await_reports()
        assert all((each.job_id, each.attempt) == (ASSIGNMENT.job_id, 0) for each in self.job_master.reports)
        return [each.phase for each in self.job_master.reports]


def test_a_driver_that_waits_for_its_container_lives_until_it_is_granted() -> None:
    waiting = Waiting(
        *(lambda: None, RpcUnavailable("busy"), LeadershipLost("not yet"), lambda: None),
        lambda: waiting.own.wait(DRIVER, False),
        lambda: None,
    )
    assert waiting.phases() == [DriverPhase.IDLE] * 4, "the last one as it is granted"
    assert not waiting.answers and not waiting.own.killed
    waiting.end()
    assert waiting.phases()[4:] == [DriverPhase.FAILED]


@pytest.mark.parametrize("error", [DriverLost("it was replaced"), JobNotFound("no such job")])
def test_the_request_of_a_driver_that_nobody_wants_is_withdrawn(error: YarnflowError) -> None:
    waiting = Waiting(lambda: None, error)
    waiting.own.on_kill = lambda driver_id: waiting.own.end(driver_id, -9)
    assert waiting.phases() == [DriverPhase.IDLE, DriverPhase.FAILED] and waiting.own.killed == [DRIVER]


def test_a_master_that_leads_gives_up_drivers_that_wait() -> None:
    waiting = Waiting(lambda: None, lambda: closed.extend(waiting.hosted.close()))
    closed: list[DriverEnd] = []
    assert waiting.phases() == [DriverPhase.IDLE] * 2 and waiting.own.killed == [DRIVER] and not closed
    waiting.own.wait(DRIVER, False)
    assert len(waiting.phases()) == 2


def test_drivers_of_others_are_not_reported_for() -> None:
    world = World()
    world.own.wait(DriverId("driver-other"))
    world.own.wait(DRIVER, False)
    assert world.end(DriverId("driver-other")) == []
