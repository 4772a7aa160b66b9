"""Whose a job key is, and whether jobs of one key run the same program with the same arguments."""

from __future__ import annotations

from typing import Final

from yarnflow.core.files import FileSystem
from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmission
from yarnflow.core.states import JobStatus
from yarnflow.errors import DuplicateJob

#: in the directory of a key: whose key it is; a directory without it is of an earlier version
OWNER_FILE: Final = "owner"


def are_different(program: str, other: str) -> bool:
    """Return whether two jobs are known to run something else, by the digests of their programs.

    Parameters
    ----------
    program, other : str
        Empty = not known, as of jobs of earlier versions.
    """
    return bool(program) and bool(other) and program != other


def check_same_program(submission: JobSubmission, job_id: JobId, program: str) -> None:
    """Refuse a job that nobody asked to go on from what a job of another program left.

    Parameters
    ----------
    job_id : str
        Of the last job of the key.
    program : str
        Digest of what it ran; empty = not known.

    Raises
    ------
    DuplicateJob
        It ran something else.
    """
    if are_different(submission.program_digest, program):
        raise DuplicateJob(
            f"job {job_id}, the last one of job key {submission.job_key}, was lost or FAILED, and ran "
            "another text of the program or had other arguments: submit with --restore latest to go on from "
            "its state, with --restore none to start empty, or with another --job-key as a job of its own"
        )


def was_lost(state: LatestState) -> bool:
    """Return whether the job that left it did not end as somebody wanted: FAILED, or its cluster vanished."""
    ended_well = (JobStatus.FINISHED.value, JobStatus.CANCELED.value)
    return state.status not in ended_well


def mark_owner(fs: FileSystem, directory: str, key: str) -> None:
    """Say that a key's directory is that of ``key``, unless it is another one's already.

    Raises
    ------
    StorageError
        The directory is not there, or the file system does not do what is asked.
    """
    owner = f"{directory}/{OWNER_FILE}"
    if fs.status(owner) is None:
        fs.create(owner, key.encode())


def becomes_owner(fs: FileSystem, directory: str, key: str) -> bool:
    """Mark a directory and return whether it is that of ``key`` now: the first that asks gets it for good."""
    mark_owner(fs, directory, key)
    return fs.read(f"{directory}/{OWNER_FILE}") == key.encode()
