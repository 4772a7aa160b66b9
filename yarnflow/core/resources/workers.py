"""How many workers there should be: which to ask for, to withdraw and to give back.

A worker is what the ResourceProvider starts and what becomes a TaskManager once it registers.
This module keeps the books of requests and workers and compares them with what the slots need
(:class:`Demand`); it never talks to anybody.  What happened comes in with its time, what is to be
done goes out as effects, and :meth:`Workers.plan` is called after every change.

A request is open until it is granted, withdrawn or failed.  The provider may grant before it hears
of a cancel, so nothing is asked for while a cancel has no answer: otherwise there would be more
containers than anybody wanted (YARN-1902).  Workers that come although nobody needs them any more
are given back at once, those that had work only after an idle time.

Flink counterparts: ``ActiveResourceManager``, ``DeclarativeSlotManager``, ``ThresholdMeter``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from yarnflow.core.ids import TaskManagerId
from yarnflow.core.resources.provider import ProviderState, WorkerExit

#: a lost TaskManager's worker is ended by force if its end is not reported within this time
LOST_WORKER_GRACE_MS: Final = 15_000
#: a cancel without an answer counts as done after this time
CANCEL_ANSWER_TIMEOUT_MS: Final = 10_000
#: start failures are counted over this time
FAILURE_WINDOW_MS: Final = 60_000
#: ended workers that are remembered, because signs of them may come late
_GONE_KEPT: Final = 256
_NOT_REGISTERED: Final = TaskManagerId("")


@dataclass(frozen=True, slots=True)
class WorkerPolicy:
    """What the options say."""

    #: TaskManagers kept beyond what the jobs need
    redundant: int = 0
    idle_timeout_ms: int = 30_000
    #: from the grant to the registration
    registration_timeout_ms: int = 300_000
    #: failures before registration; above it nothing is asked for during the retry interval
    max_failures_per_minute: float = 10.0
    retry_interval_ms: int = 3_000
    #: no more than this can ever be had; None = no bound is known
    max_workers: int | None = None
    #: the provider keeps its workers: those that end come back, none is withdrawn or given back
    kept_by_provider: bool = False


@dataclass(frozen=True, slots=True)
class Demand:
    """What the slots need."""

    #: workers beyond the registered ones
    more: int = 0
    #: registered TaskManagers no job needs → since when
    idle: Mapping[TaskManagerId, int] = field(default_factory=dict)


class WorkerState(Enum):
    """A worker that has a name."""

    GRANTED = "GRANTED"
    REGISTERED = "REGISTERED"
    #: its TaskManager is lost, its end is not reported yet
    LOST = "LOST"
    #: asked to end
    RELEASED = "RELEASED"


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker."""

    worker_id: str
    state: WorkerState
    #: time of the last change of state
    since_ms: int
    task_manager_id: TaskManagerId = _NOT_REGISTERED
    #: registered, and not planned with yet
    fresh: bool = False
    #: started by another master's provider, which alone hears of its end
    foreign: bool = False


# --- effects ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestWorkers:
    """Ask the provider for more workers."""

    count: int


@dataclass(frozen=True, slots=True)
class CancelRequests:
    """Withdraw open requests; post the answer back."""

    count: int


@dataclass(frozen=True, slots=True)
class ReleaseWorker:
    """Give a worker back, after its TaskManager (if it has one) was disconnected."""

    worker_id: str
    #: empty when it did not register, or is lost
    task_manager_id: TaskManagerId
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A registered TaskManager's worker has ended."""

    task_manager_id: TaskManagerId
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerDiagnosed:
    """Why a TaskManager died that was lost before."""

    task_manager_id: TaskManagerId
    text: str


@dataclass(frozen=True, slots=True)
class StartFailed:
    """A worker ended or stayed silent before it registered."""

    worker_id: str
    text: str
    #: so many in the last minute
    failures: int
    #: nothing is asked for during this time; 0 = the rate is tolerable
    pause_ms: int


WorkerEffect = RequestWorkers | CancelRequests | ReleaseWorker | WorkerLost | WorkerDiagnosed | StartFailed


def describe_end(exit: WorkerExit) -> str:
    """How a worker ended, in the provider's words where it has some."""
    how = "its process ended" + (f" with status {exit.exit_status}" if exit.exit_status is not None else "")
    return f"{how}: {exit.diagnostics}" if exit.diagnostics else how


@dataclass(frozen=True, slots=True)
class Workers:
    """The books; every method returns new ones."""

    policy: WorkerPolicy = WorkerPolicy()
    #: requests that may still be withdrawn
    open: int = 0
    #: of these: asked to be withdrawn, not answered
    canceling: int = 0
    cancel_since_ms: int = 0
    #: granted, but their names are not known yet
    unnamed: int = 0
    workers: Mapping[str, Worker] = field(default_factory=dict)
    #: names of the last ones that ended
    gone: tuple[str, ...] = ()
    #: workers asked for before any job was known, kept until one is or the idle time is over
    reserved: int = 0
    reserved_until_ms: int = 0
    #: when workers failed to start, within the last minute
    failures: tuple[int, ...] = ()
    last_failure: str = ""
    paused_until_ms: int = 0
    #: until then workers may be those of an earlier leader
    inherits_until_ms: int = 0
    #: the provider's word on the open requests
    outlook: str = ""

    @classmethod
    def expecting(cls, policy: WorkerPolicy, count: int, at_ms: int) -> Workers:
        """Begin with ``count`` requests that somebody has made already."""
        return cls(
            policy, open=count, reserved=count, reserved_until_ms=at_ms + policy.idle_timeout_ms
        )

    def patient(self, until_ms: int) -> Workers:
        """Ask for nothing before that time: TaskManagers of an earlier leader are about to register.

        None that is there already is given back before the idle time is over as well: it may have what
        a job needs, of which nothing is known yet.
        """
        return replace(
            self,
            paused_until_ms=max(self.paused_until_ms, until_ms),
            inherits_until_ms=until_ms + self.policy.idle_timeout_ms,
        )

    # --- reading ------------------------------------------------------------

    @property
    def coming(self) -> int:
        """Workers on their way: asked for or granted, not registered."""
        return max(self.open - self.canceling, 0) + self.unnamed + self._count(WorkerState.GRANTED)

    @property
    def present(self) -> int:
        """Workers that run a TaskManager."""
        return self._count(WorkerState.REGISTERED)

    def may_register(self, worker_id: str) -> bool:
        """False for a worker that has ended or was told to."""
        worker = self.workers.get(worker_id)
        return worker_id not in self.gone and (worker is None or worker.state is not WorkerState.RELEASED)

    def waiting_for(self, at_ms: int) -> str:
        """What jobs that lack slots wait for, as far as it is known."""
        if self.failures and at_ms - self.failures[-1] < FAILURE_WINDOW_MS:
            paused = (
                f"; there is a pause of {self.policy.retry_interval_ms / 1000:g} s "
                "(resourcemanager.start-worker.retry-interval)"
                if at_ms < self.paused_until_ms
                else ""
            )
            return f"TaskManagers fail before they register: {self.last_failure}{paused}"
        return self.outlook

    def deadline_ms(self, demand: Demand, at_ms: int) -> int | None:
        """When :meth:`plan` is to be called although nothing happened; None = never."""
        policy = self.policy
        times = [
            self.reserved_until_ms,
            self.paused_until_ms,
            self.inherits_until_ms,
            *([self.cancel_since_ms + CANCEL_ANSWER_TIMEOUT_MS] if self.canceling else []),
            *(since_ms + policy.idle_timeout_ms for since_ms in demand.idle.values()),
            *(failed_ms + FAILURE_WINDOW_MS for failed_ms in self.failures[-1:]),
        ]
        for worker in self.workers.values():
            if worker.state is WorkerState.GRANTED:
                times.append(worker.since_ms + policy.registration_timeout_ms)
            elif worker.state is WorkerState.LOST:
                times.append(worker.since_ms + LOST_WORKER_GRACE_MS)
        return min((time_ms for time_ms in times if time_ms > at_ms), default=None)

    # --- what happened ------------------------------------------------------

    def job_known(self) -> Workers:
        """From now on the jobs alone say what is needed."""
        return replace(self, reserved=0, reserved_until_ms=0)

    def provider_state(self, state: ProviderState, at_ms: int) -> Workers:
        """The provider has granted requests, or says why it does not."""
        books = replace(self, outlook=state.message if state.ungranted else "")
        for worker_id in state.granted:
            if worker_id not in books.workers and worker_id not in books.gone:
                books = books._one_came()._put(Worker(worker_id, WorkerState.GRANTED, at_ms))
        return books

    def requests_canceled(self, withdrawn: int) -> Workers:
        """The answer to a cancel.  Requests it could not withdraw have been granted."""
        if not self.canceling:
            return self  # it came after its time-out
        left = max(self.open - withdrawn, 0)
        if withdrawn >= self.canceling:
            return replace(self, open=left, canceling=0)
        return replace(self, open=0, canceling=0, unnamed=self.unnamed + left)

    def registered(
        self, worker_id: str, task_manager_id: TaskManagerId, at_ms: int, *, foreign: bool = False
    ) -> Workers:
        """A worker has registered its TaskManager.  Ask :meth:`may_register` before.

        Parameters
        ----------
        foreign : bool
            Another master asked for it; it counts like any other, but is no answer to a request.
        """
        known = self.workers.get(worker_id)
        if known is not None and known.state is WorkerState.REGISTERED:
            return self
        came = known is None or (self.policy.kept_by_provider and known.state is WorkerState.LOST)
        books = self._one_came() if came and not foreign else self
        # one that ran before this master led is not given back because no job has claimed it yet
        return books._put(
            Worker(
                worker_id,
                WorkerState.REGISTERED,
                at_ms,
                task_manager_id,
                fresh=not foreign and at_ms >= self.inherits_until_ms,
                foreign=foreign,
            )
        )

    def lost(
        self, worker_id: str, at_ms: int, *, hangs: bool = False
    ) -> tuple[Workers, tuple[WorkerEffect, ...]]:
        """A registered TaskManager is lost, but its worker's end was not reported.

        Parameters
        ----------
        hangs : bool
            Its process may well be alive; it is ended at once, else after a while.
        """
        worker = self.workers.get(worker_id)
        if worker is None or worker.state is not WorkerState.REGISTERED:
            return self, ()
        if worker.foreign:  # should it live after all, it may come back
            left = {name: other for name, other in self.workers.items() if name != worker_id}
            return replace(self, workers=left), ()
        books = self._put(replace(worker, state=WorkerState.LOST, since_ms=at_ms))
        if self.policy.kept_by_provider:
            return replace(books, open=books.open + 1), ()  # the one that comes in its place
        if not hangs:
            return books, ()
        return books._release(worker, at_ms, "its TaskManager does not answer any more", connected=False)

    def exited(self, exit: WorkerExit, at_ms: int) -> tuple[Workers, tuple[WorkerEffect, ...]]:
        """The provider reports the end of a worker."""
        worker = self.workers.get(exit.worker_id)
        if worker is None:
            if exit.worker_id in self.gone:
                return self, ()
            books = self._ended(exit.worker_id)
            if exit.released or self.policy.kept_by_provider:
                return books, ()
            return books._one_came()._failed(exit.worker_id, describe_end(exit), at_ms)
        books = self._ended(exit.worker_id)
        if worker.state is WorkerState.GRANTED and not exit.released:
            return books._failed(exit.worker_id, describe_end(exit), at_ms)
        if worker.state is WorkerState.REGISTERED:
            if self.policy.kept_by_provider:
                books = replace(books, open=books.open + 1)
            return books, (WorkerLost(worker.task_manager_id, describe_end(exit)),)
        if worker.state is WorkerState.LOST and not exit.released:
            return books, (WorkerDiagnosed(worker.task_manager_id, describe_end(exit)),)
        return books, ()

    # --- what is to be done -------------------------------------------------

    def plan(self, demand: Demand, at_ms: int) -> tuple[Workers, tuple[WorkerEffect, ...]]:
        """Compare what there is with what is needed."""
        books, effects = self._expire(at_ms)
        lacking = books._lacking(demand)
        if not self.policy.kept_by_provider:
            books, given_back = books._give_back(demand, at_ms)
            books, withdrawn = books._withdraw(books.coming - lacking, at_ms)
            effects += given_back + withdrawn
        books, requested = books._request(lacking - books.coming, at_ms)
        planned = {
            name: replace(worker, fresh=False) if worker.fresh else worker
            for name, worker in books.workers.items()
        }
        return replace(books, workers=planned), effects + requested

    def _lacking(self, demand: Demand) -> int:
        """How many should be on their way."""
        redundant = max(self.policy.redundant - len(demand.idle), 0)
        return max(demand.more + redundant, self.reserved - self.present)

    def _expire(self, at_ms: int) -> tuple[Workers, tuple[WorkerEffect, ...]]:
        books = self
        effects: tuple[WorkerEffect, ...] = ()
        if books.reserved and at_ms >= books.reserved_until_ms:
            books = books.job_known()
        if books.canceling and at_ms - books.cancel_since_ms >= CANCEL_ANSWER_TIMEOUT_MS:
            books = books.requests_canceled(books.canceling)
        if self.policy.kept_by_provider:
            return books, effects
        for worker in self.workers.values():
            waited_ms = at_ms - worker.since_ms
            if worker.state is WorkerState.LOST and waited_ms >= LOST_WORKER_GRACE_MS:
                books, more = books._release(worker, at_ms, "its end is not reported", connected=False)
                effects += more
            elif worker.state is WorkerState.GRANTED and waited_ms >= self.policy.registration_timeout_ms:
                text = f"no TaskManager registered within {self.policy.registration_timeout_ms / 1000:g} s"
                books, more = books._release(worker, at_ms, text)
                books, failed = books._failed(worker.worker_id, text, at_ms)
                effects += more + failed
        return books, effects

    def _give_back(self, demand: Demand, at_ms: int) -> tuple[Workers, tuple[WorkerEffect, ...]]:
        """Idle workers beyond the redundant ones: those that never had work, then the longest idle."""
        if self.reserved:
            return self, ()
        owned = {worker.task_manager_id: worker for worker in self.workers.values()}
        idle = [
            (not owned[name].fresh, since_ms, owned[name])
            for name, since_ms in demand.idle.items()
            if name in owned and owned[name].state is WorkerState.REGISTERED
        ]
        surplus = len(demand.idle) - self.policy.redundant
        books = self
        effects: tuple[WorkerEffect, ...] = ()
        for had_work, since_ms, worker in sorted(idle, key=lambda entry: entry[:2])[: max(surplus, 0)]:
            if not had_work:
                books, more = books._release(worker, at_ms, "it is not needed any more")
                effects += more
            elif at_ms - since_ms >= self.policy.idle_timeout_ms:
                reason = f"it had no job for {self.policy.idle_timeout_ms / 1000:g} s"
                books, more = books._release(worker, at_ms, reason)
                effects += more
        return books, effects

    def _withdraw(self, surplus: int, at_ms: int) -> tuple[Workers, tuple[WorkerEffect, ...]]:
        """Of those on their way: open requests first, then what was granted last."""
        books = self
        effects: tuple[WorkerEffect, ...] = ()
        may_be_withdrawn = min(max(surplus, 0), max(self.open - self.canceling, 0))
        if may_be_withdrawn and not self.canceling:
            books = replace(self, canceling=may_be_withdrawn, cancel_since_ms=at_ms)
            effects += (CancelRequests(may_be_withdrawn),)
        inherits = at_ms < self.inherits_until_ms
        granted = [
            worker
            for worker in self.workers.values()
            if worker.state is WorkerState.GRANTED and not inherits
        ]
        granted.sort(key=lambda worker: -worker.since_ms)
        for worker in granted[: max(surplus - may_be_withdrawn, 0)]:
            books, more = books._release(worker, at_ms, "it is not needed any more")
            effects += more
        return books, effects

    def _request(self, count: int, at_ms: int) -> tuple[Workers, tuple[WorkerEffect, ...]]:
        limit = self.policy.max_workers
        if limit is not None:
            count = min(count, limit - self.present - self.coming)
        if count <= 0 or self.canceling or at_ms < self.paused_until_ms:
            return self, ()
        return replace(self, open=self.open + count), (RequestWorkers(count),)

    # --- helpers ------------------------------------------------------------

    def _count(self, state: WorkerState) -> int:
        return sum(worker.state is state for worker in self.workers.values())

    def _put(self, worker: Worker) -> Workers:
        return replace(self, workers={**self.workers, worker.worker_id: worker})

    def _one_came(self) -> Workers:
        """One request has become a worker nobody heard of before."""
        if self.unnamed:
            return replace(self, unnamed=self.unnamed - 1)
        return replace(self, open=max(self.open - 1, 0))

    def _ended(self, worker_id: str) -> Workers:
        left = {name: worker for name, worker in self.workers.items() if name != worker_id}
        gone: Sequence[str] = (*self.gone, worker_id) if worker_id else self.gone
        return replace(self, workers=left, gone=tuple(gone[-_GONE_KEPT:]))

    def _release(
        self, worker: Worker, at_ms: int, reason: str, *, connected: bool = True
    ) -> tuple[Workers, tuple[WorkerEffect, ...]]:
        if worker.foreign:  # nobody will report its end
            books = self._ended(worker.worker_id)
        else:
            books = self._put(replace(worker, state=WorkerState.RELEASED, since_ms=at_ms, fresh=False))
        task_manager_id = worker.task_manager_id if connected else _NOT_REGISTERED
        return books, (ReleaseWorker(worker.worker_id, task_manager_id, reason),)

    def _failed(self, worker_id: str, text: str, at_ms: int) -> tuple[Workers, tuple[WorkerEffect, ...]]:
        recent = tuple(time_ms for time_ms in self.failures if at_ms - time_ms < FAILURE_WINDOW_MS) + (at_ms,)
        pause_ms = self.policy.retry_interval_ms if len(recent) > self.policy.max_failures_per_minute else 0
        books = replace(
            self,
            failures=recent,
            last_failure=text,
            paused_until_ms=at_ms + pause_ms if pause_ms else self.paused_until_ms,
        )
        return books, (StartFailed(worker_id, text, len(recent), pause_ms),)
