"""Random interleavings of restart, hot spare, adoption, cancel and losses: what must hold at any time."""

from __future__ import annotations

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.core.job_run.job_world import (
    JOB,
    KEPT,
    OLD,
    OLD_SPARE,
    SLOTS,
    Process,
    World,
    is_settled,
    settings,
)
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, TaskManagerId
from yarnflow.core.job_run import effects as do
from yarnflow.core.job_run import events as ev
from yarnflow.core.messages import DriverPhase, ExecutorExited, ExecutorStatus
from yarnflow.errors import (
    CallSuspended,
    ConfigError,
    RpcTimeout,
    SlotUnavailable,
    StorageDenied,
    YarnflowError,
)

SOME = st.integers(0, 7)
WHERE = st.sampled_from([TaskManagerId(f"tm-{number}") for number in range(3)])
ERRORS = st.sampled_from(
    [
        RpcTimeout("no answer"),
        SlotUnavailable("still there"),
        CallSuspended("not asked"),
        ConfigError("no java"),
    ]
)


class Job(RuleBasedStateMachine):
    """One job under one master."""

    world: World

    @initialize(
        adopted=st.booleans(), hot_spare=st.booleans(), adaptive=st.booleans(), keeps_driver=st.booleans()
    )
    def begin(self, adopted: bool, hot_spare: bool, adaptive: bool, keeps_driver: bool) -> None:
        start = ev.Adopted(7) if adopted else ev.Fresh()
        self.world = World(start, settings(hot_spare, adaptive, keeps_driver=keeps_driver))
        if adopted:
            self.world.drivers[OLD] = Process(OLD, attempt=3)
            self.world.last_attempt = 2
        self.world.apply(ev.Started(self.world.at, KEPT if keeps_driver and not adopted else None))

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.there_is_a_way_out()
            self.a_cancel_ends()

    def there_is_a_way_out(self) -> None:
        """Whatever state this is: when all goes well from now on, the job runs, or is over."""
        world = self.world.fork()
        world.apply(ev.LeadConfirmed(world.at))
        world.apply(ev.SparePlaceKnown(world.at, awaited=False))
        world.go_well()
        assert is_settled(world.run) or world.run.spare_refused, world.run.details(world.at).waiting_for

    def a_cancel_ends(self) -> None:
        """Even if no driver answers any more, or one goes on as if nothing had been said."""
        for silent in (True, False):
            world = self.world.fork()
            world.apply(ev.CancelRequested(world.at))
            for call in [call for call in world.calls if isinstance(call, do.FindDriver)]:
                world.answer(call, True)
            for _ in range(30):
                for process in [] if silent else world.deployed():
                    if process.registered:
                        world.report(process, DriverPhase.RUNNING, 7)
                world.wait(1_000)
            assert world.run.ended

    # --- time and the lead ---

    @rule(ms=st.sampled_from([1, 200, 301, 1_000, 2_001, 3_001, 5_001, 20_001]))
    def wait(self, ms: int) -> None:
        self.world.wait(ms)

    @rule()
    def look_early(self) -> None:
        self.world.apply(ev.TimePassed(self.world.at))

    @rule(doubt=st.booleans())
    def lead(self, doubt: bool) -> None:
        event = ev.LeadInDoubt if doubt else ev.LeadConfirmed
        self.world.apply(event(self.world.at))

    @rule(holder=st.sampled_from([None, OLD, DriverId("d0"), DriverId("d1")]))
    def lease(self, holder: DriverId | None) -> None:
        self.world.apply(ev.HolderChanged(self.world.at, holder))

    # --- answers ---

    @precondition(lambda self: self.world.calls)
    @rule(which=SOME, well=st.sampled_from([True, True, False]), error=ERRORS)
    def answer(self, which: int, well: bool, error: YarnflowError) -> None:
        calls = self.world.calls
        call = calls[which % len(calls)]
        if isinstance(call, do.FindState):
            error = StorageDenied("not yours")
        self.world.answer(call, well, error)

    @precondition(lambda self: self.world.calls)
    @rule(which=SOME)
    def no_answer(self, which: int) -> None:
        calls = self.world.calls
        call = calls[which % len(calls)]
        if not isinstance(call, (do.FindDriver, do.FindState, do.AwaitRecords)):  # those are tried for ever
            calls.remove(call)

    # --- slots ---

    @precondition(lambda self: self.world.run.settings.keeps_driver)
    @rule(where=WHERE, count=st.integers(1, SLOTS), cores=st.integers(1, SLOTS))
    def offer_where_an_executor_waits(self, where: TaskManagerId, count: int, cores: int) -> None:
        executor_id = ExecutorId(str(50 + int(where[3:])))
        self.world.offer(where, count, ExecutorStatus(executor_id, JOB, KEPT.driver_id, 1, cores))

    @rule(where=WHERE, count=st.integers(1, SLOTS), runs=st.sampled_from([None, OLD, OLD_SPARE]), number=SOME)
    def offer(self, where: TaskManagerId, count: int, runs: DriverId | None, number: int) -> None:
        old = isinstance(self.world.run.start, ev.Adopted) and runs is not None
        # numbers of the master before, each of one TaskManager and driver
        executor_id = ExecutorId(str(1_000 + 10 * int(where[3:]) + (5 if runs == OLD else 0)))
        status = ExecutorStatus(executor_id, JOB, runs or OLD, 1, count) if old else None
        self.world.offer(where, count, status)

    @rule(which=SOME)
    def offer_again(self, which: int) -> None:
        run = self.world.run
        slots = [*run.active.slots.slots, *run.spare.slots.slots]
        if slots:
            self.world.apply(ev.SlotsOffered(self.world.at, (slots[which % len(slots)],)))

    @rule(where=WHERE)
    def task_manager_lost(self, where: TaskManagerId) -> None:
        self.world.lose(where)

    @rule(which=SOME)
    def slot_lost(self, which: int) -> None:
        run = self.world.run
        slots = [*run.active.slots.slots, *run.spare.slots.slots]
        if slots:
            self.world.apply(ev.SlotLost(self.world.at, slots[which % len(slots)].allocation_id, "freed"))
        self.world.apply(ev.SlotLost(self.world.at, AllocationId("unknown"), "freed"))

    @rule(which=SOME)
    def the_cluster_takes_a_slot_and_gives_no_other(self, which: int) -> None:
        slots = self.world.run.active.slots.slots
        if slots:
            self.world.apply(ev.SlotLost(self.world.at, slots[which % len(slots)].allocation_id, "freed"))
            self.world.wait(301)

    @rule(text=st.sampled_from(["", "the queue is full"]))
    def outlook(self, text: str) -> None:
        self.world.apply(ev.OutlookChanged(self.world.at, text))

    @precondition(lambda self: self.world.run.spare_life.slots_asked)
    @rule()
    def refused(self) -> None:
        self.world.apply(ev.SlotsRefused(self.world.at, "can have no more"))

    # --- executors ---

    @precondition(lambda self: self.world.executors)
    @rule(which=SOME)
    def executor_ended(self, which: int) -> None:
        ended = self.world.executors.pop(which % len(self.world.executors))
        report = ExecutorExited(JOB, ended.driver_id, ended.executor_id, ended.task_manager_id, -9)
        self.world.apply(ev.ExecutorEnded(self.world.at, report))

    # --- drivers ---

    @precondition(lambda self: self.alive())
    @rule(which=SOME)
    def driver_registers(self, which: int) -> None:
        process = self.one(which)
        self.world.register(process.driver_id, process.attempt)

    @rule()
    def spare_of_the_master_before_registers(self) -> None:
        process = self.world.drivers.get(OLD_SPARE)
        if not self.world.run.is_driver_unknown and (process is None or process.alive):
            self.world.register(OLD_SPARE, 0 if process is None else process.attempt)

    @precondition(lambda self: self.alive())
    @rule(
        which=SOME,
        phase=st.sampled_from([DriverPhase.RUNNING] * 6 + list(DriverPhase)),
        batch=st.sampled_from([-1, 7]),
        blind=st.sampled_from([False, False, False, True]),
    )
    def driver_reports(self, which: int, phase: DriverPhase, batch: int, blind: bool) -> None:
        process = self.one(which)
        if process.registered and self.world.run.knows(process.driver_id):
            allowed = process.attempt or phase in (DriverPhase.IDLE, DriverPhase.FAILED)
            self.world.report(process, phase if allowed else DriverPhase.IDLE, batch, blind)

    @precondition(lambda self: self.alive())
    @rule(which=SOME)
    def driver_exits(self, which: int) -> None:
        self.world.exit(self.one(which))

    @precondition(lambda self: self.alive())
    @rule(which=SOME, waits=st.booleans())
    def driver_waits_for_its_turn(self, which: int, waits: bool) -> None:
        self.world.apply(ev.DriverWaits(self.world.at, self.one(which).driver_id, waits))

    @rule(which=SOME)
    def end_of_a_driver_is_told_late(self, which: int) -> None:
        ended = [each for each in self.world.drivers.values() if each.given_up]
        if ended:
            self.world.exit(ended[which % len(ended)])

    @rule(awaited=st.booleans(), misplaced=st.booleans())
    def places(self, awaited: bool, misplaced: bool) -> None:
        spare_id = self.world.run.spare.driver_id if misplaced else None
        self.world.apply(ev.SparePlaceKnown(self.world.at, awaited, spare_id))

    # --- users, and what goes well: else little would ever run ---

    @precondition(lambda self: self.world.offers_made > 8)
    @rule()
    def cancel(self) -> None:
        self.world.apply(ev.CancelRequested(self.world.at))

    @rule(steps=st.sampled_from([1, 2, 8, 16]))
    def all_goes_well(self, steps: int) -> None:
        self.world.go_well(steps)

    def alive(self) -> list[Process]:
        return [each for each in self.world.drivers.values() if each.alive and not each.given_up]

    def one(self, which: int) -> Process:
        alive = self.alive()
        return alive[which % len(alive)]


TestJob = Job.TestCase
TestJob.settings = hypothesis_settings(max_examples=60, stateful_step_count=40, deadline=None)
