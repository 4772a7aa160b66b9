"""What happened to a job so far, and the snapshot others may read.

It remembers and renders; it decides nothing.

Flink counterparts: ``ArchivedExecutionGraph``, ``RootExceptionHistoryEntry``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from yarnflow.core.execution_graph import ExecutionGraph
from yarnflow.core.job import JobModel
from yarnflow.core.messages import FailureInfo, JobDetails, JobOverview, JobSubmission, QueryProgress
from yarnflow.core.states import JobStatus
from yarnflow.errors import TaskManagerLost

#: Flink: ``web.exception-history-size``
MAX_FAILURES: Final = 16


class JobHistory:
    """Collects a job's milestones, progress and failures.

    Parameters
    ----------
    submission : JobSubmission
        For name and key.
    slots_required : int
        For the overview.
    start_ms : int
        Time of acceptance.
    """

    def __init__(self, submission: JobSubmission, slots_required: int, start_ms: int) -> None:
        self._submission = submission
        self._slots_required = slots_required
        self._start_ms = start_ms
        self._end_ms = -1
        self._milestones_ms: dict[str, int] = {}
        self._queries: dict[str, QueryProgress] = {}
        self._failures: deque[FailureInfo] = deque(maxlen=MAX_FAILURES)
        self._restarts = 0

    def milestone(self, name: str, at_ms: int) -> None:
        """A step of the start was reached; only the first time counts."""
        self._milestones_ms.setdefault(name, at_ms)

    def milestones(self, milestones_ms: Mapping[str, int]) -> None:
        """Several milestones, as a driver reports them."""
        for name, at_ms in milestones_ms.items():
            self.milestone(name, at_ms)

    def progress(self, queries: Iterable[QueryProgress]) -> None:
        """The newest progress of some queries."""
        self._queries.update({query.query: query for query in queries})

    def failure(self, failure: FailureInfo) -> None:
        """Something broke."""
        self._failures.append(failure)

    def diagnosed(self, task_manager_id: str, text: str) -> bool:
        """Add why a TaskManager was lost to the entry about its loss; False = there is none."""
        for index in reversed(range(len(self._failures))):
            failure = self._failures[index]
            if failure.location == task_manager_id and failure.error.code == TaskManagerLost.code:
                if text not in failure.error.message:
                    message = f"{failure.error.message}; {text}"
                    self._failures[index] = replace(failure, error=replace(failure.error, message=message))
                return True
        return False

    def restarted(self) -> None:
        """The restart strategy let the job go on."""
        self._restarts += 1

    def status(self, status: JobStatus, at_ms: int) -> None:
        """The job entered a status."""
        if status.globally_terminal:
            self._end_ms = at_ms

    def details(
        self, job: JobModel, executions: ExecutionGraph, slots_allocated: int, waiting_for: str
    ) -> JobDetails:
        """The snapshot; :class:`~yarnflow.runtime.dispatcher.job_board.JobBoard` sets its version."""
        overview = JobOverview(
            job_id=job.job_id,
            name=self._submission.name,
            status=job.state,
            start_time_ms=self._start_ms,
            end_time_ms=self._end_ms,
            job_key=self._submission.job_key,
            slots_allocated=slots_allocated,
            slots_required=self._slots_required,
        )
        return JobDetails(
            overview=overview,
            version=0,
            timestamps_ms=job.timestamps_ms(),
            vertices=executions.infos(),
            queries=tuple(self._queries.values()),
            failures=tuple(self._failures),
            restarts=self._restarts,
            waiting_for=waiting_for,
            milestones_ms=dict(self._milestones_ms),
            error=job.error if job.state is JobStatus.FAILED else None,
        )
