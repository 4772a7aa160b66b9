"""A leader in doubt: its time stands still and it decides nothing, whatever the doubt is of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.runtime.jobmaster.job_bench import JOB, TM1, Bench
from tests.runtime.resourcemanager.test_resource_manager import Bench as ClusterBench
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, TaskManagerId
from yarnflow.core.messages import DriverPhase, TaskManagerHeartbeat
from yarnflow.core.states import JobStatus
from yarnflow.errors import LeadershipLost
from yarnflow.runtime.leader_clock import PAUSE_MS, Doubt, LeaderClock
from yarnflow.testing.runtime import InlineMailbox, ManualClock
from yarnflow.testing.stores import FakeJobStores


def seconds(bench: Bench | ClusterBench, count: int, each: Callable[[], object] = lambda: None) -> None:
    """Time goes by while this process runs."""
    for _ in range(count):
        bench.run(1_000)
        each()


# --- the clock ------------------------------------------------------------------


def test_it_stands_still_until_the_last_doubt_is_over() -> None:
    clock = ManualClock(0)
    lead = LeaderClock(clock)
    clock.advance(1_000)
    lead.doubt(Doubt.CONNECTION)
    clock.advance(2_000)
    lead.doubt(Doubt.PAUSE)
    lead.settle(Doubt.CONNECTION)
    clock.advance(2_000)
    assert lead.monotonic_ms() == 1_000 and not lead.is_certain()
    assert lead.now_ms() == 5_000
    lead.settle(Doubt.PAUSE)
    clock.advance(10)
    assert lead.monotonic_ms() == 1_010 and lead.is_certain()


def test_a_pause_of_its_own_is_a_doubt_and_no_time() -> None:
    """Whoever looks first after ``SIGSTOP`` finds the clock where it was."""
    clock = ManualClock(0)
    lead = LeaderClock(clock)
    clock.advance(1_000)
    assert lead.monotonic_ms() == 1_000
    clock.advance(PAUSE_MS + 1)
    assert not lead.is_certain() and lead.doubts() == {Doubt.PAUSE}
    assert lead.monotonic_ms() == 1_000, "time never goes back"
    lead.settle(Doubt.PAUSE)
    assert lead.monotonic_ms() == 1_000


def test_nothing_runs_and_all_of_it_comes_later() -> None:
    clock = ManualClock(0)
    lead = LeaderClock(clock)
    mailbox = InlineMailbox("m", lead, may_run=lead.is_certain)
    ran: list[str] = []
    mailbox.schedule(100, lambda: ran.append("timer"))
    lead.doubt(Doubt.CONNECTION)
    mailbox.post(lambda: ran.append("post"))
    clock.advance(1_000)
    mailbox.run_pending()
    assert ran == []
    with pytest.raises(LeadershipLost, match="in doubt"):
        mailbox.call(lambda: ran.append("call"), 1_000)
    lead.settle(Doubt.CONNECTION)
    mailbox.run_pending()
    assert ran == ["post"]
    clock.advance(100)
    mailbox.run_pending()
    assert ran == ["post", "timer"]


# --- a job ----------------------------------------------------------------------


def test_a_leader_that_was_halted_kills_no_driver() -> None:
    """The drivers may be a new leader's by now."""
    bench = Bench(lead=True).running()
    bench.run(60_000)
    assert bench.launcher.killed == [] and bench.status() is JobStatus.RUNNING
    bench.settle(Doubt.PAUSE)
    bench.run(500)
    assert bench.launcher.killed == []
    seconds(bench, 5)
    assert len(bench.launcher.killed) == 1, "its silence since does count"


def test_a_driver_that_went_on_is_heard_first() -> None:
    bench = Bench(lead=True).running()
    seconds(bench, 2)
    bench.doubt()
    seconds(bench, 30, lambda: bench.report(DriverPhase.RUNNING, "0", batch=3))
    bench.settle(Doubt.CONNECTION)
    bench.run()
    assert bench.details.queries[0].batch_id == 3
    assert bench.launcher.killed == [] and bench.status() is JobStatus.RUNNING


def test_restarts_wait_for_zookeeper() -> None:
    bench = Bench(lead=True).running().report(DriverPhase.RUNNING, "0", batch=1)
    bench.doubt()
    bench.launcher.end(bench.driver_id, -9)
    seconds(bench, 10)
    assert len(bench.launcher.assignments) == 1
    bench.settle(Doubt.CONNECTION)
    seconds(bench, 2)
    assert len(bench.launcher.assignments) == 2


@pytest.mark.parametrize("status", [64, 63])
def test_an_outage_of_zookeeper_is_not_counted(status: int) -> None:
    bench = Bench("none", lead=True).running()
    bench.launcher.end(bench.driver_id, status, "error: ZooKeeper is away")
    bench.run()
    assert bench.status() is JobStatus.RESTARTING and bench.details.restarts == 0
    seconds(bench, 1)
    assert len(bench.launcher.assignments) == 2


def test_adopted_drivers_that_an_outage_ended_are_not_counted() -> None:
    stores = FakeJobStores(highly_available=True)
    old = DriverId("driver-of-the-master-before")
    stores.lease_table.hold(DriverLeaseInfo(JOB, old, "driver:1", "host", 42, epoch=1, attempt=3))
    bench = Bench("none", stores=stores, recovered=True, lead=True).start()
    bench.offer(TM1, 2)
    bench.register(old, attempt=3)
    bench.adopted_driver, bench.attempt = old, 3
    bench.report(DriverPhase.RUNNING, "0")
    bench.doubt()
    bench.stores.lease_table.expire(JOB)
    seconds(bench, 60)
    bench.settle(Doubt.CONNECTION)
    bench.run()
    assert bench.status() is JobStatus.RESTARTING and bench.details.restarts == 0


# --- the cluster ----------------------------------------------------------------


@pytest.mark.parametrize("halted", [True, False])
def test_no_worker_is_given_up_for_a_silence_of_its_own(halted: bool) -> None:
    bench = ClusterBench(lead=True)
    bench.manager.declare_requirements(JOB, 2)
    bench.register("tm-1", worker="w-1")
    if halted:
        bench.run(600_000)
    else:
        bench.time.doubt(Doubt.CONNECTION)
        seconds(bench, 600)
    assert bench.lost == [] and bench.provider.released == []
    bench.manager.resumed()
    bench.time.settle(Doubt.PAUSE if halted else Doubt.CONNECTION)
    seconds(bench, 9)
    assert bench.lost == []
    bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1")))
    seconds(bench, 9)
    assert bench.lost == []
    seconds(bench, 2)
    assert [name for name, _reason in bench.lost] == ["tm-1"]


def test_no_worker_is_asked_for_while_in_doubt() -> None:
    bench = ClusterBench(lead=True)
    bench.time.doubt(Doubt.CONNECTION)
    bench.manager.declare_requirements(JOB, 4)
    seconds(bench, 5)
    assert bench.provider.requests == []
    with pytest.raises(LeadershipLost):
        bench.register("tm-1")
    bench.time.settle(Doubt.CONNECTION)
    bench.run()
    assert bench.provider.requests == [2]
