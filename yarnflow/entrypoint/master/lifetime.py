"""How long a JobManager on YARN lives, and what it leaves behind.

A cluster for one job ends with it, one for a program when the program and its jobs have ended, a
session when it is told to.  Flink counterparts: ``JobDispatcherLeaderProcessFactory`` and
``ApplicationDispatcherBootstrap``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Final, Protocol

from yarnflow.core.cluster_result import ClusterResult, ProgramEnd, cluster_result, refused_job
from yarnflow.core.messages import JobDetails, JobSubmission, JobSubmitted
from yarnflow.core.ports import Clock
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import HaError, StorageUnavailable, YarnflowError

logger: Final = logging.getLogger(__name__)

#: how long those who follow a job may take to fetch its end
LINGER_MS: Final = 5_000
#: the same where the processes are about to be killed
LAST_LOOK_MS: Final = 1_000
#: how long after the JobManager serves its client may take to find it
ARRIVAL_MS: Final = 15_000
#: before the job is submitted again that the stores did not take
_RETRY_S: Final = 1.0
#: for answers that are computed but not yet on their way
_ANSWER_S: Final = 0.2


class JobIntake(Protocol):
    """The Dispatcher as seen from here."""

    def submit_job(self, submission: JobSubmission) -> JobSubmitted: ...

    def close(self, reason: str) -> None:
        """Accept no further job; end the process when those there are have ended."""


class JobAudience(Protocol):
    """The JobBoard as seen from here."""

    def all(self) -> Sequence[JobDetails]: ...

    def await_followers(
        self, timeout_ms: int, newcomers_ms: int = 0, *, of_ended: bool = False
    ) -> bool: ...


class ClusterLife(Protocol):
    """What a cluster lives for."""

    def begin(self, submission: JobSubmission | None, stopped: threading.Event | None = None) -> None:
        """The cluster serves now."""

    def program_ended(self, exit_status: int, output_tail: str) -> None:
        """The user's program beside the JobManager has ended; any thread."""

    def end(self) -> ClusterResult:
        """Nothing more is accepted; returns how the cluster did, once all may have seen it."""


class UntilToldToEnd:
    """The life of a cluster on this machine: it serves until somebody shuts it down.

    Parameters
    ----------
    board : JobAudience
        The process's.
    """

    def __init__(self, board: JobAudience) -> None:
        self._board = board

    def begin(self, submission: JobSubmission | None, stopped: threading.Event | None = None) -> None:
        """It lives for no job."""

    def program_ended(self, exit_status: int, output_tail: str) -> None:
        """It lives for no program."""

    def end(self) -> ClusterResult:
        """Whatever became of its jobs; who follows one that has ended sees that first.

        A local cluster is ended by whoever sees the end of its job first.
        """
        if not self._board.await_followers(0, of_ended=True):
            self._board.await_followers(LAST_LOOK_MS, of_ended=True)
            time.sleep(_ANSWER_S)
        return ClusterResult(JobStatus.FINISHED)


class Lifetime:
    """Decides when a cluster on YARN accepts jobs no more, and sums its end up.

    Parameters
    ----------
    mode : DeploymentMode
        What the cluster lives for.
    clock, dispatcher, board
        The process's.
    """

    def __init__(
        self, mode: DeploymentMode, clock: Clock, dispatcher: JobIntake, board: JobAudience
    ) -> None:
        self._mode = mode
        self._clock = clock
        self._dispatcher = dispatcher
        self._board = board
        self._serving_since_ms = clock.monotonic_ms()
        self._program: ProgramEnd | None = None
        self._refused: ClusterResult | None = None

    def begin(
        self,
        submission: JobSubmission | None,
        stopped: threading.Event | None = None,
    ) -> None:
        """The cluster serves now; submit its job, if it lives for one.

        Parameters
        ----------
        submission : JobSubmission, optional
            It may have been submitted under an earlier leader already.
        stopped : threading.Event, optional
            Give up trying to submit once it is set.
        """
        self._serving_since_ms = self._clock.monotonic_ms()
        if submission is None:
            return
        try:
            self._submit(submission, stopped or threading.Event())
        except YarnflowError as error:
            logger.error("Job %s is refused: %s", submission.name, error)
            self._refused = refused_job(error, submission.job_id)
        self._dispatcher.close(
            f"this cluster runs job {submission.name} ({submission.job_id}) and no other; start another "
            "one, or submit to a session"
        )

    def _submit(self, submission: JobSubmission, stopped: threading.Event) -> None:
        """What the stores cannot take now they may take later."""
        while True:
            try:
                self._dispatcher.submit_job(submission)
                return
            except (HaError, StorageUnavailable) as error:
                if stopped.is_set():
                    raise
                logger.warning("Job %s is not accepted yet: %s", submission.name, error)
                stopped.wait(_RETRY_S)

    def program_ended(self, exit_status: int, output_tail: str) -> None:
        """The user's program beside the JobManager has ended; any thread."""
        logger.info("The program ended with status %d.", exit_status)
        self._program = ProgramEnd(exit_status, output_tail)
        self._dispatcher.close("the program of this cluster has ended; start another one")

    def end(self) -> ClusterResult:
        """Let everybody see how the jobs ended; returns how the cluster did."""
        age_ms = self._clock.monotonic_ms() - self._serving_since_ms
        if not self._board.await_followers(LINGER_MS, max(0, ARRIVAL_MS - age_ms)):
            logger.info("Somebody has not asked for the end of a job; ending all the same.")
        time.sleep(_ANSWER_S)
        if self._mode is DeploymentMode.SESSION:
            return ClusterResult(JobStatus.FINISHED)
        if self._refused is not None:
            return self._refused
        result = cluster_result(self._board.all(), self._program)
        stopped_early = self._mode is DeploymentMode.APPLICATION and self._program is None
        if stopped_early and result.status is JobStatus.FINISHED:
            return ClusterResult(JobStatus.CANCELED, "the cluster was shut down before its program had ended")
        return result
