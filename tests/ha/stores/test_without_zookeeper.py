"""What is kept without high availability."""

from __future__ import annotations

import pytest

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
)
from yarnflow.core.files import FileSystem
from yarnflow.core.ha.ports import CheckpointStore, JobStores
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobOverview
from yarnflow.core.states import JobStatus
from yarnflow.ha.stores.without_zookeeper import MemoryJobStores
from yarnflow.testing.file_system import MemoryFileSystem

JOB = JobId("a" * 32)
OTHER = JobId("b" * 32)


@pytest.fixture
def fs() -> MemoryFileSystem:
    return MemoryFileSystem()


def stores_on(fs: MemoryFileSystem) -> MemoryJobStores:
    def fs_of(uri: str) -> tuple[FileSystem, str]:
        return fs, uri.removeprefix("hdfs://memory:8020")

    return MemoryJobStores(fs_of)


def checkpoint(number: int, kind: CheckpointKind = CheckpointKind.CHECKPOINT) -> CheckpointInfo:
    return CheckpointInfo(number, kind, CheckpointStatus.COMPLETED, CheckpointTrigger.INTERVAL, 1)


def checkpoints_of(fs: MemoryFileSystem) -> CheckpointStore:
    stores: JobStores = stores_on(fs)
    return stores.checkpoints(JOB, "hdfs://memory:8020/state/job")


def test_checkpoints_are_found_by_the_next_process(fs: MemoryFileSystem) -> None:
    store = checkpoints_of(fs)
    assert list(store.all()) == []
    first = store.add(checkpoint(store.next_id()), b"one")
    assert first.external_path == "hdfs://memory:8020/state/job/chk-1"
    savepoint = store.add(checkpoint(store.next_id(), CheckpointKind.SAVEPOINT), b"")
    assert list(store.all()) == [first, savepoint]
    store.remove(2)
    third = store.add(checkpoint(store.next_id()), b"three")
    again = checkpoints_of(fs)
    assert list(again.all()) == [first, third]
    assert again.next_id() == 4
    assert fs.read("/state/job/chk-3/_metadata") == b"three"


def test_unreadable_checkpoints_are_passed_over(fs: MemoryFileSystem) -> None:
    store = checkpoints_of(fs)
    for _ in range(3):
        store.add(checkpoint(store.next_id()), b"metadata")
    fs.write("/state/job/chk-1/_record.json", b"no JSON")
    fs.delete("/state/job/chk-2/_record.json")
    fs.make_directory("/state/job/chk-x")
    assert [info.checkpoint_id for info in store.all()] == [3]


def test_end_of_a_job(fs: MemoryFileSystem) -> None:
    store = checkpoints_of(fs)
    store.add(checkpoint(store.next_id()), b"metadata")
    store.close_job(JobStatus.CANCELED)
    assert fs.paths("/state/job")
    store.discard_all()
    store.discard_all()
    assert not fs.paths("/state/job")


def test_jobs_keys_and_results(fs: MemoryFileSystem) -> None:
    stores: JobStores = stores_on(fs)
    assert not stores.highly_available
    assert stores.job_keys.claim("key", JOB) == JOB
    assert stores.job_keys.claim("key", OTHER) == JOB
    stores.job_keys.release("key", OTHER)
    assert stores.job_keys.claim("key", OTHER) == JOB
    stores.job_keys.release("key", JOB)
    assert stores.job_keys.claim("key", OTHER) == OTHER
    finished = JobDetails(JobOverview(JOB, "job", JobStatus.FINISHED, 1, 2), 3)
    stores.results.put(finished)
    assert stores.results.get(JOB) == finished and stores.results.get(OTHER) is None
    assert stores.leases.holder(JOB) is None
