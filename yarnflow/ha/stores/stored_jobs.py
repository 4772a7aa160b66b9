"""Jobs as a highly available cluster has stored them, read without ZooKeeper and without the cluster.

Decides which of the files there is what a job is to run, whether the job is over, and whether the files are
the user's; never whether a job runs now.  For the day on which ZooKeeper has forgotten the jobs
(``yarnflow recover``).
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from yarnflow.core.checkpoint.ownership import Access, writable_by_others
from yarnflow.core.files import FileStatus, FileSystem, FileSystems
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import JobDetails, JobSubmission
from yarnflow.core.states import JobStatus
from yarnflow.errors import FileMissing, RpcProtocolError

T = TypeVar("T")

GRAPHS: Final = "jobgraphs"
_ENDS: Final = "results"
#: job, epoch, whether it was written anew, digest of its content
_DOCUMENT: Final = re.compile(r"([0-9a-f]{32})-(\d+)(-again)?(?:-([0-9a-f]{64}))?\.json")


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job that was accepted."""

    job_id: JobId
    #: None = no file of it can be read
    submission: JobSubmission | None
    #: how it ended is stored as well
    is_over: bool = False
    #: that, if it can be read
    ended_as: JobStatus | None = None
    #: the file that was read, or that could not be
    path: str = ""
    #: paths of all files of what it is to run, and of its end, relative to the cluster's directory
    graphs: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


def stored_jobs(file_systems: FileSystems, directory: str) -> list[StoredJob]:
    """All jobs in a cluster's directory, by their ids.

    Parameters
    ----------
    directory : str
        ``<high-availability.storageDir>/<high-availability.cluster-id>`` (a URI).

    Raises
    ------
    StorageError
        It cannot be read.
    """
    fs, path = file_systems(directory)
    graphs, ends = _by_job(fs, f"{path}/{GRAPHS}"), _by_job(fs, f"{path}/{_ENDS}")
    return [_read(fs, job_id, graphs[job_id], ends.get(job_id, [])) for job_id in sorted(graphs)]


def doubt(file_systems: FileSystems, directory: str, jobs: Sequence[StoredJob]) -> str:
    """Why somebody else could have written the files of some jobs: a clause; empty = nobody could.

    Parameters
    ----------
    directory : str
        As in :func:`stored_jobs`.

    Raises
    ------
    StorageError
        Owners and permissions cannot be read.
    """
    fs, path = file_systems(directory)
    files = [file for job in jobs for file in (*job.graphs, *job.ends)]
    return writable_by_others(_Owners(file_systems), {f"{fs.uri}{path}": files}) if files else ""


def delete_graphs(file_systems: FileSystems, directory: str, job: StoredJob) -> None:
    """Delete the files of what a job was to run that is over.  Idempotent."""
    fs, path = file_systems(directory)
    for name in job.graphs:
        fs.delete(f"{path}/{name}")


def delete_superseded(file_systems: FileSystems, directory: str, job: StoredJob) -> None:
    """Delete the files a job was found with, if a master has stored it again since.  Idempotent."""
    fs, path = file_systems(directory)
    present = {document.status.path for document in _documents(fs, f"{path}/{GRAPHS}", job.job_id)}
    # else ZooKeeper may point to one of them
    if present.difference(f"{path}/{name}" for name in job.graphs):
        delete_graphs(file_systems, directory, job)


@dataclass(frozen=True, slots=True)
class _Document:
    job_id: JobId
    #: the newest file is the highest
    order: tuple[int, bool]
    #: SHA-256; empty = it is not in the name
    digest: str
    status: FileStatus


class _Owners:
    """Implements :class:`yarnflow.core.checkpoint.ownership.Owners`."""

    def __init__(self, fs_of: FileSystems) -> None:
        self._fs_of = fs_of

    def user(self, path: str) -> str:
        return self._fs_of(path)[0].user

    def access(self, path: str) -> Access:
        fs, where = self._fs_of(path)
        status = fs.status(where)
        if status is None:
            raise FileMissing(f"{path} is gone; try again")
        return Access(status.owner, status.permission)

    def accesses(self, directory: str) -> dict[str, Access]:
        fs, where = self._fs_of(directory)
        return {entry.name: Access(entry.owner, entry.permission) for entry in fs.list(where)}


def _by_job(fs: FileSystem, directory: str) -> dict[JobId, list[_Document]]:
    jobs: dict[JobId, list[_Document]] = {}
    for document in _documents(fs, directory):
        jobs.setdefault(document.job_id, []).append(document)
    return jobs


def _documents(fs: FileSystem, directory: str, job_id: str = "") -> Iterator[_Document]:
    for status in fs.list(directory):
        found = _DOCUMENT.fullmatch(posixpath.basename(status.path))
        if found is not None and job_id in ("", found[1]):
            order = int(found[2]), found[3] is not None
            yield _Document(JobId(found[1]), order, found[4] or "", status)


def _read(
    fs: FileSystem, job_id: JobId, graphs: Sequence[_Document], ends: Sequence[_Document]
) -> StoredJob:
    newest_first = sorted(graphs, key=lambda document: document.order, reverse=True)
    job = StoredJob(
        job_id,
        None,
        bool(ends),
        _end(fs, ends),
        newest_first[0].status.path,
        tuple(f"{GRAPHS}/{document.status.name}" for document in graphs),
        tuple(f"{_ENDS}/{document.status.name}" for document in ends),
    )
    for document in newest_first:
        submission = _submission(fs, document)
        if submission is not None:
            return replace(job, submission=submission, path=document.status.path)
    return job


def _end(fs: FileSystem, ends: Sequence[_Document]) -> JobStatus | None:
    for document in sorted(ends, key=lambda document: document.order, reverse=True):
        details = _content(fs, document, JobDetails)
        if details is not None and details.overview.job_id == document.job_id:
            return details.overview.status
    return None


def _submission(fs: FileSystem, document: _Document) -> JobSubmission | None:
    submission = _content(fs, document, JobSubmission)
    return submission if submission is not None and submission.job_id == document.job_id else None


def _content(fs: FileSystem, document: _Document, kind: type[T]) -> T | None:
    try:
        content = fs.read(document.status.path)
        if document.digest and hashlib.sha256(content).hexdigest() != document.digest:
            return None
        return from_json(kind, content.decode())
    except (FileMissing, RpcProtocolError, UnicodeDecodeError):
        return None
