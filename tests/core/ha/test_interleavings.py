"""Random interleavings of leadership, lease and checkpoints: what must hold whatever happens when."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.core.ha.ha_world import SESSION_TIMEOUT_MS, Driver, Master, ZooKeeper
from yarnflow.core.checkpoint.coordinator import CheckpointCoordinator, CheckpointSettings
from yarnflow.core.checkpoint.effects import Discard, Effect, NeedId, OrderDriver, Persist
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointOutcome,
    CheckpointRequest,
    CheckpointStatus,
    QueryPosition,
)
from yarnflow.core.ha import leadership as lead

SOME = st.integers(0, 7)
LOST = st.sampled_from([False, False, False, True])
KIND = st.sampled_from(CheckpointKind)


class World(RuleBasedStateMachine):
    """A ZooKeeper, and time."""

    def __init__(self) -> None:
        super().__init__()
        self.zk = ZooKeeper()
        self.committed = -1

    @rule(duration_ms=st.sampled_from([1, 500, 1_000, 2_500, SESSION_TIMEOUT_MS]))
    def wait(self, duration_ms: int) -> None:
        self.zk.wait(duration_ms)


class Drivers(World):
    """Drivers that come, are cut off, stopped, woken and killed."""

    def __init__(self) -> None:
        super().__init__()
        self.drivers: list[Driver] = []
        self.start_driver()

    @precondition(lambda self: len(self.drivers) < 4)
    @rule()
    def start_driver(self) -> None:
        self.drivers.append(Driver(self.zk, self.zk.open_session()))

    @rule(which=SOME)
    def driver_calls(self, which: int) -> None:
        self.driver(which).calls.append(self.zk.now_ms)

    @rule(which=SOME, lost=LOST)
    def zookeeper_hears_driver(self, which: int, lost: bool) -> None:
        if self.driver(which).calls:
            self.driver(which).heard(lost)

    @rule(which=SOME, answer=SOME)
    def driver_hears(self, which: int, answer: int) -> None:
        if self.driver(which).answers:
            self.driver(which).hears(answer)

    @rule(which=SOME)
    def driver_renews_quickly(self, which: int) -> None:
        driver = self.driver(which)
        driver.calls.append(self.zk.now_ms)
        while driver.calls:
            driver.heard(lost=False)
        while driver.answers:
            driver.hears(0)

    @rule(which=SOME, takes_ms=st.integers(0, SESSION_TIMEOUT_MS // 3 - 1))
    def driver_writes(self, which: int, takes_ms: int) -> None:
        driver = self.driver(which)
        if driver.may_write():
            # what it began under the lease it may end
            self.zk.wait(takes_ms)
            assert self.zk.lease == driver.session, "at most one driver writes"
            self.committed += 1

    @rule(which=SOME)
    def driver_is_about_to_lose_it(self, which: int) -> None:
        clock = self.driver(which).clock
        if clock.may_write(self.zk.now_ms):
            self.zk.wait(clock.valid_until_ms - self.zk.now_ms - 1)

    @rule(which=SOME)
    def driver_gives_up(self, which: int) -> None:
        driver = self.driver(which)
        driver.clock = driver.clock.released()
        if self.zk.lease == driver.session:
            self.zk.lease = None

    @invariant()
    def at_most_one_driver_writes(self) -> None:
        writers = [d.session for d in self.drivers if d.clock.may_write(self.zk.now_ms)]
        assert len(writers) <= 1
        assert not writers or self.zk.lease == writers[0]

    def driver(self, which: int) -> Driver:
        return self.drivers[which % len(self.drivers)]


class Masters(World):
    """Masters that are elected, cut off, deposed and do not know it, with the job's checkpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.masters: list[Master] = []
        self.requests = 0
        self.start_master()
        self.first_master_takes_over()

    @precondition(lambda self: len(self.masters) < 4)
    @rule()
    def start_master(self) -> None:
        session = self.zk.open_session()
        self.zk.latch.append(session)
        model = lead.LeadershipModel.create(f"m{len(self.masters)}", self.zk.now_ms)
        self.masters.append(Master(self.zk, session, model))

    @rule(which=SOME)
    def master_is_elected(self, which: int) -> None:
        self.master(which).is_elected()

    @rule(which=SOME)
    def master_is_cut_off(self, which: int) -> None:
        self.master(which).inbox.append(lead.ConnectionSuspended(self.zk.now_ms))

    @rule(which=SOME)
    def master_reconnects(self, which: int) -> None:
        self.master(which).reconnects()

    @rule(which=SOME)
    def master_hears(self, which: int) -> None:
        if self.master(which).inbox:
            self.master(which).hears()

    @rule()
    def first_master_takes_over(self) -> None:
        for master in self.masters:
            master.is_elected()
            while master.inbox:
                master.hears()

    @rule(which=SOME, lost=LOST)
    def master_performs(self, which: int, lost: bool) -> None:
        if self.master(which).effects:
            self.master(which).performs(self.committed, lost)

    @rule(which=SOME)
    def master_gets_answer(self, which: int) -> None:
        master = self.master(which)
        if master.answers:
            master.coordinate(master.answers.pop(0))

    @rule(which=SOME)
    def master_works(self, which: int) -> None:
        master = self.master(which)
        while master.effects or master.answers:
            while master.effects:
                master.performs(self.committed, lost=False)
            if master.answers:
                master.coordinate(master.answers.pop(0))

    @rule(which=SOME, late=st.integers(0, 3))
    def master_gets_report(self, which: int, late: int) -> None:
        position = QueryPosition("q", max(-1, self.committed - late))
        self.master(which).coordinate(lambda c: c.progressed([position], self.zk.now_ms))

    @rule(which=SOME, kind=KIND)
    def user_asks(self, which: int, kind: CheckpointKind) -> None:
        self.requests += 1
        request = CheckpointRequest(f"r{self.requests}", kind)
        self.master(which).coordinate(lambda c: c.requested(request, self.zk.now_ms))

    @rule(which=SOME)
    def master_ticks(self, which: int) -> None:
        self.master(which).coordinate(lambda c: c.tick(self.zk.now_ms))

    @rule(which=SOME)
    def master_misses_driver(self, which: int) -> None:
        self.master(which).coordinate(lambda c: c.driver_lost("gone", self.zk.now_ms))

    @invariant()
    def epochs_have_one_leader(self) -> None:
        epochs = [m.model.epoch for m in self.masters if m.model.epoch]
        assert len(epochs) == len(set(epochs))
        for master in self.masters:
            lead.MACHINE.check(master.model)

    @invariant()
    def numbers_are_given_once(self) -> None:
        for master in self.masters:
            if master.coordinator is not None:
                ids = [i.checkpoint_id for i in master.coordinator.history if i.checkpoint_id]
                assert ids == sorted(set(ids), reverse=True)
                assert not ids or ids[0] <= master.coordinator.newest_id <= self.zk.counter

    @invariant()
    def a_completed_checkpoint_is_readable(self) -> None:
        for master in self.masters:
            if master.leads and master.coordinator is not None:
                kept = {i.checkpoint_id for i in master.coordinator.history if has_files(i)}
                assert kept <= set(self.zk.pointers)

    @invariant()
    def the_newest_is_never_removed(self) -> None:
        for master in self.masters:
            if master.leads and master.coordinator is not None and master.coordinator.past.recorded:
                kinds = {i.kind for i in self.zk.pointers.values()}
                assert CheckpointKind.CHECKPOINT in kinds

    def master(self, which: int) -> Master:
        return self.masters[which % len(self.masters)]


class MastersOfSteadyJob(Masters):
    """As above, over a job that goes on committing."""

    @rule(which=SOME, late=st.integers(0, 3))
    def batch(self, which: int, late: int) -> None:
        self.committed += 1
        self.zk.wait(600)
        self.master_gets_report(which, late)

    @rule(which=SOME)
    def batch_and_record(self, which: int) -> None:
        master = self.master(which)
        self.zk.hear(master.session)
        self.batch(which, 0)
        self.master_works(which)


class Everything(Drivers, Masters):
    """All of it at once."""


class SparkForgets(RuleBasedStateMachine):
    """A job whose Spark keeps few batches: whatever is retained can still be gone back to."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = CheckpointSettings(
            interval_ms=10**9,
            min_pause_ms=10**9,
            timeout_ms=10**6,
            retained=2,
            keep_batches=12,
        )
        self.coordinator = CheckpointCoordinator.create(self.settings)
        self.store: dict[int, CheckpointInfo] = {}
        self.now_ms = 0
        self.committed = -1
        self.number = 0
        self.order: OrderDriver | None = None
        self.requests = 0

    @precondition(lambda self: self.order is None)
    @rule()
    def commit(self) -> None:
        self.committed += 1
        self.now_ms += 1
        self.apply(self.coordinator.progressed([QueryPosition("q", self.committed)], self.now_ms))

    @rule(kind=KIND)
    def ask(self, kind: CheckpointKind) -> None:
        self.requests += 1
        request = CheckpointRequest(f"r{self.requests}", kind)
        self.apply(self.coordinator.requested(request, self.now_ms))

    @precondition(lambda self: self.order is not None)
    @rule()
    def driver_answers(self) -> None:
        assert self.order is not None
        positions = (QueryPosition("q", self.committed),)
        outcome = CheckpointOutcome(self.order.order.checkpoint_id, positions=positions)
        self.order = None
        self.apply(self.coordinator.outcome(outcome, self.now_ms))

    @rule()
    def master_changes(self) -> None:
        self.order = None
        self.coordinator = CheckpointCoordinator.create(self.settings)
        self.apply(self.coordinator.recovered(list(self.store.values()), self.now_ms))

    def apply(self, result: tuple[CheckpointCoordinator, tuple[Effect, ...]]) -> None:
        self.coordinator, effects = result
        for effect in effects:
            if isinstance(effect, NeedId):
                self.number += 1
                self.apply(self.coordinator.id_given(self.number, self.now_ms))
            elif isinstance(effect, OrderDriver):
                self.order = effect
            elif isinstance(effect, Persist):
                number = effect.info.checkpoint_id
                assert all(number > other for other in self.store)
                self.apply(self.coordinator.persisted(effect.info, self.now_ms))
            elif isinstance(effect, Discard):
                del self.store[effect.checkpoint_id]
            elif isinstance(ended := getattr(effect, "info", None), CheckpointInfo):
                self.store[ended.checkpoint_id] = ended

    @invariant()
    def spark_still_has_what_is_retained(self) -> None:
        kept = [i for i in self.store.values() if i.kind is CheckpointKind.CHECKPOINT]
        assert len(kept) <= self.settings.retained
        for info in kept:
            # going back to N takes the offsets of N - 1, and the batch after the last may be planned
            oldest = self.committed + 1 - self.settings.keep_batches
            assert info.positions[0].batch_id - 1 >= oldest
        if self.committed >= self.settings.batches_between:
            assert kept


def has_files(info: CheckpointInfo) -> bool:
    return info.status is CheckpointStatus.COMPLETED and not info.discarded


STEPS = settings(max_examples=80, stateful_step_count=50)
for machine in (Drivers, MastersOfSteadyJob, Everything, SparkForgets):
    machine.TestCase.settings = STEPS
TestDrivers = Drivers.TestCase
TestMastersOfSteadyJob = MastersOfSteadyJob.TestCase
TestEverything = Everything.TestCase
TestSparkForgets = SparkForgets.TestCase
