"""A submitted job, as a program sees it.  PyFlink: ``pyflink.common.job_client``."""

from __future__ import annotations

from typing import Any

from yarnflow.api.common.completable_future import CompletableFuture
from yarnflow.api.common.job_id import JobID
from yarnflow.api.executor import METRICS, NO_ACCUMULATORS, SubmittedJob
from yarnflow.core.ids import JobId
from yarnflow.graph.compatibility import differs, refused


class JobClient:
    """Asks after a job and stops it; made by ``execute_async``."""

    def __init__(self, job: SubmittedJob) -> None:
        self._job = job

    @property
    def job_id(self) -> JobId:
        """Id of the job: 32 hexadecimal digits."""
        return self._job.job_id

    def get_job_id(self) -> JobID:
        """Id of the job: 32 hexadecimal digits."""
        return JobID(self._job.job_id)

    def get_job_status(self) -> CompletableFuture:
        """The job's state now, a :class:`JobStatus`."""
        return CompletableFuture(self._job.get_job_status)

    def cancel(self) -> CompletableFuture:
        """Begin to cancel the job."""
        self._job.cancel()
        return CompletableFuture(lambda: None)

    @differs("a job whose Python functions keep state or windows cannot advance to the end of event time")
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture:
        """Stop the job at a savepoint; the result is its path.

        Parameters
        ----------
        advance_to_end_of_event_time : bool
            Fire all windows before, as ``yarnflow stop --drain`` does.
        """
        drain = advance_to_end_of_event_time
        return CompletableFuture(self._job.begin_savepoint(savepoint_directory or "", stop=True, drain=drain))

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture:
        """Take a savepoint; the result is its path."""
        return CompletableFuture(self._job.begin_savepoint(savepoint_directory or ""))

    @refused(NO_ACCUMULATORS, METRICS)
    def get_accumulators(self) -> Any:
        """Values of accumulators."""

    def get_job_execution_result(self) -> CompletableFuture:
        """The end of the job, a :class:`JobExecutionResult`; waiting for it may raise JobFailed …"""
        return CompletableFuture(self._job.get_job_execution_result)
