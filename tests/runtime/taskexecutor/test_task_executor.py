"""A TaskManager's endpoint: registration, slots, executors."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId
from yarnflow.core.messages import (
    ExecutorDescriptor,
    Fence,
    LeaderInfo,
    LogLevel,
    MetricDump,
    SlotRequest,
    TaskManagerRegistration,
)
from yarnflow.core.metrics import ScopeKind
from yarnflow.errors import (
    LeadershipLost,
    ResourceError,
    RpcUnavailable,
    SlotUnavailable,
    TaskManagerDismissed,
    TaskManagerNotFound,
    YarnflowError,
)
from yarnflow.runtime.registration import RegistrationBackoff
from yarnflow.runtime.taskexecutor.task_executor import TaskExecutor, TaskExecutorTimes
from yarnflow.testing.gateways.job_master import FakeJobMaster
from yarnflow.testing.gateways.resource_manager import FakeResourceManager
from yarnflow.testing.gateways.task_executor import FakeTaskExecutor
from yarnflow.testing.runtime import InlineEffects, InlineMailbox, ManualClock

JOB = JobId("a" * 32)
FOLLOWING = JobId("b" * 32)
LEADER = LeaderInfo(Fence("leader", 1), "jm:1", "0", "default")


class Bench:
    """A TaskExecutor of two slots; this object is its link and its processes."""

    def __init__(
        self, idle_timeout_ms: int = 0, take_metrics: Callable[[], tuple[MetricDump, ...]] = tuple
    ) -> None:
        self.clock = ManualClock()
        self.mailbox = InlineMailbox("te", self.clock)
        self.master = FakeResourceManager(LEADER)
        self.jobs = FakeJobMaster()
        self.started: list[ExecutorDescriptor] = []
        self.stopped: list[ExecutorId] = []
        #: executors that were cleared and handed over, with the job they were, or are
        self.cleared: list[tuple[ExecutorId, JobId]] = []
        self.handed_over: list[tuple[ExecutorId, JobId]] = []
        self.can_hand_over = True
        self.fatal: list[YarnflowError] = []
        self.lookups = 0
        self._exit: Callable[[JobId, ExecutorId, int, str], None] = lambda *_: None
        self.executor = TaskExecutor(
            2,
            self.clock,
            self.mailbox,
            InlineEffects(),
            self,
            self,
            TaskExecutorTimes(
                1_000,
                RegistrationBackoff(100, 1_000),
                60_000,
                1_000,
                executor_idle_timeout_ms=idle_timeout_ms,
            ),
            self.fatal.append,
            FakeTaskExecutor(logs={"taskmanager.log": b"one"}),
            take_metrics,
        )

    # link
    def resource_manager(self) -> FakeResourceManager:
        return self.master

    def job_master(self) -> FakeJobMaster:
        return self.jobs

    def forget_leader(self) -> None:
        self.lookups += 1

    def on_new_leader(self, listener: Callable[[], None]) -> None:
        self.new_leader = listener

    # processes; ``start`` is theirs
    def start(self, descriptor: ExecutorDescriptor) -> int:
        self.started.append(descriptor)
        return 4242

    def stop(self, executor_id: ExecutorId, job_id: JobId) -> None:
        self.stopped.append(executor_id)

    def clear(self, executor_id: ExecutorId, job_id: JobId) -> None:
        self.cleared.append((executor_id, job_id))

    def hand_over(self, executor_id: ExecutorId, job_id: JobId, to: JobId) -> bool:
        if self.can_hand_over:
            self.handed_over.append((executor_id, to))
        return self.can_hand_over

    def stop_all(self) -> None: ...

    def on_exit(self, listener: Callable[[JobId, ExecutorId, int, str], None]) -> None:
        self._exit = listener

    # driving
    def begin(self) -> Bench:
        self.executor.start(TaskManagerRegistration(TaskManagerId("tm-1"), "tm:1", "tm", 1, 2))
        return self.run()

    def run(self, ms: int = 0) -> Bench:
        self.clock.advance(ms)
        self.mailbox.run_pending()
        return self

    def give_slot(self, allocation: str = "a1", index: int = 0, job: JobId = JOB) -> Bench:
        self.executor.request_slot(SlotRequest(job, AllocationId(allocation), index))
        return self.run()

    def start_executor(
        self, executor: str = "0", *allocations: str, driver: str = "d", job: JobId = JOB
    ) -> None:
        self.executor.start_executor(
            ExecutorDescriptor(
                job,
                DriverId(driver),
                ExecutorId(executor),
                "spark://x@y:1",
                "app",
                1,
                tuple(AllocationId(a) for a in allocations or ("a1",)),
            )
        )

    def end_executor(self, executor: str, status: int) -> None:
        self._exit(JOB, ExecutorId(executor), status, "last words")
        self.run()


def test_it_registers_and_sends_heartbeats() -> None:
    bench = Bench().begin()
    assert len(bench.master.registrations) == 1
    assert len(bench.master.heartbeats) == 1
    bench.run(1_000).run(1_000)
    assert len(bench.master.heartbeats) == 3


def test_it_tries_again_with_growing_delays() -> None:
    bench = Bench()
    bench.master.error = RpcUnavailable("nobody")
    bench.begin()
    for _ in range(5):
        bench.run(100)
    bench.master.error = None
    bench.run(1_000)
    assert len(bench.master.registrations) == 1
    assert bench.lookups >= 3, "it never looked the leader up again"


def test_it_gives_up_without_a_master() -> None:
    bench = Bench()
    bench.master.error = RpcUnavailable("nobody")
    bench.begin()
    for _ in range(70):
        bench.run(1_000)
    assert "jobmanager.rpc.address" in str(bench.fatal[0])


def test_a_master_that_dropped_it_gets_it_back_with_slots_kept() -> None:
    bench = Bench().begin().give_slot()
    bench.master.error = TaskManagerNotFound("who?")
    bench.run(1_000)
    bench.master.error = None
    bench.run(1_000)
    assert len(bench.master.registrations) == 2
    assert bench.master.heartbeats[-1].slots[0].allocation_id == "a1"


def test_a_slot_is_offered_and_kept_when_accepted() -> None:
    bench = Bench().begin().give_slot()
    assert [(offer.allocation_id, offer.address) for offer in bench.jobs.offers] == [("a1", "tm:1")]
    with pytest.raises(SlotUnavailable):
        bench.give_slot("a2", 0)
    bench.give_slot("a1", 0)  # the same request again is no error


def test_a_slot_nobody_accepts_is_free_again() -> None:
    bench = Bench().begin()
    bench.jobs.accepts = False
    bench.give_slot()
    bench.jobs.accepts = True
    bench.give_slot("a2", 0)


def test_an_executor_needs_slots_of_its_job() -> None:
    bench = Bench().begin()
    with pytest.raises(ResourceError, match="does not hold"):
        bench.start_executor()
    bench.give_slot()
    bench.start_executor()
    bench.start_executor()
    assert len(bench.started) == 1, "the same executor was started twice"


def test_the_end_of_an_executor_is_reported() -> None:
    bench = Bench().begin().give_slot()
    bench.start_executor()
    bench.end_executor("0", -9)
    (report,) = bench.jobs.exits
    assert (report.executor_id, report.exit_status, report.output_tail) == ("0", -9, "last words")
    bench.end_executor("0", -9)
    assert len(bench.jobs.exits) == 1


def test_the_executor_of_a_freed_slot_is_ended() -> None:
    bench = Bench().begin().give_slot("a1", 0).give_slot("a2", 1)
    bench.start_executor("0", "a1")
    bench.start_executor("1", "a2")
    bench.executor.free_slot(AllocationId("a1"))
    assert bench.stopped == ["0"]


def test_the_end_of_an_executor_is_reported_until_the_master_knows() -> None:
    bench = Bench().begin().give_slot()
    bench.start_executor()
    bench.jobs.exit_error = RpcUnavailable("nobody")
    bench.end_executor("0", -9)
    assert bench.jobs.exits == []
    bench.jobs.exit_error = None
    bench.run(1_000)
    assert [r.executor_id for r in bench.jobs.exits] == ["0"]


def test_two_executors_never_share_a_slot() -> None:
    bench = Bench().begin().give_slot()
    bench.start_executor("0", "a1")
    with pytest.raises(SlotUnavailable, match="executor 0 still has"):
        bench.start_executor("1", "a1")


def test_an_executor_of_another_driver_gives_way() -> None:
    """A driver that is halted, and was replaced, does not end its executors."""
    bench = Bench().begin().give_slot()
    bench.start_executor("0", "a1", driver="halted")
    bench.start_executor("1", "a1", driver="next")
    assert (len(bench.started), bench.stopped) == (2, ["0"])


def test_the_same_number_of_another_driver_is_another_executor() -> None:
    bench = Bench().begin().give_slot()
    bench.start_executor("0", "a1", driver="halted")
    with pytest.raises(SlotUnavailable, match="executor 0 still has"):
        bench.start_executor("0", "a1", driver="next")
    assert bench.stopped == ["0"], "it has to end first"
    bench.end_executor("0", 143)
    bench.start_executor("0", "a1", driver="next")
    assert len(bench.started) == 2


# --- another master leads ---

NEXT = LeaderInfo(Fence("next", 2), "jm2:1", "0", "default")


def test_a_new_leader_is_told_of_slots_and_executors_at_once() -> None:
    bench = Bench().begin()
    bench.give_slot()
    bench.start_executor()
    bench.jobs.offers.clear()
    bench.master = FakeResourceManager(NEXT)
    bench.new_leader()
    bench.run()
    (registration,) = bench.master.registrations
    assert [status.allocation_id for status in registration.allocations] == ["a1"]
    assert [status.executor_id for status in registration.executors] == ["0"]
    (offer,) = bench.jobs.offers
    assert offer.allocation_id == "a1" and offer.executor is not None and offer.executor.pid == 4242
    assert not bench.stopped, "an executor was touched"


def test_one_chain_of_heartbeats_whatever_happens() -> None:
    bench = Bench().begin()
    for leader in (NEXT, LEADER, NEXT):
        bench.master = FakeResourceManager(leader)
        bench.new_leader()
        bench.new_leader()
        bench.run()
    bench.master.heartbeats.clear()
    bench.run(1_000)
    assert len(bench.master.heartbeats) == 1


def test_a_new_leader_is_waited_for_while_its_jobs_come_up() -> None:
    bench = Bench().begin()
    bench.give_slot()
    bench.start_executor()
    bench.jobs.accepts = False
    bench.master = FakeResourceManager(NEXT)
    bench.new_leader()
    bench.run()
    bench.run(5_000)
    assert not bench.stopped and len(bench.jobs.offers) >= 3
    bench.jobs.accepts = True
    bench.run(500)
    count = len(bench.jobs.offers)
    bench.run(60_000)
    assert len(bench.jobs.offers) == count and not bench.stopped, "accepted slots are offered again"


def test_slots_no_job_of_a_new_leader_wants_are_freed_in_the_end() -> None:
    bench = Bench().begin()
    bench.give_slot()
    bench.start_executor()
    bench.jobs.accepts = False
    bench.master = FakeResourceManager(NEXT)
    bench.new_leader()
    bench.run()
    for _ in range(50):
        bench.run(500)
    assert bench.stopped == ["0"]


def test_slots_not_taken_yet_are_offered_after_registering_with_the_same_leader_again() -> None:
    bench = Bench().begin()
    bench.give_slot()
    bench.start_executor()
    bench.jobs.accepts = False
    bench.master = FakeResourceManager(NEXT)
    bench.new_leader()
    bench.run()
    bench.new_leader()
    bench.run()
    bench.jobs.offers.clear()
    bench.jobs.accepts = True
    bench.run(500)
    assert [offer.allocation_id for offer in bench.jobs.offers] == ["a1"]
    bench.run(60_000)
    assert len(bench.jobs.offers) == 1 and not bench.stopped


def test_a_job_master_that_cannot_be_asked_has_refused_nothing() -> None:
    bench = Bench().begin()
    bench.give_slot()
    bench.start_executor()
    bench.jobs.offer_error = LeadershipLost("it is in doubt whether this master leads; try again")
    bench.master = FakeResourceManager(NEXT)
    bench.new_leader()
    for _ in range(100):
        bench.run(500)
    assert not bench.stopped
    bench.jobs.offer_error = None
    bench.jobs.offers.clear()
    bench.run(500)
    assert [offer.allocation_id for offer in bench.jobs.offers] == ["a1"]


def test_the_same_leader_is_not_offered_slots_again() -> None:
    """It has given them up when it dropped this TaskManager."""
    bench = Bench().begin()
    bench.give_slot()
    bench.jobs.offers.clear()
    bench.new_leader()
    bench.run()
    assert len(bench.master.registrations) == 2 and not bench.jobs.offers


def test_the_end_of_an_executor_is_reported_to_the_new_leader() -> None:
    bench = Bench().begin()
    bench.give_slot()
    bench.start_executor()
    bench.jobs.exit_error = LeadershipLost("this master is a standby")
    bench.end_executor("0", 1)
    bench.master = FakeResourceManager(NEXT)
    bench.new_leader()
    bench.jobs.exit_error = None
    bench.run(1_000)
    assert [report.executor_id for report in bench.jobs.exits] == ["0"]


def test_a_dismissed_one_ends() -> None:
    bench = Bench().begin()
    bench.master.error = TaskManagerDismissed("it was given back")
    bench.new_leader()
    bench.run()
    assert [type(error) for error in bench.fatal] == [TaskManagerDismissed]


# --- executors that wait for another job ------------------------------------------


def waiting() -> Bench:
    """An executor on the first slot, which its job does not need any more."""
    bench = Bench(idle_timeout_ms=5_000).begin().give_slot()
    bench.start_executor()
    bench.executor.free_slot(AllocationId("a1"))
    return bench.run()


def test_an_executor_waits_where_it_is_and_is_offered_with_its_slot() -> None:
    bench = waiting()
    assert bench.cleared == [("0", JOB)]
    assert not bench.stopped
    bench.give_slot("a2", job=FOLLOWING).give_slot("a3", 1, job=FOLLOWING)
    offered = [offer.executor for offer in bench.jobs.offers[1:]]
    assert [executor and executor.executor_id for executor in offered] == ["0", None]


def test_it_goes_on_for_the_next_job_of_its_driver() -> None:
    bench = waiting().give_slot("a2", job=FOLLOWING)
    bench.start_executor("0", "a2", job=FOLLOWING)
    assert (len(bench.started), bench.handed_over, bench.stopped) == (1, [("0", FOLLOWING)], [])
    bench.run(60_000)
    assert not bench.stopped, "it has a job"
    bench._exit(FOLLOWING, ExecutorId("0"), -9, "")
    bench.run()
    assert [(report.job_id, report.executor_id) for report in bench.jobs.exits] == [(FOLLOWING, "0")]


@pytest.mark.parametrize(("executor", "driver"), [("1", "d"), ("0", "other")])
def test_it_ends_when_its_slot_is_used_for_another_executor(executor: str, driver: str) -> None:
    bench = waiting().give_slot("a2", job=FOLLOWING)
    bench.start_executor(executor, "a2", driver=driver, job=FOLLOWING)
    assert (len(bench.started), bench.stopped) == (2, ["0"])


def test_it_is_not_taken_for_other_slots_than_its_own() -> None:
    bench = waiting().give_slot("a2", job=FOLLOWING).give_slot("a3", 1, job=FOLLOWING)
    bench.start_executor("0", "a2", "a3", job=FOLLOWING)
    assert (len(bench.started), bench.stopped) == (2, ["0"])


def test_one_that_has_ended_is_not_taken() -> None:
    bench = waiting().give_slot("a2", job=FOLLOWING)
    bench.can_hand_over = False
    bench.start_executor("0", "a2", job=FOLLOWING)
    assert len(bench.started) == 2


def test_it_does_not_wait_for_ever() -> None:
    bench = waiting().run(4_999)
    assert not bench.stopped
    bench.run(1)
    assert bench.stopped == ["0"]


def test_it_does_not_wait_on_a_slot_that_another_job_has() -> None:
    bench = Bench(idle_timeout_ms=5_000).begin().give_slot().give_slot("a2", 1)
    bench.start_executor("0", "a1", "a2")
    bench.executor.free_slot(AllocationId("a1"))
    bench.give_slot("a3", job=FOLLOWING)
    bench.executor.free_slot(AllocationId("a2"))
    assert (bench.cleared, bench.stopped) == ([], ["0"])


def test_the_level_of_a_logger_changes() -> None:
    name = "yarnflow.test.taskexecutor"
    Bench().executor.set_log_level(LogLevel(name, "DEBUG"))
    assert logging.getLogger(name).level == logging.DEBUG
    logging.getLogger(name).setLevel(logging.NOTSET)


def test_what_was_measured_goes_with_the_next_heartbeat_only() -> None:
    dump = MetricDump(ScopeKind.TASK_MANAGER, counts={"a": 1})
    waiting = [(dump,)]
    bench = Bench(take_metrics=lambda: waiting.pop() if waiting else ()).begin()
    bench.run(1_000)
    assert [beat.metrics for beat in bench.master.heartbeats] == [(dump,), ()]
