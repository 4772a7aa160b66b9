"""Job keys that belong to one program, as nobody chose them."""

from __future__ import annotations

from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmission
from yarnflow.core.states import JobStatus


def is_of_other_program(submission: JobSubmission, program: str) -> bool:
    """Return whether a job under a submission's key is known to have run something else.

    A key that the user chose is for whatever is submitted with it, and of jobs of earlier versions nobody
    knows what they ran.

    Parameters
    ----------
    program : str
        Digest of what that job ran; empty = not known.
    """
    return bool(submission.earlier_job_key) and program not in ("", submission.program_digest)


def other_program_left(name: str, job_id: JobId) -> str:
    """Return what to tell of a state that is not gone on from."""
    return (
        f"job {job_id} of {name} was lost or FAILED, and ran another text of this program or had other "
        "arguments: submit with --restore latest to go on from its state, with --restore none to start "
        "empty, or with --job-key KEY as a job of its own"
    )


def was_lost(state: LatestState) -> bool:
    """Return whether the job that left it did not end as somebody wanted: FAILED, or its cluster vanished."""
    ended_well = (JobStatus.FINISHED.value, JobStatus.CANCELED.value)
    return state.status not in ended_well
