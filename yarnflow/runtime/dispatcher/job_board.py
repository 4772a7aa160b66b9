"""What everybody may read about jobs, without disturbing the thread that runs them.

JobMasters pin a new snapshot after each change; clients read or wait for a newer one.  A change
wakes those who wait for the same job and nobody else; of changes that leave the job's status as it is
they see several in one, so what publishing costs depends neither on how many clients wait nor on how
often a driver reports.  Ended jobs stay until ``jobstore.max-capacity`` newer ones have ended.  Before a
cluster ends with its jobs it asks whether everybody who follows them has seen their end.

Flink counterparts: ``ExecutionGraphInfoStore`` and ``AccessExecutionGraph``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.core.ports import Clock
from yarnflow.errors import JobNotFound

#: whoever has not asked again after this time does not follow the job any more
FOLLOWER_PATIENCE_MS: Final = 5_000
#: polls of one job end at most about so often while its status stays as it is
PACE_MS: Final = 100
_LOOK_AGAIN_MS: Final = 20


@dataclass(slots=True)
class _Followers:
    """Who follows a job by long polls."""

    #: the polls that wait; shares the board's lock
    changed: threading.Condition
    #: of the snapshot whose status was new; whoever has an older one is not put off
    status_version: int
    #: when they were last woken
    woken_ms: int
    #: polls that wait
    waiting: int = 0
    #: since when somebody has a snapshot that is not the last one, and has not asked again
    reading_since_ms: deque[int] = field(default_factory=deque)
    #: somebody has the last one
    told: bool = False

    def came(self, again: bool) -> None:
        """A poll begins, of somebody who knows a snapshot already or not."""
        self.waiting += 1
        if again and self.reading_since_ms:
            self.reading_since_ms.pop()  # who comes back comes back soon, so it is the youngest

    def left(self, told: bool, now_ms: int) -> None:
        """A poll ends."""
        self.waiting -= 1
        self.forget_lost(now_ms)
        if told:
            self.told = True
        else:
            self.reading_since_ms.append(now_ms)

    def forget_lost(self, now_ms: int) -> None:
        """Those that did not come back are not waited for."""
        while self.reading_since_ms and now_ms - self.reading_since_ms[0] >= FOLLOWER_PATIENCE_MS:
            self.reading_since_ms.popleft()


class JobBoard:
    """Latest :class:`JobDetails` of each job; thread-safe.

    Parameters
    ----------
    clock : Clock
        For the waiting time of long polls.
    max_ended_jobs : int
        Ended jobs kept, oldest dropped first.
    on_status : callable, optional
        Told of each snapshot whose status is new, from the thread that publishes; must not block.
    on_change : callable, optional
        Told the job's id after each snapshot that may be seen, from the thread that publishes; must not
        block.
    first_version : int
        Versions are above it; so they rise from one leader to the next.
    keep_end : callable, optional
        ``(last snapshot, shown)``: writes a job's end down and calls ``shown``; until then nobody
        sees that end.  Must not block.
    """

    def __init__(
        self,
        clock: Clock,
        max_ended_jobs: int,
        on_status: Callable[[JobDetails], None] | None = None,
        keep_end: Callable[[JobDetails, Callable[[], None]], None] | None = None,
        first_version: int = 0,
        on_change: Callable[[JobId], None] | None = None,
    ) -> None:
        self._on_change = on_change
        self._first_version = first_version
        self._keep_end = keep_end
        #: ends that are being written down
        self._unseen: dict[JobId, JobDetails] = {}
        self._clock = clock
        self._max_ended_jobs = max_ended_jobs
        self._on_status = on_status
        self._followers: dict[JobId, _Followers] = {}
        self._details: dict[JobId, JobDetails] = {}
        #: jobs whose end is shown, in the order of their ends: another master's clock may have been ahead
        self._ended: dict[JobId, None] = {}
        self._lock = threading.RLock()
        #: only waited at, for a time
        self._asleep = threading.Condition(self._lock)

    def publish(self, details: JobDetails) -> None:
        """Replace a job's snapshot; its version is set one above the one before."""
        job_id = details.overview.job_id
        if self._keep_end is not None and details.overview.status.globally_terminal:
            with self._lock:
                known = self._details.get(job_id)
                begun = job_id in self._unseen
                wait = known is None or not known.overview.status.globally_terminal
                if wait:
                    self._unseen[job_id] = details
            if wait:
                if not begun:
                    self._keep_end(details, lambda: self.show(job_id))
                return
        self._put(details)

    def restore(self, details: JobDetails) -> None:
        """A job that ended under an earlier master; it is written down already."""
        self._put(details)

    def show(self, job_id: JobId) -> None:
        """Its end is written down, so everybody may see it.  Idempotent."""
        with self._lock:
            details = self._unseen.pop(job_id, None)
        if details is not None:
            self._put(details)

    def _put(self, details: JobDetails) -> None:
        job_id = details.overview.job_id
        with self._lock:
            before = self._details.get(job_id)
            version = (self._first_version if before is None else before.version) + 1
            self._details[job_id] = replace(details, version=version)
            status = details.overview.status
            new_status = before is None or before.overview.status is not status
            self._wake(job_id, version, new_status)
            if status.globally_terminal:
                self._ended.setdefault(job_id)
                self._drop_oldest()
        if self._on_status is not None and new_status:
            self._on_status(details)
        if self._on_change is not None:
            self._on_change(job_id)

    def _wake(self, job_id: JobId, version: int, new_status: bool) -> None:
        followers = self._followers.get(job_id)
        if followers is None:
            return
        if new_status:
            followers.status_version = version
        now_ms = self._clock.monotonic_ms()
        # whoever came since they were last woken looks by himself when the pace allows it
        if new_status or now_ms - followers.woken_ms >= PACE_MS:
            followers.woken_ms = now_ms
            followers.changed.notify_all()

    def last(self, job_id: JobId) -> JobDetails | None:
        """The newest snapshot, also one that nobody may see yet; None when it is forgotten."""
        with self._lock:
            return self._unseen.get(job_id) or self._details.get(job_id)

    def get(self, job_id: JobId) -> JobDetails:
        """Latest snapshot.

        Raises
        ------
        JobNotFound
            No such job, or it ended long ago.
        """
        with self._lock:
            return self._get(job_id)

    def all(self) -> tuple[JobDetails, ...]:
        """Latest snapshots of all jobs, oldest job first."""
        with self._lock:
            return tuple(self._details.values())

    def await_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        """Wait for a version above ``seen_version``; after ``timeout_ms`` give what there is.

        A change that leaves the status as it is may be given up to :data:`PACE_MS` late, together with
        those that follow it.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        with self._lock:
            details = self._get(job_id)
            followers = self._followers.get(job_id)
            if followers is None:
                followers = _Followers(threading.Condition(self._lock), details.version, 0)
                self._followers[job_id] = followers
            followers.came(again=seen_version > 0)
            paced_ms = followers.woken_ms + PACE_MS
            try:
                while True:
                    details = self._get(job_id)
                    now_ms = self._clock.monotonic_ms()
                    is_paced = now_ms < paced_ms
                    news = seen_version < followers.status_version
                    if news or now_ms >= deadline_ms or (details.version > seen_version and not is_paced):
                        break
                    wake_ms = min(paced_ms, deadline_ms) if is_paced else deadline_ms
                    followers.changed.wait((wake_ms - now_ms) / 1000)
            finally:
                followers.left(details.overview.status.globally_terminal, self._clock.monotonic_ms())
            return details

    def await_followers(self, timeout_ms: int, newcomers_ms: int = 0, *, of_ended: bool = False) -> bool:
        """Wait until everybody who follows an ended job has its last snapshot.

        Parameters
        ----------
        timeout_ms : int
            The longest wait.
        newcomers_ms : int
            How long somebody may still turn up for a job whose end nobody has seen.
        of_ended : bool
            Only for jobs that have ended already; else for all, which are about to end.

        Returns
        -------
        bool
            False = time is over, and somebody has not.
        """
        begin_ms = self._clock.monotonic_ms()
        with self._lock:
            while True:
                now_ms = self._clock.monotonic_ms()
                newcomers = now_ms - begin_ms < newcomers_ms
                if not any(
                    self._is_awaited(job_id, now_ms, newcomers)
                    for job_id, details in self._details.items()
                    if not of_ended or details.overview.status.globally_terminal
                ):
                    return True
                left_ms = begin_ms + timeout_ms - now_ms
                if left_ms <= 0:
                    return False
                # nobody notifies of the ends of polls
                self._asleep.wait(min(left_ms, _LOOK_AGAIN_MS) / 1000)

    def _is_awaited(self, job_id: JobId, now_ms: int, newcomers: bool) -> bool:
        followers = self._followers.get(job_id)
        if followers is None:
            return newcomers
        followers.forget_lost(now_ms)
        expected = newcomers and not followers.told
        return followers.waiting > 0 or bool(followers.reading_since_ms) or expected

    def _get(self, job_id: JobId) -> JobDetails:
        details = self._details.get(job_id)
        if details is None:
            raise JobNotFound(f"no job {job_id} on this cluster; `yarnflow list --all` shows those there are")
        return details

    def _drop_oldest(self) -> None:
        while len(self._ended) > self._max_ended_jobs:
            job_id = next(iter(self._ended))
            del self._ended[job_id], self._details[job_id]
            followers = self._followers.pop(job_id, None)
            if followers is not None:
                followers.changed.notify_all()  # they are told that it is forgotten
