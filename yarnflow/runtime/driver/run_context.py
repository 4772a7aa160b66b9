"""What one attempt of the job is run from, and the job that a driver holds for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from yarnflow import __version__
from yarnflow.core.checkpoint.manifest import SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import CheckpointKind, RestoreSettings
from yarnflow.core.ids import ExecutorId
from yarnflow.core.messages import DriverAssignment, DriverDeployment, JobSubmission
from yarnflow.errors import SubmissionMissing
from yarnflow.graph.codec import job_graph_from_json
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.state.shape import shape_of

_SHOWN_DIGITS: Final = 12


@dataclass(frozen=True)
class SubmittedJob:
    """A job as it was submitted; its graph is parsed once, when it is first asked for."""

    submission: JobSubmission
    #: as its JobMaster named it
    digest: str

    @cached_property
    def graph(self) -> JobGraph:
        """Raises GraphError when the graph cannot be read.  Main thread."""
        return job_graph_from_json(self.submission.job_graph_json)


def manifest_of(job: SubmittedJob, now_ms: int) -> bytes:
    """That of the first checkpoint of a job, so far without queries."""
    submission = job.submission
    metadata = SavepointMetadata(
        checkpoint_id=1,
        kind=CheckpointKind.CHECKPOINT,
        job_id=submission.job_id,
        job_name=submission.name,
        job_key=submission.job_key,
        created_ms=now_ms,
        yarnflow_version=__version__,
        program=shape_of(job.graph),
    )
    return to_bytes(metadata)


@dataclass(frozen=True, slots=True)
class RunContext:
    """One deployment with all that it names at hand; made once, and passed on as it is."""

    assignment: DriverAssignment
    job: SubmittedJob
    attempt: int
    #: of the leader that deployed it; rises with every leader
    epoch: int
    #: executors that must have registered before queries start
    executor_ids: tuple[ExecutorId, ...] = ()
    #: state to begin with where the job's own directory has none
    restore: RestoreSettings | None = None


class HeldJob:
    """The job a driver was sent, kept for deployments that only name it.

    Never decides whether a deployment runs.  Not thread-safe.
    """

    def __init__(self, assignment: DriverAssignment) -> None:
        self._assignment = assignment
        self._job: SubmittedJob | None = None

    @property
    def job(self) -> SubmittedJob | None:
        """The job, once there was a deployment."""
        return self._job

    def context(self, deployment: DriverDeployment, epoch: int) -> RunContext:
        """What a deployment runs from; a job that came with it is held from now on.

        Parameters
        ----------
        deployment : DriverDeployment
        epoch : int
            Of the leader it came from.

        Raises
        ------
        SubmissionMissing
            It names a job that this driver was not sent.
        """
        digest = deployment.submission_digest
        if deployment.submission is not None:
            self._job = SubmittedJob(deployment.submission, digest)
        if self._job is None or self._job.digest != digest:
            raise SubmissionMissing(
                f"driver {self._assignment.driver_id} was not sent submission {digest[:_SHOWN_DIGITS]} "
                f"of job {self._assignment.job_id}"
            )
        return RunContext(
            assignment=self._assignment,
            job=self._job,
            attempt=deployment.attempt,
            epoch=epoch,
            executor_ids=deployment.executor_ids,
            restore=deployment.restore,
        )
