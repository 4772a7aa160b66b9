"""What a highly available cluster has stored, read without it."""

from __future__ import annotations

import hashlib

import pytest

from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.ha.stores.stored_jobs import StoredJob, delete_graphs, delete_superseded, doubt, stored_jobs
from yarnflow.testing.file_system import MemoryFileSystem

JOB, OTHER = JobId("a" * 32), JobId("b" * 32)


def submission(job_id: JobId = JOB, name: str = "flights") -> JobSubmission:
    return JobSubmission(job_id, name, ProgramKind.GRAPH, "{}", {}, "daily")


class Storage:
    """The directory of one cluster."""

    def __init__(self) -> None:
        self.fs = MemoryFileSystem()
        for kind in ("jobgraphs", "results"):
            self.fs.make_directory(f"/ha/default/{kind}")

    def put(self, name: str, content: bytes, kind: str = "jobgraphs") -> str:
        self.fs.write(f"/ha/default/{kind}/{name}", content)
        return f"/ha/default/{kind}/{name}"

    def jobs(self) -> list[StoredJob]:
        return stored_jobs(lambda uri: (self.fs, uri), "/ha/default")


def test_nothing_is_stored() -> None:
    assert Storage().jobs() == []
    assert stored_jobs(lambda uri: (MemoryFileSystem(), uri), "/ha/other") == []


def test_the_newest_file_that_can_be_read_counts() -> None:
    storage = Storage()
    storage.put(f"{JOB}-2.json", to_json(submission(name="second")).encode())
    path = storage.put(f"{JOB}-10.json", to_json(submission(name="tenth")).encode())
    storage.put(f"{JOB}-10-again.json", b"")
    storage.put(f"{JOB}-11.json", to_json(submission(OTHER)).encode())
    storage.put("readme.txt", b"mine")
    (job,) = storage.jobs()
    assert (job.job_id, job.submission, job.path) == (JOB, submission(name="tenth"), path)
    assert job.graphs == tuple(f"jobgraphs/{JOB}-{number}.json" for number in ("10-again", "10", "11", "2"))
    assert not job.ends


def test_a_job_whose_end_is_stored_is_over() -> None:
    storage = Storage()
    for job_id in (JOB, OTHER):
        storage.put(f"{job_id}-1.json", to_json(submission(job_id)).encode())
    storage.put(f"{OTHER}-1.json", b"{}", "results")
    assert [(job.job_id, job.is_over) for job in storage.jobs()] == [(JOB, False), (OTHER, True)]


@pytest.mark.parametrize("changed", [True, False])
def test_a_file_that_is_called_by_its_digest(changed: bool) -> None:
    storage = Storage()
    content = to_json(submission()).encode()
    path = storage.put(f"{JOB}-1-{hashlib.sha256(content).hexdigest()}.json", content + b" " * changed)
    (job,) = storage.jobs()
    assert (job.submission, job.path) == (None if changed else submission(), path)


def stored(storage: Storage) -> StoredJob:
    storage.fs.set_permission("/ha", 0o700)
    for name in (f"{JOB}-1.json", f"{JOB}-2.json", f"{OTHER}-1.json"):
        storage.put(name, to_json(submission(JobId(name[:32]))).encode())
    storage.put(f"{JOB}-3.json", b"{}", "results")
    return storage.jobs()[0]


def doubted(storage: Storage, job: StoredJob, directory: str = "/ha/default") -> str:
    return doubt(lambda uri: (storage.fs, uri.removeprefix(storage.fs.uri)), directory, [job])


@pytest.mark.parametrize("directory", ["/ha/default", "hdfs://memory:8020/ha/default"])
@pytest.mark.parametrize(
    "path", ["/ha/default", "/ha/default/jobgraphs", "/ha/default/results"]
    + [f"/ha/default/jobgraphs/{JOB}-1.json", f"/ha/default/results/{JOB}-3.json", "/ha"],
)
def test_what_others_could_have_written_is_named(path: str, directory: str) -> None:
    storage = Storage()
    job = stored(storage)
    assert doubted(storage, job, directory) == ""
    storage.fs.set_permission(path, 0o770)
    found = doubted(storage, job, directory)
    assert f"{storage.fs.uri}{path}" in found and "is writable by others (rwxrwx---)" in found


def test_files_of_other_jobs_do_not_matter() -> None:
    storage = Storage()
    job = stored(storage)
    storage.fs.set_permission(f"/ha/default/jobgraphs/{OTHER}-1.json", 0o666)
    assert doubted(storage, job) == ""


def test_a_file_of_another_user_is_named_with_its_owner() -> None:
    storage = Storage()
    job = stored(storage)
    path = f"/ha/default/jobgraphs/{JOB}-2.json"
    storage.fs.set_owner(path, "mallory")
    assert doubted(storage, job) == f"hdfs://memory:8020{path} belongs to mallory, not to ann"


def test_the_files_of_a_job_that_is_over_are_deleted() -> None:
    storage = Storage()
    job = stored(storage)
    for _ in range(2):
        delete_graphs(lambda uri: (storage.fs, uri), "/ha/default", job)
    assert [left.job_id for left in storage.jobs()] == [OTHER]
    assert storage.fs.paths("/ha/default/results"), "that it is over stays known"


def test_files_go_only_if_the_job_is_stored_again() -> None:
    """ZooKeeper may point to one of them, and nobody could read the job then."""
    storage = Storage()
    job = stored(storage)
    delete_superseded(lambda uri: (storage.fs, uri), "/ha/default", job)
    assert storage.jobs()[0] == job
    again = storage.put(f"{JOB}-9.json", to_json(submission()).encode())
    delete_superseded(lambda uri: (storage.fs, uri), "/ha/default", job)
    (left, other) = storage.jobs()
    assert left.path == again and left.graphs == (f"jobgraphs/{JOB}-9.json",) and other.job_id == OTHER
