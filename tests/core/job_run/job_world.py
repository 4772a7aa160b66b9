"""The world around one job, as its decider sees it: drivers, TaskManagers, a ResourceManager, calls.

Nothing here is a thread or a process.  What the decider wants is noted; whether, when and how it is
answered is chosen by a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId, VertexId
from yarnflow.core.job import execution, job
from yarnflow.core.job.job import StatusChanged
from yarnflow.core.job.record import JobRecord
from yarnflow.core.job.restart import FixedDelay
from yarnflow.core.job_run import effects as do
from yarnflow.core.job_run import events as ev
from yarnflow.core.job_run import spare_life
from yarnflow.core.job_run.decider import handle
from yarnflow.core.job_run.driver_group import DriverGroup
from yarnflow.core.job_run.kept_drivers import KeptDriver
from yarnflow.core.job_run.model import JobRun, RunSettings
from yarnflow.core.job_run.spare_life import REHEARSED, SpareState
from yarnflow.core.messages import (
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ErrorInfo,
    ExecutorStatus,
    ProgramKind,
    QueryProgress,
    SlotOffer,
)
from yarnflow.core.resources.scheduling import SchedulerKind, SchedulerSettings
from yarnflow.core.states import JobStatus
from yarnflow.errors import CallSuspended, RpcTimeout, YarnflowError

JOB = JobId("a" * 32)
SLOTS = 2
#: of the master before
OLD, OLD_SPARE = DriverId("old"), DriverId("old-spare")
#: has run another job before
KEPT = KeptDriver(DriverId("kept"), 1000, {}, jobs=1, next_number=100)
#: effects that are answered by an event of their own, or by a report
CALLS = (do.FindDriver, do.FindState, do.AwaitRecords, do.Deploy, do.CancelDriver, do.StartExecutor)
NO_ANSWER = RpcTimeout("no answer")
Call = do.FindDriver | do.FindState | do.AwaitRecords | do.Deploy | do.CancelDriver | do.StartExecutor


def settings(
    hot_spare: bool = True, adaptive: bool = False, attempts: int = 1_000, keeps_driver: bool = False
) -> RunSettings:
    kind = SchedulerKind.ADAPTIVE if adaptive else SchedulerKind.DEFAULT
    return RunSettings(
        restart_strategy=FixedDelay(attempts, 1_000),
        scheduler=SchedulerSettings(kind, 20_000, 20_000, 2_000),
        cancellation_timeout_ms=5_000,
        driver_heartbeat_timeout_ms=3_000,
        driver_registration_timeout_ms=10_000,
        adoption_timeout_ms=5_000,
        hot_spare=hot_spare,
        keeps_driver=keeps_driver,
    )


@dataclass
class Process:
    """A driver process."""

    driver_id: DriverId
    registered: bool = False
    #: 0 = it was not told to run anything
    attempt: int = 0
    #: the one before
    attempt_before: int = 0
    alive: bool = True
    #: the decider wants its end, or knows of it
    given_up: bool = False
    canceled: bool = False


@dataclass(frozen=True)
class Executor:
    """An executor that was asked for."""

    driver_id: DriverId
    executor_id: ExecutorId
    task_manager_id: TaskManagerId
    allocation_ids: tuple[AllocationId, ...]


class World:
    """One job and all around it; :meth:`apply` keeps what must always hold."""

    def __init__(self, start: ev.StartKind, options: RunSettings) -> None:
        self.now_ms = 1_000
        self.drivers: dict[DriverId, Process] = {}
        #: effects that are still to be answered
        self.calls: list[Call] = []
        #: executors whose end the decider neither knows nor wants
        self.executors: list[Executor] = []
        self.used_numbers: dict[ExecutorId, Executor] = {}
        self.declared = 0
        self.offers_made = 0
        self.last_attempt = 0
        self.ended = self.released = self.kept = 0
        record = JobRecord.create(JOB, "flights", "", [(VertexId("v"), "v", SLOTS, 8, "default")], 1_000)
        self.run = JobRun.create(JOB, ProgramKind.GRAPH, options, start, record, SLOTS, self.now_ms)

    # --- events ---

    @property
    def at(self) -> ev.Stamp:
        return ev.Stamp(self.now_ms, self.now_ms, DriverId(f"d{len(self.drivers)}"))

    def status(self) -> JobStatus:
        return self.run.status

    def apply(self, event: ev.Event) -> None:
        assert not self.run.ended or not handle(self.run, event)[1], "something is done after the end"
        self.run, effects = handle(self.run, event)
        for effect in effects:
            self.perform(effect)
        self.check()

    def wait(self, ms: int) -> None:
        """Time passes; the decider looks when it wanted to, or a little later."""
        until_ms = self.now_ms + ms
        while (due_ms := self.run.deadline_ms(self.now_ms)) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.apply(ev.TimePassed(self.at))
            again_ms = self.run.deadline_ms(self.now_ms)
            assert again_ms is None or again_ms > self.now_ms, "it looks without end"
        self.now_ms = until_ms

    def offer(self, where: TaskManagerId, count: int, executor: ExecutorStatus | None = None) -> None:
        offers = []
        for index in range(count):
            self.offers_made += 1
            allocation_id = AllocationId(f"a{self.offers_made}")
            offers.append(SlotOffer(allocation_id, index, where, f"{where}:1", executor))
        self.apply(ev.SlotsOffered(self.at, tuple(offers)))

    def register(self, driver_id: DriverId, attempt: int = 0) -> None:
        # one that nobody knows is nobody's until it is taken
        process = self.drivers.setdefault(driver_id, Process(driver_id, given_up=True))
        registration = DriverRegistration(JOB, driver_id, "d:1", 1, "spark://", "app", attempt=attempt)
        self.apply(ev.DriverRegistered(self.at, registration))
        process.registered = True
        process.attempt = max(process.attempt, attempt)
        # otherwise it was told to end
        process.alive = self.run.knows(driver_id)
        process.given_up = not process.alive

    def report(self, process: Process, phase: DriverPhase, batch: int = -1, blind: bool = False) -> None:
        seen = [each.executor_id for each in self.executors if each.driver_id == process.driver_id]
        report = DriverReport(
            JOB,
            process.driver_id,
            process.attempt,
            phase,
            () if blind else tuple(seen),
            (QueryProgress("q", batch_id=batch),),
            {REHEARSED: 1},
            ErrorInfo("EXECUTOR_LOST", "it broke") if phase is DriverPhase.FAILED else None,
        )
        self.apply(ev.DriverReported(self.at, report))

    def exit(self, process: Process) -> None:
        """It has ended; what it runs on ends with it, which TaskManagers are slow to tell."""
        process.alive, process.given_up = False, True
        self.apply(ev.DriverExited(self.at, process.driver_id, -9, ""))

    def lose(self, where: TaskManagerId) -> None:
        self.executors = [each for each in self.executors if each.task_manager_id != where]
        self.apply(ev.TaskManagerGone(self.at, where, "killed"))

    # --- effects ---

    def perform(self, effect: do.Effect) -> None:
        if isinstance(effect, do.LaunchDriver):
            assert effect.driver_id not in self.drivers, "two drivers have one id"
            self.drivers[effect.driver_id] = Process(effect.driver_id)
        elif isinstance(effect, (do.KillDriver, do.DismissDriver)):
            process = self.drivers.setdefault(effect.driver_id, Process(effect.driver_id))
            process.given_up = True
            process.alive = process.alive and isinstance(effect, do.DismissDriver)
        elif isinstance(effect, do.KeepDriver):
            process = self.drivers[effect.driver_id]
            assert process.alive and process.registered and process.attempt == 1 and not process.canceled
            assert self.run.status is JobStatus.FINISHED
            process.given_up = True
            # they wait as well, and their numbers are not used again
            mine = [each for each in self.executors if each.driver_id == process.driver_id]
            assert all(int(each.executor_id) < effect.next_number for each in mine)
            self.executors = [each for each in self.executors if each not in mine]
            self.kept += 1
        elif isinstance(effect, do.Deploy):
            self.deploy(effect)
        elif isinstance(effect, do.StartExecutor):
            self.start(effect)
        elif isinstance(effect, do.StopExecutor):
            self.executors = [each for each in self.executors if each.executor_id != effect.executor_id]
        elif isinstance(effect, do.DeclareSlots):
            assert not self.released, "slots are asked for after the end"
            self.declared = effect.slots
        elif isinstance(effect, do.ReleaseSlots):
            self.released += 1
        elif isinstance(effect, do.EndJob):
            self.ended += 1
        else:
            assert isinstance(effect, (*CALLS, *SILENT)), effect
        if isinstance(effect, CALLS):
            self.calls.append(effect)

    def deploy(self, effect: do.Deploy) -> None:
        others = [each.driver_id for each in self.deployed() if each.driver_id != effect.driver_id]
        assert not others, f"{effect.driver_id} is deployed beside {others}"
        assert effect.attempt > self.last_attempt, "attempts rise over all drivers"
        self.last_attempt = effect.attempt
        process = self.drivers[effect.driver_id]
        assert process.registered or self.run.active.registration is not None
        process.attempt_before, process.attempt = process.attempt, effect.attempt

    def not_deployed(self, call: do.Deploy) -> None:
        """The driver was not called, so it goes on as before, and may be told the same again."""
        process = self.drivers[call.driver_id]
        if process.attempt == call.attempt:
            process.attempt = process.attempt_before
            self.last_attempt = min(self.last_attempt, call.attempt - 1)

    def start(self, effect: do.StartExecutor) -> None:
        what = effect.descriptor
        new = Executor(what.driver_id, what.executor_id, effect.task_manager_id, what.allocation_ids)
        same = self.used_numbers.setdefault(what.executor_id, new)
        assert same == new, f"number {what.executor_id} is used twice"
        assert what.cores == len(what.allocation_ids) > 0
        for other in self.executors:
            shared = set(other.allocation_ids) & set(new.allocation_ids)
            assert other == new or not shared, f"{shared} serves {other} and {new}"
        if new not in self.executors:
            self.executors.append(new)

    def deployed(self) -> list[Process]:
        """Drivers that may write, as far as the decider knows."""
        return [each for each in self.drivers.values() if each.attempt and not each.given_up]

    # --- what always holds ---

    def check(self) -> None:
        run, life = self.run, self.run.spare_life
        job.MACHINE.check(run.record.job)
        spare_life.MACHINE.check(life)
        for each in run.record.executions:
            execution.MACHINE.check(each)
        assert run.spare.driver is None or not run.spare.driver.deployed_attempt, "the hot spare is deployed"
        assert len(self.deployed()) <= 1, "two drivers may write"
        allocations = [slot.allocation_id for group in (run.active, run.spare) for slot in group.slots.slots]
        assert len(allocations) == len(set(allocations)), "a slot is in both groups"
        served = [allocation for group in (run.active, run.spare) for allocation in allocations_of(group)]
        assert len(served) == len(set(served)), "a slot serves two executors"
        for group in (run.active, run.spare):
            assert set(allocations_of(group)) <= {slot.allocation_id for slot in group.slots.slots}
            assert group.driver is not None or not group.executors.records, "executors without a driver"
        assert (life.state is SpareState.WARM) is run.spare.could_run_at_once
        assert life.exists is (run.spare.driver is not None)
        if run.record.wants_executors and run.active.driver is None:
            assert run.spare.driver is None, "the hot spare does not step in"
        assert (self.ended, self.released) == ((1, 1) if run.ended else (0, 0))
        assert run.ended is run.status.globally_terminal
        if run.ended:
            assert not self.executors and all(each.given_up for each in self.drivers.values())
            assert run.deadline_ms(self.now_ms) is None

    # --- what follows when all goes well ---

    def fork(self) -> World:
        """Another world that has come to the same point."""
        other = World.__new__(World)
        other.__dict__.update(self.__dict__)
        other.drivers = {key: replace(process) for key, process in self.drivers.items()}
        other.calls, other.executors = list(self.calls), list(self.executors)
        other.used_numbers = dict(self.used_numbers)
        return other

    def answer(self, call: Call, well: bool, error: YarnflowError = NO_ANSWER) -> None:
        self.calls.remove(call)
        for event in self.answers(call, well, error):
            self.apply(event)

    def answers(self, call: Call, well: bool, error: YarnflowError) -> Iterator[ev.Event]:
        if isinstance(call, do.FindDriver):
            if not well:  # it ended before
                self.drivers[OLD] = Process(OLD, alive=False, given_up=True)
                self.last_attempt = 0
            yield ev.HolderFound(self.at, OLD if well else None, 3 if well else 0)
        elif isinstance(call, do.FindState):
            yield ev.StateFound(self.at, None) if well else ev.StateUnreadable(self.at, error)
        elif isinstance(call, do.AwaitRecords):
            yield ev.AllRecorded(self.at, call.stop)
        elif isinstance(call, do.Deploy):
            if not well:
                if isinstance(error, CallSuspended):
                    self.not_deployed(call)
                yield ev.DeployFailed(self.at, call.driver_id, call.attempt, error)
        elif isinstance(call, do.CancelDriver):
            if well:
                self.drivers[call.driver_id].canceled = True
            else:
                yield ev.CancelFailed(self.at, call.driver_id, error)
        elif not well:
            what = call.descriptor
            yield ev.ExecutorStartFailed(self.at, what.driver_id, what.executor_id, error)

    def go_well(self, steps: int = 60) -> None:
        """Everybody does at once what the decider hopes for, and time passes."""
        fresh = TaskManagerId(f"fresh-{self.offers_made}")
        for _ in range(steps):
            while self.calls:
                self.answer(self.calls[0], True)
            lacking = self.declared - sum(
                len(group.slots.slots) for group in (self.run.active, self.run.spare)
            )
            if lacking > 0 and not self.run.ended:
                self.offer(fresh, lacking)
            for process in list(self.drivers.values()):
                if not process.alive or process.given_up:
                    continue
                if not process.registered:
                    self.register(process.driver_id)
                elif process.attempt and process.canceled:
                    self.report(process, DriverPhase.CANCELED)
                elif process.attempt:
                    self.report(process, DriverPhase.RUNNING, 7)
                else:
                    self.report(process, DriverPhase.IDLE)
            self.wait(1_000)


#: effects that need no answer
SILENT = (do.WatchLease, do.TakeReport, do.InterruptCheckpoints, do.Say, do.Show, StatusChanged)


def allocations_of(group: DriverGroup) -> list[AllocationId]:
    return [allocation for record in group.executors.records for allocation in record.allocation_ids]


def is_settled(run: JobRun) -> bool:
    """The job is over, or runs with all it wants."""
    spare_ready = not run.settings.hot_spare or run.spare_life.state is SpareState.WARM
    return run.ended or (run.status is JobStatus.RUNNING and run.active.slots.is_complete and spare_ready)
