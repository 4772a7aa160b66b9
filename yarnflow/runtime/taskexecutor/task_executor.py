"""A TaskManager's endpoint: slots, executors, heartbeats.

It gives slots to jobs when the ResourceManager says so, starts one Spark executor for the slots
a job holds, and reports ends.  It never decides which job gets what.

Flink counterpart: ``TaskExecutor``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from yarnflow.core.ids import AllocationId, ExecutorId, JobId
from yarnflow.core.job.context import job_context
from yarnflow.core.messages import (
    ExecutorDescriptor,
    ExecutorExited,
    ExecutorStatus,
    LeaderInfo,
    LogLevel,
    MetricDump,
    SlotOffer,
    SlotRequest,
    TaskManagerHeartbeat,
    TaskManagerRegistration,
)
from yarnflow.core.ports import Clock, JobMasterGateway, ResourceManagerGateway
from yarnflow.core.resources.diagnostics import LogFile, LogPart, ProcessDiagnostics, ThreadInfo
from yarnflow.core.resources.slot_table import TaskSlotTable
from yarnflow.errors import (
    JobNotFound,
    ResourceError,
    SlotUnavailable,
    StaleEpoch,
    TaskManagerDismissed,
    TaskManagerNotFound,
    YarnflowError,
)
from yarnflow.runtime.halting import halt_soon
from yarnflow.runtime.log_levels import set_log_level
from yarnflow.runtime.mailbox import Effects, Mailbox, TimerHandle
from yarnflow.runtime.registration import RegistrationBackoff, jittered

logger = logging.getLogger(__name__)

EXIT_REPORT_RETRY_MS: Final = 1_000
#: before slots are offered again to a job that does not take them
OFFER_RETRY_MS: Final = 500


class ExecutorProcesses(Protocol):
    """Starts and ends executor processes."""

    def start(self, descriptor: ExecutorDescriptor) -> int:
        """Start a process; returns its pid.

        Raises
        ------
        ResourceError
            It could not be started.
        """

    def stop(self, executor_id: ExecutorId, job_id: JobId) -> None:
        """TERM, then KILL after a grace; the exit is reported like any other.  Idempotent."""

    def clear(self, executor_id: ExecutorId, job_id: JobId) -> None:
        """End and remove what the job's functions have left in an executor; it stays, for another job."""

    def hand_over(self, executor_id: ExecutorId, job_id: JobId, to: JobId) -> bool:
        """From now on the executor is another job's; False = it has ended."""

    def stop_all(self) -> None:
        """End all and wait."""

    def on_exit(self, listener: Callable[[JobId, ExecutorId, int, str], None]) -> None:
        """Call ``listener(job, executor, exit status, output tail)`` for each end, from any thread."""


class MasterLink(Protocol):
    """Gateways to whoever leads now, with the leader's fence; its methods may block."""

    def resource_manager(self) -> ResourceManagerGateway:
        """The leader's; looks the leader up when none is known."""

    def job_master(self) -> JobMasterGateway:
        """The leader's; looks the leader up when none is known."""

    def forget_leader(self) -> None:
        """Look the leader up again before the next call."""

    def on_new_leader(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` when another master has begun to lead, from any thread."""


@dataclass(frozen=True, slots=True)
class TaskExecutorTimes:
    """Intervals in milliseconds."""

    heartbeat_interval_ms: int
    registration_backoff: RegistrationBackoff
    #: give up and end the process after this long without a master
    registration_timeout_ms: int
    call_timeout_ms: int
    #: how long slots are offered to a new leader that does not take them
    adoption_timeout_ms: int = 20_000
    #: how long an executor whose slots were freed waits for its driver's next job; 0 = it is ended at once
    executor_idle_timeout_ms: int = 0


@dataclass(frozen=True, slots=True)
class _Executor:
    descriptor: ExecutorDescriptor
    pid: int
    #: indexes of its slots
    slots: frozenset[int]
    #: ends it; None = it has a job
    idle: TimerHandle | None = None


class TaskExecutor:
    """Implements ``TaskExecutorGateway``.

    Slots and executors belong to the jobs, whoever leads: a new leader is told of them with the
    registration, and its JobMasters are offered the slots again.

    Parameters
    ----------
    slots : int
        How many slots it has.
    clock, mailbox, effects
        Its time, its thread and its pool for calls.
    link : MasterLink
        The way to the master.
    processes : ExecutorProcesses
        Starts executors.
    times : TaskExecutorTimes
        Intervals.
    on_fatal : callable
        Ends the process with the error.
    diagnostics : ProcessDiagnostics
        Of this process.
    take_metrics : callable
        What was measured since it was asked last; any thread, and quick.
    """

    def __init__(
        self,
        slots: int,
        clock: Clock,
        mailbox: Mailbox,
        effects: Effects,
        link: MasterLink,
        processes: ExecutorProcesses,
        times: TaskExecutorTimes,
        on_fatal: Callable[[YarnflowError], None],
        diagnostics: ProcessDiagnostics,
        take_metrics: Callable[[], tuple[MetricDump, ...]] = tuple,
    ) -> None:
        self._diagnostics = diagnostics
        self._take_metrics = take_metrics
        #: what this TaskManager brings; known once its server has a port
        self._registration: TaskManagerRegistration
        self._clock = clock
        self._mailbox = mailbox
        self._effects = effects
        self._link = link
        self._processes = processes
        self._times = times
        self._on_fatal = on_fatal
        self._slots = TaskSlotTable.of_size(slots)
        self._executors: dict[tuple[JobId, ExecutorId], _Executor] = {}
        self._failures = 0
        self._registered = False
        #: rises with each registration that is begun; what belongs to an earlier one is ignored
        self._term = 0
        #: whom it registered with last
        self._leader_id = ""
        self._give_up: TimerHandle | None = None
        processes.on_exit(self._exited)

    def start(self, registration: TaskManagerRegistration) -> None:
        """Begin to register, with what this TaskManager brings."""
        self._registration = registration
        self._link.on_new_leader(lambda: self._mailbox.post(self._leader_changed))
        self._mailbox.post(self._begin_registration)

    # --- TaskExecutorGateway ---

    def request_slot(self, request: SlotRequest) -> None:
        """Allocate a slot and offer it to the job.

        Raises
        ------
        ResourceError
            The slot belongs to another allocation.
        """
        self._mailbox.call(lambda: self._allocate(request), self._times.call_timeout_ms)

    def free_slot(self, allocation_id: AllocationId) -> None:
        """Take a slot back and end the executor that served it."""
        self._mailbox.call(lambda: self._free(allocation_id), self._times.call_timeout_ms)

    def start_executor(self, descriptor: ExecutorDescriptor) -> None:
        """Start an executor for slots the job holds here.

        Raises
        ------
        ResourceError
            The job does not hold those slots, or the process cannot be started.
        """
        self._mailbox.call(lambda: self._start_executor(descriptor), self._times.call_timeout_ms)

    def stop_executor(self, job_id: JobId, executor_id: ExecutorId) -> None:
        """End an executor."""
        self._mailbox.post(lambda: self._processes.stop(executor_id, job_id))

    def ping(self) -> None:
        """Answer."""

    def log_files(self) -> Sequence[LogFile]:
        """Its files."""
        return self._diagnostics.log_files()

    def read_log(self, name: str, offset: int, max_bytes: int) -> LogPart:
        """A part of one of them."""
        return self._diagnostics.read_log(name, offset, max_bytes)

    def thread_dump(self) -> Sequence[ThreadInfo]:
        """What its threads do, and those of its executors."""
        return self._diagnostics.thread_dump()

    def halt(self) -> None:
        """Kill this process, for a drill; its executors end with it."""
        halt_soon()

    def set_log_level(self, level: LogLevel) -> None:
        """What a logger of this process says."""
        set_log_level(level)

    def _exited(self, job_id: JobId, executor_id: ExecutorId, status: int, tail: str) -> None:
        with job_context(job_id):
            self._mailbox.post(lambda: self._executor_exited(job_id, executor_id, status, tail))

    # --- in the mailbox ---

    def _allocate(self, request: SlotRequest) -> None:
        self._mailbox.assert_mailbox_thread()
        self._slots = self._slots.allocate(
            request.slot_index, request.job_id, request.allocation_id, self._clock.now_ms()
        )
        self._offer(request)

    def _offer(self, request: SlotRequest) -> None:
        """Offer a slot that was asked for just now; nobody else may have it, so a refusal frees it."""

        def refused(error: YarnflowError) -> None:
            logger.info("Slot %s was not accepted by job %s: %s", request.slot_index, request.job_id, error)
            self._free(request.allocation_id)

        def answered(accepted: Sequence[AllocationId]) -> None:
            if request.allocation_id not in accepted:
                self._free(request.allocation_id)
            else:
                self._accepted(request.allocation_id)

        self._send_offers(request.job_id, [self._offer_of(request)], answered, refused)

    def _offer_again(self, job_id: JobId, term: int, deadline_ms: int) -> None:
        """Offer what a job has already to the JobMaster of a new leader.

        It may need a moment to know that it wants it.  The executors work meanwhile.
        """
        held = self._slots.not_accepted(job_id)
        if term != self._term or not held:
            return

        def unanswered(error: YarnflowError) -> None:
            logger.info("Job %s has not taken its slots here yet: %s", job_id, error)
            # nobody has refused them
            self._mailbox.schedule(
                OFFER_RETRY_MS, lambda: self._offer_again(job_id, term, self._offered_until_ms())
            )

        def answered(accepted: Sequence[AllocationId]) -> None:
            for allocation_id in accepted:
                self._accepted(allocation_id)
            left = [slot.allocation_id for slot in self._slots.not_accepted(job_id)]
            if term != self._term or not left:
                return
            if self._clock.monotonic_ms() < deadline_ms:
                self._mailbox.schedule(
                    OFFER_RETRY_MS, lambda: self._offer_again(job_id, term, deadline_ms)
                )
                return
            logger.warning("Job %s does not want its slots here any more.", job_id)
            for allocation_id in left:
                self._free(allocation_id)

        offers = [
            self._offer_of(SlotRequest(slot.job_id, slot.allocation_id, slot.index)) for slot in held
        ]
        self._send_offers(job_id, offers, answered, unanswered)

    def _offer_of(self, request: SlotRequest) -> SlotOffer:
        return SlotOffer(
            allocation_id=request.allocation_id,
            slot_index=request.slot_index,
            task_manager_id=self._registration.task_manager_id,
            address=self._registration.address,
            executor=next(
                (
                    _status(executor)
                    for executor in self._executors.values()
                    if request.allocation_id in executor.descriptor.allocation_ids
                    or (executor.idle is not None and request.slot_index in executor.slots)
                ),
                None,
            ),
        )

    def _send_offers(
        self,
        job_id: JobId,
        offers: Sequence[SlotOffer],
        answered: Callable[[Sequence[AllocationId]], None],
        refused: Callable[[YarnflowError], None],
    ) -> None:
        self._effects.perform(
            self._mailbox,
            lambda: self._link.job_master().offer_slots(job_id, offers),
            answered,
            refused,
        )

    def _accepted(self, allocation_id: AllocationId) -> None:
        if self._slots.find(allocation_id) is not None:
            self._slots = self._slots.activate(allocation_id, self._clock.now_ms())

    def _free(self, allocation_id: AllocationId) -> None:
        self._mailbox.assert_mailbox_thread()
        self._slots = self._slots.free(allocation_id, self._clock.now_ms())
        for executor in list(self._executors.values()):
            if not any(self._slots.find(held) for held in executor.descriptor.allocation_ids):
                self._without_slots(executor)

    def _without_slots(self, executor: _Executor) -> None:
        """End an executor, or let it wait where it is for the next job of its driver."""
        if executor.idle is not None:
            return
        job_id, executor_id = executor.descriptor.job_id, executor.descriptor.executor_id
        idle_timeout_ms = self._times.executor_idle_timeout_ms
        if not idle_timeout_ms or not self._slots.all_free(executor.slots):
            self._processes.stop(executor_id, job_id)
            return
        # before anybody has the slots, and so before the next job runs anything on it
        self._processes.clear(executor_id, job_id)
        idle = self._mailbox.schedule(idle_timeout_ms, lambda: self._idle_too_long((job_id, executor_id)))
        self._executors[job_id, executor_id] = replace(executor, idle=idle)

    def _idle_too_long(self, key: tuple[JobId, ExecutorId]) -> None:
        executor = self._executors.get(key)
        if executor is not None and executor.idle is not None:
            logger.info("Executor %s of job %s ends: its driver has had no other job.", key[1], key[0])
            self._processes.stop(key[1], key[0])

    def _start_executor(self, descriptor: ExecutorDescriptor) -> None:
        self._mailbox.assert_mailbox_thread()
        key = (descriptor.job_id, descriptor.executor_id)
        there = self._executors.get(key)
        if there is not None and there.descriptor.driver_id == descriptor.driver_id:
            return
        held = {slot.allocation_id: slot.index for slot in self._slots.of_job(descriptor.job_id)}
        missing = [allocation for allocation in descriptor.allocation_ids if allocation not in held]
        if missing:
            raise SlotUnavailable(
                f"TaskManager {self._registration.task_manager_id}: job {descriptor.job_id} does not hold "
                f"slot {missing[0]}; request it first"
            )
        slots = frozenset(held[allocation] for allocation in descriptor.allocation_ids)
        if self._take_over(descriptor, slots):
            return
        for other in [executor.descriptor for executor in self._executors.values()]:
            if other.job_id != descriptor.job_id:
                continue
            taken = set(other.allocation_ids).intersection(descriptor.allocation_ids)
            foreign = other.driver_id != descriptor.driver_id
            if foreign and taken:
                # its driver was replaced, and may be halted: it would not end by itself for long
                self._processes.stop(other.executor_id, other.job_id)
            if other.executor_id == descriptor.executor_id or (taken and not foreign):
                raise SlotUnavailable(
                    f"TaskManager {self._registration.task_manager_id}: executor {other.executor_id} "
                    f"still has the slot of executor {descriptor.executor_id}; try again when it has ended"
                )
        pid = self._processes.start(descriptor)
        self._executors[key] = _Executor(descriptor, pid, slots)
        logger.info(
            "Started executor %s (pid %d, %d task threads) for job %s.",
            descriptor.executor_id, pid, descriptor.cores, descriptor.job_id,
        )  # fmt: skip

    def _take_over(self, descriptor: ExecutorDescriptor, slots: frozenset[int]) -> bool:
        """Whether the executor waits on these slots already; others that wait on some of them are ended."""
        for key, executor in list(self._executors.items()):
            if executor.idle is None or not executor.slots & slots:
                continue
            job_id, executor_id = key
            before = executor.descriptor
            is_it = (before.driver_id, executor_id, executor.slots) == (
                descriptor.driver_id, descriptor.executor_id, slots,
            )  # fmt: skip
            if is_it and self._processes.hand_over(executor_id, job_id, descriptor.job_id):
                executor.idle.cancel()
                del self._executors[key]
                self._executors[descriptor.job_id, executor_id] = _Executor(descriptor, executor.pid, slots)
                logger.info(
                    "Executor %s (pid %d) of job %s goes on for job %s.",
                    executor_id, executor.pid, job_id, descriptor.job_id,
                )  # fmt: skip
                return True
            self._processes.stop(executor_id, job_id)
        return False

    def _executor_exited(self, job_id: JobId, executor_id: ExecutorId, status: int, tail: str) -> None:
        known = self._executors.pop((job_id, executor_id), None)
        if known is None:
            return
        logger.info("Executor %s of job %s ended with status %d.", executor_id, job_id, status)
        report = ExecutorExited(
            job_id=job_id,
            driver_id=known.descriptor.driver_id,
            executor_id=executor_id,
            task_manager_id=self._registration.task_manager_id,
            exit_status=status,
            output_tail=tail,
        )
        self._report_exit(report)

    def _report_exit(self, report: ExecutorExited) -> None:
        """Tell the JobMaster, again and again until it knows: it waits for no other sign."""

        def failed(error: YarnflowError) -> None:
            if not isinstance(error, JobNotFound):
                logger.warning("The end of executor %s is not reported yet: %s", report.executor_id, error)
                self._mailbox.schedule(EXIT_REPORT_RETRY_MS, lambda: self._report_exit(report))

        self._effects.perform(
            self._mailbox,
            lambda: self._link.job_master().executor_exited(report),
            lambda _none: None,
            failed,
        )

    # --- registration and heartbeats ---

    def _leader_changed(self) -> None:
        if self._leader_id:
            logger.info("Another master leads now.")
        self._begin_registration()

    def _begin_registration(self) -> None:
        self._registered = False
        self._failures = 0
        self._term += 1
        self._link.forget_leader()
        if self._give_up is None:
            self._give_up = self._mailbox.schedule(self._times.registration_timeout_ms, self._no_master)
        self._register(self._term)

    def _register(self, term: int) -> None:
        if term != self._term:
            return
        registration = replace(
            self._registration,
            allocations=tuple(status for status in self._slots.statuses() if status.allocation_id),
            executors=self._executor_statuses(),
        )
        self._effects.perform(
            self._mailbox,
            lambda: self._link.resource_manager().register_task_manager(registration),
            lambda leader: self._registration_succeeded(leader, term),
            lambda error: self._registration_failed(error, term),
        )

    def _registration_succeeded(self, leader: LeaderInfo, term: int) -> None:
        if term != self._term:
            return
        self._registered = True
        if self._give_up is not None:
            self._give_up.cancel()
            self._give_up = None
        logger.info("Successful registration at resource manager %s.", leader.address)
        known, self._leader_id = self._leader_id, leader.fence.leader_id
        if known and known != self._leader_id:
            self._slots = self._slots.offered_anew(self._clock.now_ms())
        # also when it is the same leader again: what it had not taken was offered under another term
        for job_id in self._slots.jobs():
            self._offer_again(job_id, term, self._offered_until_ms())
        self._heartbeat(term)

    def _offered_until_ms(self) -> int:
        return self._clock.monotonic_ms() + self._times.adoption_timeout_ms

    def _registration_failed(self, error: YarnflowError, term: int) -> None:
        if isinstance(error, TaskManagerDismissed):
            self._on_fatal(error)
            return
        if term != self._term:
            return
        self._failures += 1
        self._link.forget_leader()
        delay_ms = self._times.registration_backoff.delay_ms(self._failures)
        log = logger.warning if self._failures % 10 == 0 else logger.debug
        log("Registration failed (%s); next attempt in %d ms.", error, delay_ms)
        self._mailbox.schedule(delay_ms, lambda: self._register(term))

    def _no_master(self) -> None:
        if not self._registered:
            self._on_fatal(
                ResourceError(
                    "no JobManager accepted this TaskManager within "
                    f"{self._times.registration_timeout_ms} ms; "
                    "check jobmanager.rpc.address and jobmanager.rpc.port"
                )
            )

    def _executor_statuses(self) -> tuple[ExecutorStatus, ...]:
        return tuple(_status(executor) for executor in self._executors.values())

    def _heartbeat(self, term: int) -> None:
        if term != self._term or not self._registered:
            return
        report = TaskManagerHeartbeat(
            task_manager_id=self._registration.task_manager_id,
            slots=self._slots.statuses(),
            executors=self._executor_statuses(),
            metrics=self._take_metrics(),
        )
        self._effects.perform(
            self._mailbox,
            lambda: self._link.resource_manager().heartbeat(report),
            lambda _none: self._schedule_heartbeat(term),
            lambda error: self._heartbeat_failed(error, term),
        )

    def _schedule_heartbeat(self, term: int) -> None:
        self._mailbox.schedule(jittered(self._times.heartbeat_interval_ms), lambda: self._heartbeat(term))

    def _heartbeat_failed(self, error: YarnflowError, term: int) -> None:
        if term != self._term:
            return
        if isinstance(error, (TaskManagerNotFound, StaleEpoch)):
            logger.info("The master does not know this TaskManager (any more): %s", error)
        else:
            logger.warning("Heartbeat failed: %s", error)
        # the slots and executors stay: the data plane does not depend on the master
        self._begin_registration()


def _status(executor: _Executor) -> ExecutorStatus:
    what = executor.descriptor
    return ExecutorStatus(what.executor_id, what.job_id, what.driver_id, executor.pid, what.cores)
