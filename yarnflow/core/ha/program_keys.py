"""Jobs of one key that are of different programs, or of one program with different arguments."""

from __future__ import annotations

from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.states import JobStatus


def are_different(program: str, other: str) -> bool:
    """Return whether two jobs are known to run something else, by the digests of their programs.

    Parameters
    ----------
    program, other : str
        Empty = not known, as of jobs of earlier versions.
    """
    return bool(program) and bool(other) and program != other


def other_program_left(key: str, job_id: JobId) -> str:
    """Return what to tell of a state that is not gone on from."""
    return (
        f"job {job_id}, the last one of job key {key}, was lost or FAILED, and ran another text of the "
        "program or had other arguments: submit with --restore latest to go on from its state, with "
        "--restore none to start empty, or with another --job-key as a job of its own"
    )


def was_lost(state: LatestState) -> bool:
    """Return whether the job that left it did not end as somebody wanted: FAILED, or its cluster vanished."""
    ended_well = (JobStatus.FINISHED.value, JobStatus.CANCELED.value)
    return state.status not in ended_well
