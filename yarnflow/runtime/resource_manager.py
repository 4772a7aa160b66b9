"""Slots and TaskManagers of the whole cluster.

It matches jobs' slot requirements with free slots, notices dead TaskManagers and asks the
ResourceProvider for more when slots are missing.  Which slot goes where is decided by
:mod:`yarnflow.core.slots`.

A killed TaskManager is noticed at once: the server sees its connection close and asks it for a
sign of life; the heartbeat timeout is for those that hang.

Flink counterparts: ``ResourceManager``, ``SlotManager``, ``HeartbeatManager``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from yarnflow.core.heartbeat import HeartbeatMonitor
from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.messages import LeaderInfo, SlotRequest, TaskManagerHeartbeat, TaskManagerRegistration
from yarnflow.core.ports import Clock, GatewayFactory, ResourceProvider
from yarnflow.core.slots import AllocationLost, FreeSlot, RequestSlot, SlotEffect, SlotManager
from yarnflow.errors import TaskManagerNotFound, YarnflowError
from yarnflow.runtime.mailbox import Effects, Mailbox

logger = logging.getLogger(__name__)


class JobNotices(Protocol):
    """The Dispatcher as the ResourceManager sees it."""

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None: ...

    def slot_lost(self, job_id: JobId, allocation_id: AllocationId, reason: str) -> None: ...

    def slots_unfulfillable(self, job_id: JobId, message: str) -> None: ...


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
    ) -> None:
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
        #: workers asked for that have not registered
        self._workers_pending = settings.workers_expected
        #: worker ids that have registered, kept so that an end reported late is not taken for another
        self._workers: set[str] = set()
        provider.on_worker_exit(
            lambda worker_id, status: mailbox.post(lambda: self._worker_exited(worker_id, status))
        )

    def start(self) -> None:
        """Begin to watch heartbeats."""
        self._mailbox.post(self._watch)

    # --- ResourceManagerGateway ---

    def register_task_manager(self, registration: TaskManagerRegistration) -> LeaderInfo:
        """Take a TaskManager in."""
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

    # --- in the mailbox ---

    def _register(self, registration: TaskManagerRegistration) -> None:
        self._mailbox.assert_mailbox_thread()
        task_manager_id = registration.task_manager_id
        known = task_manager_id in self._registrations
        self._registrations[task_manager_id] = registration
        self._manager = self._manager.register_task_manager(
            task_manager_id, registration.address, registration.slots, self._clock.monotonic_ms()
        )
        self._monitor = self._monitor.monitor(task_manager_id, self._clock.monotonic_ms())
        if not known:
            if registration.worker_id:
                self._workers_pending = max(self._workers_pending - 1, 0)
                self._workers.add(registration.worker_id)
            logger.info(
                "Registering TaskManager %s (%s) with %d slots.",
                task_manager_id, registration.address, registration.slots,
            )  # fmt: skip
        self._match()

    def _heartbeat(self, report: TaskManagerHeartbeat) -> None:
        if report.task_manager_id not in self._manager.task_managers:
            return
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
        self._match()

    def _release(self, job_id: JobId) -> None:
        self._manager, effects = self._manager.free_job(job_id, self._clock.monotonic_ms())
        self._perform(effects)
        self._match()

    def _match(self) -> None:
        self._manager, requests = self._manager.match(self._clock.monotonic_ms(), self._allocation_ids())
        self._perform(requests)
        self._request_workers()

    def _request_workers(self) -> None:
        """Ask for the TaskManagers that missing slots need; tell jobs that can never be served."""
        missing = self._manager.missing()
        slots_per_worker = max(
            (len(manager.slots) for manager in self._manager.task_managers.values()),
            default=self._settings.slots_per_worker,
        )
        workers = -(-sum(missing.values()) // slots_per_worker) - self._workers_pending
        limit = self._provider.max_workers
        if limit is not None:
            present = len(self._registrations) + self._workers_pending
            workers = min(workers, limit - present)
            if len(self._registrations) >= limit:
                self._refuse_what_never_fits(missing)
        if workers > 0:
            self._provider.request_workers(workers)
            self._workers_pending += workers

    def _refuse_what_never_fits(self, missing: Mapping[JobId, int]) -> None:
        total = self._manager.slots_total
        for job_id in missing:
            wanted = self._manager.requirements[job_id]
            if wanted > total:
                self._notices().slots_unfulfillable(
                    job_id,
                    f"needs {wanted} slots and this cluster can have no more than {total}; lower the "
                    "parallelism or raise taskmanager.numberOfTaskSlots",
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
        gateway = self._gateways.task_executor(effect.address)
        request = SlotRequest(effect.job_id, effect.allocation_id, effect.slot_index)

        def confirmed(_none: None) -> None:
            self._manager = self._manager.request_confirmed(effect.allocation_id, self._clock.monotonic_ms())

        def failed(error: YarnflowError) -> None:
            logger.warning("TaskManager %s did not give a slot: %s", effect.task_manager_id, error)
            retry_ms = 1_000
            self._manager = self._manager.request_failed(
                effect.allocation_id, self._clock.monotonic_ms(), retry_ms
            )
            self._mailbox.schedule(retry_ms, self._match)

        self._effects.perform(self._mailbox, lambda: gateway.request_slot(request), confirmed, failed)

    def _free_slot(self, effect: FreeSlot) -> None:
        gateway = self._gateways.task_executor(effect.address)
        self._effects.perform(
            self._mailbox,
            lambda: gateway.free_slot(effect.allocation_id),
            lambda _none: None,
            # the next heartbeat shows the slot again, and it is freed then
            lambda error: logger.debug("slot not freed on %s: %s", effect.task_manager_id, error),
        )

    # --- liveness ---

    def _watch(self) -> None:
        for task_manager_id in self._monitor.expired(self._clock.monotonic_ms()):
            timeout_s = self._settings.heartbeat_timeout_ms / 1000
            self._lost(TaskManagerId(task_manager_id), f"no heartbeat for {timeout_s:g} s")
        self._manager, effects = self._manager.expire_pending(
            self._clock.monotonic_ms(), self._settings.pending_slot_timeout_ms
        )
        self._perform(effects)
        if effects:
            self._match()
        self._mailbox.schedule(max(self._settings.heartbeat_timeout_ms // 10, 50), self._watch)

    def _probe(self, task_manager_id: TaskManagerId) -> None:
        """Ask for a sign of life; repeated failures mean the process is gone."""
        registration = self._registrations.get(task_manager_id)
        if registration is None:
            return
        gateway = self._gateways.task_executor(registration.address)

        def failed(error: YarnflowError) -> None:
            self._monitor, unreachable = self._monitor.rpc_failed(task_manager_id)
            if unreachable:
                self._lost(task_manager_id, f"it is no longer reachable ({error})")
            elif task_manager_id in self._registrations:
                self._mailbox.schedule(100, lambda: self._probe(task_manager_id))

        self._effects.perform(self._mailbox, gateway.ping, lambda _none: None, failed)

    def _worker_exited(self, worker_id: str, exit_status: int) -> None:
        if worker_id not in self._workers and not self._provider.replaces_workers:
            self._workers_pending = max(self._workers_pending - 1, 0)  # it ended before it registered
        for registration in list(self._registrations.values()):
            if registration.worker_id == worker_id:
                self._lost(registration.task_manager_id, f"its process ended with status {exit_status}")
                return
        self._mailbox.schedule(1_000, self._match)

    def _lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        registration = self._registrations.pop(task_manager_id, None)
        if registration is None:
            return
        logger.warning("TaskManager %s is lost: %s", task_manager_id, reason)
        if registration.worker_id and self._provider.replaces_workers:
            self._workers_pending += 1  # the one that comes in its place
        self._monitor = self._monitor.unmonitor(task_manager_id)
        self._manager, _lost_allocations = self._manager.unregister_task_manager(task_manager_id, reason)
        self._notices().task_manager_lost(task_manager_id, reason)
        self._match()
