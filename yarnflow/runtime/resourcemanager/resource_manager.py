"""Slots and TaskManagers of the whole cluster.

It matches jobs' slot requirements with free slots, notices dead TaskManagers, asks the
ResourceProvider for more when slots are missing and gives back those nobody needs.  Which slot
goes where is decided by :mod:`yarnflow.core.resources.slot_manager`, how many workers there are by
:mod:`yarnflow.core.resources.workers`.

A killed TaskManager is noticed at once: the server sees its connection close and asks it for a
sign of life; the heartbeat timeout is for those that hang.

Flink counterparts: ``ActiveResourceManager``, ``SlotManager``, ``HeartbeatManager``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from yarnflow.core.heartbeat import HeartbeatMonitor
from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.messages import (
    LeaderInfo,
    MetricDump,
    SlotRequest,
    TaskManagerHeartbeat,
    TaskManagerRegistration,
)
from yarnflow.core.ports import Clock, GatewayFactory, ResourceProvider
from yarnflow.core.resources.provider import ProviderState, TaskManagerInfo, WorkerExit
from yarnflow.core.resources.slot_manager import (
    AllocationLost,
    FreeSlot,
    RequestSlot,
    SlotEffect,
    SlotManager,
)
from yarnflow.core.resources.workers import (
    CancelRequests,
    ReleaseWorker,
    RequestWorkers,
    StartFailed,
    WorkerDiagnosed,
    WorkerEffect,
    WorkerLost,
    WorkerPolicy,
    Workers,
)
from yarnflow.errors import CallSuspended, TaskManagerDismissed, TaskManagerNotFound, YarnflowError
from yarnflow.runtime.mailbox import Effects, Mailbox, TimerHandle

logger = logging.getLogger(__name__)

#: TaskManagers that were given up and may still come back
_GIVEN_UP_KEPT: Final = 1_000
#: before a TaskManager is asked for a sign of life again
_PROBE_MS: Final = 100
#: … when it could not be asked
_SUSPENDED_PROBE_MS: Final = 1_000


class JobNotices(Protocol):
    """The Dispatcher as the ResourceManager sees it."""

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None: ...

    def slot_lost(self, job_id: JobId, allocation_id: AllocationId, reason: str) -> None: ...

    def slots_unfulfillable(self, job_id: JobId, message: str) -> None: ...

    def task_manager_diagnosed(self, task_manager_id: TaskManagerId, text: str) -> None:
        """Why a TaskManager died that was reported lost before; at most once for each."""

    def resources_wait(self, text: str) -> None:
        """What all jobs that lack slots are waiting for; empty = nothing is known (any more)."""


@dataclass(frozen=True, slots=True)
class ResourceManagerSettings:
    """Intervals and sizes."""

    heartbeat_timeout_ms: int
    #: failed signs of life in a row before a TaskManager is given up
    rpc_failure_threshold: int
    call_timeout_ms: int
    #: a slot request without answer is given up after this
    pending_slot_timeout_ms: int
    slots_per_worker: int
    #: TaskManagers that are being started already
    workers_expected: int = 0
    #: TaskManagers kept beyond what the jobs need (``slotmanager.redundant-taskmanager-num``)
    redundant_workers: int = 0
    #: a TaskManager without any job is given back after this (``resourcemanager.taskmanager-timeout``)
    idle_timeout_ms: int = 30_000
    #: a granted worker that does not register counts as failed after this
    registration_timeout_ms: int = 300_000
    #: failures before registration in one minute, above which there is a pause
    max_start_failures_per_minute: float = 10.0
    #: that pause
    start_retry_interval_ms: int = 3_000
    #: how long slots given by an earlier leader wait for their job
    adoption_timeout_ms: int = 20_000
    #: how long no worker is asked for, because those of an earlier leader are about to register
    takeover_grace_ms: int = 0
    #: most slots of all TaskManagers asked for (``slotmanager.number-of-slots.max``); None = no bound
    max_slots: int | None = None


class ResourceManager:
    """Implements ``ResourceManagerGateway`` and what JobMasters ask.

    Parameters
    ----------
    settings, clock, mailbox, effects, gateways
        As their names say.
    provider : ResourceProvider
        Where further TaskManagers come from.
    leader_info : callable
        Handed to TaskManagers at registration.
    new_id : callable
        Fresh hexadecimal ids.
    notices : JobNotices
        Told of lost TaskManagers.
    own_worker : callable
        Whether a worker is one of this provider's, or one that another master has asked for.
    on_metrics : callable
        Takes what a TaskManager has measured; any thread, and quick.
    """

    def __init__(
        self,
        settings: ResourceManagerSettings,
        clock: Clock,
        mailbox: Mailbox,
        effects: Effects,
        gateways: GatewayFactory,
        provider: ResourceProvider,
        leader_info: Callable[[], LeaderInfo],
        new_id: Callable[[], str],
        notices: Callable[[], JobNotices],
        own_worker: Callable[[str], bool] = lambda _worker_id: True,
        on_metrics: Callable[[TaskManagerId, Sequence[MetricDump]], None] = lambda _id, _dumps: None,
    ) -> None:
        self._on_metrics = on_metrics
        self._own_worker = own_worker
        #: TaskManagers given up here: what they still hold has been replaced; the newest, in order
        self._given_up: dict[TaskManagerId, None] = {}
        self._settings = settings
        self._clock = clock
        self._mailbox = mailbox
        self._effects = effects
        self._gateways = gateways
        self._provider = provider
        self._leader_info = leader_info
        self._new_id = new_id
        self._notices = notices
        #: immutable value, read from other threads for overviews
        self._manager = SlotManager()
        self._registrations: dict[TaskManagerId, TaskManagerRegistration] = {}
        self._monitor = HeartbeatMonitor(settings.heartbeat_timeout_ms, settings.rpc_failure_threshold)
        #: no more TaskManagers than this can ever be had; None = no bound is known
        self._max_workers = _fewest(
            provider.max_workers,
            None if settings.max_slots is None else settings.max_slots // settings.slots_per_worker,
        )
        policy = WorkerPolicy(
            redundant=settings.redundant_workers,
            idle_timeout_ms=settings.idle_timeout_ms,
            registration_timeout_ms=settings.registration_timeout_ms,
            max_failures_per_minute=settings.max_start_failures_per_minute,
            retry_interval_ms=settings.start_retry_interval_ms,
            max_workers=self._max_workers,
            kept_by_provider=provider.replaces_workers,
        )
        self._workers = Workers.expecting(policy, settings.workers_expected, clock.monotonic_ms())
        if settings.takeover_grace_ms:
            self._workers = self._workers.patient(clock.monotonic_ms() + settings.takeover_grace_ms)
        self._plan_timer: TimerHandle | None = None
        #: what jobs were told last that they wait for
        self._wait_text = ""
        provider.on_worker_exit(lambda exit: mailbox.post(lambda: self._worker_exited(exit)))
        provider.on_requests_canceled(
            lambda _asked, withdrawn: mailbox.post(lambda: self._requests_canceled(withdrawn))
        )
        provider.on_state(lambda state: mailbox.post(lambda: self._provider_state(state)))

    def start(self) -> None:
        """Begin to watch heartbeats."""
        self._mailbox.post(self._watch)

    def resumed(self) -> None:
        """This master led all the time, but could not hear anybody: their silence means nothing."""
        self._mailbox.post(self._resumed)

    # --- ResourceManagerGateway ---

    def register_task_manager(self, registration: TaskManagerRegistration) -> LeaderInfo:
        """Take a TaskManager in.

        Raises
        ------
        TaskManagerDismissed
            It was given back, or its end was reported.
        """
        self._mailbox.call(lambda: self._register(registration), self._settings.call_timeout_ms)
        return self._leader_info()

    def heartbeat(self, report: TaskManagerHeartbeat) -> None:
        """Note a sign of life; only posts, the caller is the RPC thread.

        Raises
        ------
        TaskManagerNotFound
            It must register again.
        """
        if report.task_manager_id not in self._manager.task_managers:
            raise TaskManagerNotFound(
                f"TaskManager {report.task_manager_id} is not registered here; it must register again"
            )
        if report.metrics:
            self._on_metrics(report.task_manager_id, report.metrics)
        self._mailbox.post(lambda: self._heartbeat(report))

    def disconnect_task_manager(self, task_manager_id: TaskManagerId, reason: str) -> None:
        """A TaskManager leaves in good order."""
        self._mailbox.post(lambda: self._lost(task_manager_id, reason))

    def connection_closed(self, identity: str) -> None:
        """The RPC server saw a connection of ``identity`` close; any thread."""
        self._mailbox.post(lambda: self._probe(TaskManagerId(identity)))

    # --- for JobMasters and the Dispatcher ---

    def declare_requirements(self, job_id: JobId, slots: int) -> None:
        """From now on the job wants ``slots`` slots in all."""
        self._mailbox.post(lambda: self._declare(job_id, slots))

    def release_slots(self, job_id: JobId) -> None:
        """The job is over; take all its slots back."""
        self._mailbox.post(lambda: self._release(job_id))

    def slot_counts(self) -> tuple[int, int, int]:
        """TaskManagers, slots in all, slots free."""
        manager = self._manager
        return len(manager.task_managers), manager.slots_total, manager.slots_free

    def pending_task_managers(self) -> int:
        """TaskManagers that were asked for, or are starting, and have not registered; any thread."""
        return self._workers.coming

    def task_managers(self) -> tuple[TaskManagerInfo, ...]:
        """The registered TaskManagers, for the web page; from any thread."""
        slots, beats = self._manager.task_managers, self._monitor.targets
        offset_ms = self._clock.now_ms() - self._clock.monotonic_ms()
        return tuple(
            TaskManagerInfo(
                registration=registration,
                slots=len(slots[task_manager_id].slots),
                free_slots=slots[task_manager_id].free,
                last_heartbeat_ms=beats[task_manager_id].last_seen_ms + offset_ms,
                job_ids=tuple(slot.job_id for slot in slots[task_manager_id].slots if slot.job_id),
            )
            for task_manager_id, registration in list(self._registrations.items())
            if task_manager_id in slots and task_manager_id in beats
        )

    # --- in the mailbox ---

    def _register(self, registration: TaskManagerRegistration) -> None:
        self._mailbox.assert_mailbox_thread()
        task_manager_id = registration.task_manager_id
        if not self._workers.may_register(registration.worker_id):
            raise TaskManagerDismissed(
                f"TaskManager {task_manager_id} was given back and must end; start another one instead"
            )
        for target in _targets_at(registration.address):
            self._effects.heard_of(target)
        known = task_manager_id in self._registrations
        adopted = () if task_manager_id in self._given_up else registration.allocations
        self._registrations[task_manager_id] = registration
        self._manager = self._manager.register_task_manager(
            task_manager_id,
            registration.address,
            registration.slots,
            self._clock.monotonic_ms(),
            adopted,
        )
        self._monitor = self._monitor.monitor(task_manager_id, self._clock.monotonic_ms())
        if not known:
            if registration.worker_id:
                self._workers = self._workers.registered(
                    registration.worker_id,
                    task_manager_id,
                    self._clock.monotonic_ms(),
                    foreign=not self._own_worker(registration.worker_id),
                )
            logger.info(
                "Registering TaskManager %s (%s) with %d slots, %d of them taken already.",
                task_manager_id, registration.address, registration.slots,
                sum(bool(status.allocation_id) for status in adopted),
            )  # fmt: skip
        self._match()

    def _heartbeat(self, report: TaskManagerHeartbeat) -> None:
        if report.task_manager_id not in self._manager.task_managers:
            return
        for target in _targets_at(self._registrations[report.task_manager_id].address):
            self._effects.alive(target)
        self._monitor = self._monitor.received(report.task_manager_id, self._clock.monotonic_ms())
        before = self._manager
        self._manager, effects = self._manager.reported(
            report.task_manager_id, report.slots, self._clock.monotonic_ms()
        )
        self._perform(effects)
        if self._manager is not before:
            self._match()

    def _declare(self, job_id: JobId, slots: int) -> None:
        self._manager = self._manager.declare_requirements(job_id, slots)
        if slots > 0:
            self._workers = self._workers.job_known()
        self._match()

    def _release(self, job_id: JobId) -> None:
        self._manager, effects = self._manager.free_job(job_id, self._clock.monotonic_ms())
        self._perform(effects)
        self._match()

    def _match(self) -> None:
        self._manager, requests = self._manager.match(self._clock.monotonic_ms(), self._allocation_ids())
        self._perform(requests)
        limit = self._max_workers
        if limit is not None and len(self._registrations) >= limit:
            self._refuse_what_never_fits(self._manager.missing())
        self._plan_workers()

    def _refuse_what_never_fits(self, missing: Mapping[JobId, int]) -> None:
        total = self._manager.slots_total
        for job_id in missing:
            wanted = self._manager.requirements[job_id]
            if wanted > total:
                self._notices().slots_unfulfillable(
                    job_id,
                    f"needs {wanted} slots and this cluster can have no more than {total}; lower the "
                    "parallelism or raise taskmanager.numberOfTaskSlots or slotmanager.number-of-slots.max",
                )

    def _allocation_ids(self) -> Iterator[AllocationId]:
        while True:
            yield AllocationId(self._new_id())

    def _perform(self, effects: Sequence[SlotEffect]) -> None:
        for effect in effects:
            if isinstance(effect, RequestSlot):
                self._request_slot(effect)
            elif isinstance(effect, FreeSlot):
                self._free_slot(effect)
            elif isinstance(effect, AllocationLost):
                self._notices().slot_lost(effect.job_id, effect.allocation_id, effect.reason)

    def _request_slot(self, effect: RequestSlot) -> None:
        request = SlotRequest(effect.job_id, effect.allocation_id, effect.slot_index)

        def ask() -> None:
            self._gateways.task_executor(effect.address).request_slot(request)

        def confirmed(_none: None) -> None:
            self._manager = self._manager.request_confirmed(effect.allocation_id, self._clock.monotonic_ms())

        def failed(error: YarnflowError) -> None:
            logger.warning("TaskManager %s did not give a slot: %s", effect.task_manager_id, error)
            retry_ms = 1_000
            self._manager = self._manager.request_failed(
                effect.allocation_id, self._clock.monotonic_ms(), retry_ms
            )
            self._mailbox.schedule(retry_ms, self._match)

        self._effects.perform(self._mailbox, ask, confirmed, failed, target=effect.address)

    def _free_slot(self, effect: FreeSlot) -> None:
        self._effects.perform(
            self._mailbox,
            lambda: self._gateways.task_executor(effect.address).free_slot(effect.allocation_id),
            lambda _none: None,
            # the next heartbeat shows the slot again, and it is freed then
            lambda error: logger.debug("slot not freed on %s: %s", effect.task_manager_id, error),
            target=effect.address,
        )

    # --- liveness ---

    def _resumed(self) -> None:
        self._monitor = self._monitor.restarted(self._clock.monotonic_ms())

    def _watch(self) -> None:
        for task_manager_id in self._monitor.expired(self._clock.monotonic_ms()):
            timeout_s = self._settings.heartbeat_timeout_ms / 1000
            self._lost(TaskManagerId(task_manager_id), f"no heartbeat for {timeout_s:g} s", hangs=True)
        self._manager, effects = self._manager.expire_pending(
            self._clock.monotonic_ms(), self._settings.pending_slot_timeout_ms
        )
        self._perform(effects)
        self._manager, unclaimed = self._manager.expire_unclaimed(
            self._clock.monotonic_ms(), self._settings.adoption_timeout_ms
        )
        self._perform(unclaimed)
        if effects or unclaimed:
            self._match()
        self._mailbox.schedule(max(self._settings.heartbeat_timeout_ms // 10, 50), self._watch)

    def _probe(self, task_manager_id: TaskManagerId) -> None:
        """Ask for a sign of life; repeated failures mean the process is gone."""
        registration = self._registrations.get(task_manager_id)
        if registration is None:
            return
        address = registration.address

        def ping() -> None:
            self._gateways.task_executor(address).ping()

        def failed(error: YarnflowError) -> None:
            if isinstance(error, CallSuspended):  # it was not asked, so it did not fail
                self._mailbox.schedule(_SUSPENDED_PROBE_MS, lambda: self._probe(task_manager_id))
                return
            self._monitor, unreachable = self._monitor.rpc_failed(task_manager_id)
            if unreachable:
                self._lost(task_manager_id, f"it is no longer reachable ({error})")
            elif task_manager_id in self._registrations:
                self._mailbox.schedule(_PROBE_MS, lambda: self._probe(task_manager_id))

        self._effects.perform(self._mailbox, ping, lambda _none: None, failed, target=_ping_of(address))

    def _lost(self, task_manager_id: TaskManagerId, reason: str, *, hangs: bool = False) -> None:
        registration = self._registrations.get(task_manager_id)
        if registration is None:
            return
        logger.warning("TaskManager %s is lost: %s", task_manager_id, reason)
        self._forget(task_manager_id, reason)
        self._given_up[task_manager_id] = None
        if len(self._given_up) > _GIVEN_UP_KEPT:
            del self._given_up[next(iter(self._given_up))]
        self._notices().task_manager_lost(task_manager_id, reason)
        self._workers, effects = self._workers.lost(
            registration.worker_id, self._clock.monotonic_ms(), hangs=hangs
        )
        self._perform_for_workers(effects)
        self._match()

    def _forget(self, task_manager_id: TaskManagerId, reason: str) -> None:
        self._registrations.pop(task_manager_id, None)
        self._monitor = self._monitor.unmonitor(task_manager_id)
        self._manager, _lost_allocations = self._manager.unregister_task_manager(task_manager_id, reason)

    # --- workers ---

    def _worker_exited(self, exit: WorkerExit) -> None:
        self._workers, effects = self._workers.exited(exit, self._clock.monotonic_ms())
        self._perform_for_workers(effects)
        self._match()

    def _requests_canceled(self, withdrawn: int) -> None:
        self._workers = self._workers.requests_canceled(withdrawn)
        self._plan_workers()

    def _provider_state(self, state: ProviderState) -> None:
        self._workers = self._workers.provider_state(state, self._clock.monotonic_ms())
        self._plan_workers()

    def _plan_workers(self) -> None:
        """Bring the number of workers in line with what the slots need; again when time says so."""
        now_ms = self._clock.monotonic_ms()
        demand = self._manager.demand(self._settings.slots_per_worker)
        self._workers, effects = self._workers.plan(demand, now_ms)
        self._perform_for_workers(effects)
        self._say_what_is_waited_for()
        if self._plan_timer is not None:
            self._plan_timer.cancel()
        deadline_ms = self._workers.deadline_ms(demand, now_ms)
        if deadline_ms is not None:
            self._plan_timer = self._mailbox.schedule(deadline_ms - now_ms, self._plan_workers)

    def _perform_for_workers(self, effects: Sequence[WorkerEffect]) -> None:
        for effect in effects:
            if isinstance(effect, RequestWorkers):
                logger.info("%d more TaskManagers are needed.", effect.count)
                self._provider.request_workers(effect.count)
            elif isinstance(effect, CancelRequests):
                logger.info("%d requested TaskManagers are not needed any more.", effect.count)
                self._cancel_requests(effect.count)
            elif isinstance(effect, ReleaseWorker):
                name = effect.task_manager_id or effect.worker_id
                logger.info("TaskManager %s is given back: %s.", name, effect.reason)
                self._forget(effect.task_manager_id, effect.reason)
                self._provider.release_worker(effect.worker_id)
            elif isinstance(effect, WorkerLost):
                self._lost(effect.task_manager_id, effect.reason)
            elif isinstance(effect, WorkerDiagnosed):
                logger.warning("TaskManager %s: %s", effect.task_manager_id, effect.text)
                self._notices().task_manager_diagnosed(effect.task_manager_id, effect.text)
            elif isinstance(effect, StartFailed):
                self._start_failed(effect)

    def _cancel_requests(self, count: int) -> None:
        withdrawn = self._provider.cancel_requests(count)
        if withdrawn is not None:
            known = withdrawn
            self._mailbox.post(lambda: self._requests_canceled(known))

    def _start_failed(self, effect: StartFailed) -> None:
        pause = (
            f"; {effect.failures} failed within a minute, so nothing is asked for during "
            f"{effect.pause_ms / 1000:g} s (resourcemanager.start-worker.max-failure-rate)"
            if effect.pause_ms
            else ""
        )
        logger.warning("TaskManager %s failed to start: %s%s", effect.worker_id or "?", effect.text, pause)

    def _say_what_is_waited_for(self) -> None:
        lacks = bool(self._manager.missing())
        text = self._workers.waiting_for(self._clock.monotonic_ms()) if lacks else ""
        if text != self._wait_text:
            self._wait_text = text
            self._notices().resources_wait(text)


def _fewest(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _targets_at(address: str) -> tuple[str, str]:
    return address, _ping_of(address)


def _ping_of(address: str) -> str:
    """The target of pings: one must not wait for the calls that it is to explain."""
    return f"{address} (ping)"
