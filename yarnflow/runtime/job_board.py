"""What everybody may read about jobs, without disturbing the thread that runs them.

JobMasters pin a new snapshot after each change; clients read or wait for a newer one.  Ended
jobs stay until ``jobstore.max-capacity`` newer ones have ended.

Flink counterparts: ``ExecutionGraphInfoStore`` and ``AccessExecutionGraph``.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.core.ports import Clock
from yarnflow.errors import JobNotFound


class JobBoard:
    """Latest :class:`JobDetails` of each job; thread-safe.

    Parameters
    ----------
    clock : Clock
        For the waiting time of long polls.
    max_ended_jobs : int
        Ended jobs kept, oldest dropped first.
    """

    def __init__(self, clock: Clock, max_ended_jobs: int) -> None:
        self._clock = clock
        self._max_ended_jobs = max_ended_jobs
        self._details: dict[JobId, JobDetails] = {}
        self._changed = threading.Condition()

    def publish(self, details: JobDetails) -> None:
        """Replace a job's snapshot; its version is set one above the one before."""
        job_id = details.overview.job_id
        with self._changed:
            before = self._details.get(job_id)
            version = 1 if before is None else before.version + 1
            self._details[job_id] = replace(details, version=version)
            self._drop_oldest()
            self._changed.notify_all()

    def get(self, job_id: JobId) -> JobDetails:
        """Latest snapshot.

        Raises
        ------
        JobNotFound
            No such job, or it ended long ago.
        """
        with self._changed:
            return self._get(job_id)

    def all(self) -> tuple[JobDetails, ...]:
        """Latest snapshots of all jobs, oldest job first."""
        with self._changed:
            return tuple(self._details.values())

    def await_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        """Wait for a version above ``seen_version``; after ``timeout_ms`` give what there is."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        with self._changed:
            while (details := self._get(job_id)).version <= seen_version:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    break
                self._changed.wait(left_ms / 1000)
            return details

    def _get(self, job_id: JobId) -> JobDetails:
        details = self._details.get(job_id)
        if details is None:
            raise JobNotFound(f"no job {job_id} on this cluster; `yarnflow list --all` shows those there are")
        return details

    def _drop_oldest(self) -> None:
        ended = [key for key, details in self._details.items() if details.overview.status.globally_terminal]
        for job_id in ended[: max(len(ended) - self._max_ended_jobs, 0)]:
            del self._details[job_id]
