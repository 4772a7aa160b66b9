"""One thread and one queue per endpoint: the only place its state is touched.

Callbacks of RPC, processes and timers only *post*; what they post runs here, one after the
other.  Slow work (calls to other processes) goes to :class:`Effects`, whose results come back
as posts, so that no result is lost and the mailbox never waits.

Flink counterparts: the main thread of an ``RpcEndpoint`` and its ``MainThreadExecutor``.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from yarnflow.core.job.context import current_job, enter_job, in_present_job
from yarnflow.core.ports import Clock
from yarnflow.errors import InternalError, LeadershipLost, RpcTimeout, YarnflowError
from yarnflow.runtime.bulkheads import Bulkheads

T = TypeVar("T")
Action = Callable[[], None]

logger = logging.getLogger(__name__)

#: before a mailbox that may not run looks again whether it may
_HELD_POLL_S: Final = 0.05
#: timers that were canceled and are still in the heap, besides half of it
_CANCELED_KEPT: Final = 32


@dataclass(order=True)
class _Timer:
    due_ms: int
    order: int
    #: None = it has run, or was canceled
    action: Action | None = field(compare=False)


class TimerHandle:
    """Cancels one scheduled action."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel

    def cancel(self) -> None:
        """Do not run the action; harmless when it has run."""
        self._cancel()


class Mailbox:
    """Runs posted actions and timers in order, in one thread.

    One that is made for a job works for that job; any other one for the job of whoever posts.

    Parameters
    ----------
    name : str
        Thread name, for logs.
    clock : Clock
        Its monotonic time decides when timers are due.
    on_fatal : callable, optional
        Called with an error that escaped an action; an endpoint in an unknown state must not go on.
    may_run : callable, optional
        Looked at before each action.  While it is false nothing runs, neither posts nor timers, and
        calls are refused; all that was posted runs afterwards.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        on_fatal: Callable[[BaseException], None] | None = None,
        may_run: Callable[[], bool] | None = None,
    ) -> None:
        self._may_run = may_run
        self._name = name
        self._job = current_job()
        self._clock = clock
        #: its time
        self.clock: Final = clock
        self._on_fatal = on_fatal
        self._ready: deque[Action] = deque()
        self._timers: list[_Timer] = []
        #: of these, canceled
        self._canceled = 0
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._stopping = False
        self._owner: int | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread.  Without it, :meth:`run_pending` drives the mailbox (tests)."""
        self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Run nothing more; waits for the action under way unless called from it."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join()

    def post(self, action: Action) -> None:
        """Run ``action`` later; from any thread, never blocks.  Dropped after :meth:`stop`."""
        action = action if self._job else in_present_job(action)
        with self._changed:
            if not self._stopping:
                self._ready.append(action)
                self._changed.notify()

    def call(self, action: Callable[[], T], timeout_ms: int | None) -> T:
        """Run ``action`` in the mailbox and give its result to the calling thread.

        Parameters
        ----------
        timeout_ms : int, optional
            None = however long it takes, also until the mailbox may run again.

        Raises
        ------
        LeadershipLost
            Nothing may run at the moment.
        RpcTimeout
            The mailbox did not get to it in time; if it has begun with it all the same, it ends it.
        YarnflowError
            What ``action`` raised.
        """
        if timeout_ms is not None:
            self.assert_may_run()
        future: Future[T] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(action())
                except YarnflowError as error:
                    future.set_exception(error)
                except BaseException as error:
                    bug = f"{self._name}: {type(error).__name__}: {error}; please report this"
                    future.set_exception(InternalError(bug))
                    raise

        self.post(run)
        try:
            return future.result(None if timeout_ms is None else timeout_ms / 1000)
        except TimeoutError as error:
            if isinstance(error, YarnflowError):
                raise
            future.cancel()
            raise RpcTimeout(f"{self._name} did not answer within {timeout_ms} ms; try again") from None

    def schedule(self, delay_ms: int, action: Action) -> TimerHandle:
        """Run ``action`` after ``delay_ms``; not for the job of whoever asks: it may go on for others."""
        timer = _Timer(self._clock.monotonic_ms() + max(delay_ms, 0), next(self._order), action)
        with self._changed:
            heapq.heappush(self._timers, timer)
            self._changed.notify()
        return TimerHandle(lambda: self._cancel(timer))

    def assert_may_run(self) -> None:
        """Refuse a call that would only be put off.

        Raises
        ------
        LeadershipLost
            Nothing may run at the moment.
        """
        if self._is_held():
            raise LeadershipLost(f"{self._name}: it is in doubt whether this master leads; try again")

    def assert_mailbox_thread(self) -> None:
        """Fail loudly when endpoint state is touched from a foreign thread."""
        if self._owner != threading.get_ident():
            raise InternalError(f"{self._name}: state touched outside its mailbox thread; please report this")

    def run_pending(self) -> int:
        """Run everything that is due now in the calling thread; returns how many actions ran."""
        self._owner = threading.get_ident()
        count = 0
        while (action := self._next(block=False)) is not None:
            self._run(action)
            count += 1
        return count

    def _loop(self) -> None:
        self._owner = threading.get_ident()
        enter_job(self._job)
        while (action := self._next(block=True)) is not None:
            self._run(action)

    def _is_held(self) -> bool:
        return self._may_run is not None and not self._may_run()

    def _cancel(self, timer: _Timer) -> None:
        with self._changed:
            if timer.action is None:
                return
            timer.action = None
            self._canceled += 1
            # what is far off would stay, with all that its action holds, until it is due
            if self._canceled > max(_CANCELED_KEPT, len(self._timers) // 2):
                self._timers = [timer for timer in self._timers if timer.action is not None]
                heapq.heapify(self._timers)
                self._canceled = 0

    def _next(self, block: bool) -> Action | None:
        with self._changed:
            while not self._stopping:
                if self._is_held():
                    if not block:
                        return None
                    self._changed.wait(_HELD_POLL_S)
                    continue
                now_ms = self._clock.monotonic_ms()
                while self._timers and (self._timers[0].action is None or self._timers[0].due_ms <= now_ms):
                    timer = heapq.heappop(self._timers)
                    if timer.action is None:
                        self._canceled -= 1
                    else:
                        self._ready.append(timer.action)
                        timer.action = None
                if self._ready:
                    return self._ready.popleft()
                if not block:
                    return None
                wait_s = (self._timers[0].due_ms - now_ms) / 1000 if self._timers else None
                self._changed.wait(wait_s)
            return None

    def _run(self, action: Action) -> None:
        try:
            action()
        except BaseException as error:
            logger.exception("%s: fatal error", self._name)
            with self._changed:
                self._stopping = True  # nothing may build on a state nobody knows
            if self._on_fatal is None:
                raise
            self._on_fatal(error)


class Work(Enum):
    """What an effect waits for; whoever hangs holds up only others that wait for the same."""

    #: answers of other processes of the cluster
    CALL = "call"
    #: ZooKeeper: leases
    LEASE = "lease"
    #: the file system: states, graphs and results of jobs, and what ZooKeeper says of them
    STORAGE = "storage"


class Effects:
    """Performs effects that may block, in pools of threads; every end is posted to a mailbox.

    Parameters
    ----------
    max_threads : int
        Effects under way at once, of each kind, that name no target; further ones queue.
    target_threads : int
        Effects under way at once, of each kind, that name one; see
        :class:`~yarnflow.runtime.bulkheads.Bulkheads`.
    """

    def __init__(self, max_threads: int = 16, target_threads: int = 256) -> None:
        self._pools = {
            work: Bulkheads(f"effects-{work.value}", target_threads, max_threads) for work in Work
        }

    def perform(
        self,
        mailbox: Mailbox,
        effect: Callable[[], T],
        on_success: Callable[[T], None],
        on_failure: Callable[[YarnflowError], None],
        work: Work = Work.CALL,
        target: str = "",
    ) -> None:
        """Run ``effect`` in its pool, then exactly one of the two callbacks in ``mailbox``.

        Parameters
        ----------
        target : str
            Whom it waits for (an address), so that others do not wait for him, too.  An effect whose
            target failed several times in a row fails with CallSuspended and is not run.  Empty = it
            must be run in any case.
        """

        def run() -> YarnflowError | None:
            try:
                result = effect()
            except YarnflowError as error:
                failure: YarnflowError = error
            except Exception as error:
                logger.exception("effect failed")
                failure = InternalError(f"{type(error).__name__}: {error}; please report this")
            else:
                mailbox.post(lambda: on_success(result))
                return None
            mailbox.post(lambda: on_failure(failure))
            return failure

        def refused(error: YarnflowError) -> None:
            mailbox.post(lambda: on_failure(error))

        try:
            self._pools[work].submit(target, in_present_job(run), refused)
        except RuntimeError:  # the process is shutting down; nobody is left to tell
            logger.debug("effect dropped at shutdown")

    def alive(self, target: str) -> None:
        """It was heard of, so its effects are not refused; see :meth:`Bulkheads.alive`."""
        self._pools[Work.CALL].alive(target)

    def heard_of(self, target: str) -> None:
        """It has begun anew, so nothing counts that it did not answer before."""
        self._pools[Work.CALL].heard_of(target)

    def close(self) -> None:
        """Start nothing more."""
        for pool in self._pools.values():
            pool.close()
