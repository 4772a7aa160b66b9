"""Jobs that a new leader found, and not what they are to run: seen by everybody, until that is supplied.

What a job is to run has its driver, and perhaps a user: who has it, supplies it, and the job is taken over as
if it had been read.  Until then the job keeps its key and its driver.  Never decides whether a job is over.

Flink has no counterpart: a Dispatcher that cannot recover a job fails, and with it all others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.job import job as jobs
from yarnflow.core.job.failures import error_info
from yarnflow.core.messages import FailureInfo, JobDetails, JobOverview, JobSubmission
from yarnflow.core.ports import Clock
from yarnflow.errors import DriverLost, JobError, JobUnreadable, YarnflowError
from yarnflow.runtime.dispatcher.job_archive import JobArchive, UnreadableJob
from yarnflow.runtime.dispatcher.job_board import JobBoard

logger = logging.getLogger(__name__)


class UnrecoveredJobs:
    """Those of one Dispatcher.

    Parameters
    ----------
    archive, board
        The Dispatcher's.
    clock : Clock
    accept : callable
        Makes a job of a submission that was read at last; blocks until it is one.
    owns_key : callable
        Whether a job is known, so that a key it has is its.
    """

    def __init__(
        self,
        archive: JobArchive,
        board: JobBoard,
        clock: Clock,
        accept: Callable[[JobSubmission], None],
        owns_key: Callable[[JobId], bool],
    ) -> None:
        self._archive = archive
        self._board = board
        self._clock = clock
        self._accept = accept
        self._owns_key = owns_key
        #: replaced, never changed in place: calls of drivers read it from other threads
        self._jobs: dict[JobId, UnreadableJob] = {}
        self._models: dict[JobId, jobs.JobModel] = {}

    # --- any thread ---

    def __contains__(self, job_id: JobId) -> bool:
        return job_id in self._jobs

    @property
    def ids(self) -> tuple[JobId, ...]:
        """All of them."""
        return tuple(self._jobs)

    def found(self, job: UnreadableJob, why: str = "it is gone, or damaged") -> None:
        """Show a job of which no more is known than that it is there."""
        error = JobUnreadable(
            f"what job {job.job_id} is to run cannot be read from high-availability.storageDir: {why}; its "
            "driver, if it lives, supplies it by itself; else run `yarnflow recover`, or cancel the job"
        )
        logger.error("%s", error)
        self._jobs = {**self._jobs, job.job_id: job}
        self._models[job.job_id] = jobs.JobModel.create(job.job_id, self._clock.now_ms())
        self._step(job, jobs.GraphUnreadable(self._clock.now_ms(), error_info(error)))

    def supply(self, submission: JobSubmission, by: DriverId | None = None) -> None:
        """Somebody has what a job is to run: store it, and take the job over; one call at a time.

        Parameters
        ----------
        by : DriverId, optional
            The driver that says so; None = a user.

        Raises
        ------
        DriverLost
            It is not the driver that runs the job.
        JobError
            It is what another job is to run.
        """
        job = self._jobs.get(submission.job_id)
        if job is None:
            return
        if by is not None and not self._archive.runs_job(job.job_id, by):
            raise DriverLost(f"driver {by} does not run job {job.job_id}; it must end")
        if job.key and submission.job_key != job.key:
            raise JobError(
                f"job {job.job_id} has job key {job.key}, and what was supplied has "
                f"{submission.job_key or '(none)'}; nothing was changed"
            )
        # ZooKeeper may have lost that it has one
        owner = self._archive.claim_key(submission, self._owns_key)
        if owner != job.job_id:
            raise JobError(
                f"job key {submission.job_key} of job {job.job_id} is that of job {owner} by now; cancel one "
                "of the two; nothing was changed"
            )
        self._archive.restore(submission)
        logger.info("What job %s is to run was supplied by %s.", job.job_id, by or "a user")
        self._accept(submission)  # and its JobMaster shows it from now on
        jobs.MACHINE.step(self._models[job.job_id], jobs.GraphSupplied(self._clock.now_ms()))
        self._drop(job.job_id)

    def cancel(self, job_id: JobId) -> None:
        """End a job that somebody wants the end of, with its driver; its state stays as it is.  Blocks.

        The wish is written down already, so that the next leader does what was not done.
        """
        job = self._jobs.get(job_id)
        if job is None:
            return
        self._archive.end_driver(job_id)
        try:
            self._archive.leave_state(job, self._clock.now_ms())
        except YarnflowError as error:
            if error.retryable:
                raise
            logger.warning("Job %s is canceled, and its state is not marked so: %s", job_id, error)
        self._step(job, jobs.CancelRequested(self._clock.now_ms()))
        model, _effects = jobs.MACHINE.step(
            self._models[job_id], jobs.AllExecutionsTerminal(self._clock.now_ms())
        )
        details = self._details(job, model)
        self._archive.ended(details)
        self._archive.clear(job_id, job.key)
        self._board.restore(details)
        self._drop(job_id)

    def _step(self, job: UnreadableJob, event: jobs.JobEvent) -> None:
        self._models[job.job_id], _effects = jobs.MACHINE.step(self._models[job.job_id], event)
        self._board.publish(self._details(job, self._models[job.job_id]))

    def _details(self, job: UnreadableJob, model: jobs.JobModel) -> JobDetails:
        begun_ms = model.timestamps[0][1]
        over = model.state.globally_terminal
        overview = JobOverview(
            job_id=job.job_id,
            name=job.key or job.job_id,
            status=model.state,
            start_time_ms=begun_ms,
            end_time_ms=self._clock.now_ms() if over else -1,
            job_key=job.key,
        )
        details = JobDetails(overview, 0, timestamps_ms=model.timestamps_ms())
        if model.error is None:
            return details
        failure = FailureInfo(begun_ms, model.error)
        return replace(details, failures=(failure,), waiting_for=model.error.message)

    def _drop(self, job_id: JobId) -> None:
        self._jobs = {other: job for other, job in self._jobs.items() if other != job_id}
        del self._models[job_id]
