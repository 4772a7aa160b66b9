"""What every implementation of ``core.ha.ports.JobStores`` must do, also the one of ``testing``.

Subclasses give the fixture ``stores``: those of one master that leads.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
)
from yarnflow.core.collect.parts import part_name
from yarnflow.core.ha.ports import CheckpointStore, JobStores, LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobOverview, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import FileMissing

JOB, OTHER = JobId("1" * 32), JobId("2" * 32)
ROOT = "hdfs://memory:8020/state"


def submission(job_id: JobId) -> JobSubmission:
    return JobSubmission(job_id, "job", ProgramKind.GRAPH, "{}", {})


def ended(job_id: JobId) -> JobDetails:
    return JobDetails(JobOverview(job_id, "job", JobStatus.FINISHED, 1, 2), 3)


def checkpoint(number: int) -> CheckpointInfo:
    return CheckpointInfo(
        number,
        CheckpointKind.CHECKPOINT,
        CheckpointStatus.COMPLETED,
        CheckpointTrigger.INTERVAL,
        trigger_ms=1,
        end_ms=2,
    )


def checkpoints_of(stores: JobStores) -> CheckpointStore:
    return stores.checkpoints(JOB, f"{ROOT}/{JOB}")


class JobStoresContract:
    """What Dispatcher and JobMasters rely on, whoever keeps it."""

    def test_jobs_come_back_in_order_of_submission(self, stores: JobStores) -> None:
        graphs = stores.job_graphs
        for job_id in (OTHER, JOB):
            graphs.put(submission(job_id))
        graphs.put(submission(OTHER))
        assert list(graphs.job_ids()) == [OTHER, JOB]
        assert graphs.get(JOB) == submission(JOB)
        assert list(graphs.forgotten()) == []
        graphs.remove(OTHER)
        graphs.remove(OTHER)
        assert list(graphs.job_ids()) == [JOB] and graphs.get(OTHER) is None

    def test_a_job_is_stored_anew(self, stores: JobStores) -> None:
        graphs = stores.job_graphs
        graphs.put(submission(JOB))
        again = replace(submission(JOB), name="again")
        graphs.replace(again)
        graphs.replace(again)
        graphs.replace(submission(OTHER))
        assert list(graphs.job_ids()) == [JOB] and graphs.get(JOB) == again
        graphs.remove(JOB)
        assert list(graphs.job_ids()) == []

    def test_a_mark_goes_with_its_job(self, stores: JobStores) -> None:
        graphs = stores.job_graphs
        graphs.put(submission(JOB))
        assert not graphs.is_canceled(JOB)
        graphs.mark_canceled(JOB)
        graphs.mark_canceled(JOB)
        assert graphs.is_canceled(JOB)
        graphs.remove(JOB)
        graphs.put(submission(JOB))
        assert not graphs.is_canceled(JOB)

    def test_results_are_kept(self, stores: JobStores) -> None:
        assert stores.results.get(JOB) is None
        assert not stores.results.has(JOB)
        stores.results.put(ended(JOB))
        stores.results.put(ended(OTHER))
        assert stores.results.has(JOB)
        assert stores.results.get(JOB) == ended(JOB)
        assert list(stores.results.all()) == [ended(JOB), ended(OTHER)]

    def test_a_key_is_one_jobs_until_that_gives_it_back(self, stores: JobStores) -> None:
        keys = stores.job_keys
        assert keys.claim("key", JOB) == JOB
        assert keys.claim("key", OTHER) == JOB
        assert (keys.key_of(JOB), keys.key_of(OTHER)) == ("key", "")
        assert keys.claim("a/b ü.", OTHER) == OTHER and keys.key_of(OTHER) == "a/b ü."
        keys.release("a/b ü.", OTHER)
        keys.release("key", OTHER)
        assert keys.claim("key", OTHER) == JOB
        keys.release("key", JOB)
        keys.release("key", JOB)
        assert keys.claim("key", OTHER) == OTHER

    def test_checkpoints_are_counted_listed_and_removed(self, stores: JobStores) -> None:
        store = checkpoints_of(stores)
        numbers = [store.next_id() for _ in range(3)]
        assert numbers == sorted(set(numbers))
        added = [store.add(checkpoint(number), b"metadata") for number in numbers]
        assert all(info.external_path.endswith(f"/chk-{info.checkpoint_id}") for info in added)
        assert [replace(info, external_path="") for info in added] == [checkpoint(n) for n in numbers]
        again = store.add(checkpoint(numbers[0]), b"metadata")
        assert again == added[0] and list(store.all()) == added
        store.remove(numbers[1])
        store.remove(numbers[1])
        assert list(store.all()) == [added[0], added[2]]
        assert store.next_id() > numbers[-1]

    def test_the_record_of_a_savepoint_goes_and_the_savepoint_stays(self, stores: JobStores) -> None:
        store = checkpoints_of(stores)
        kept, savepoint = (checkpoint(store.next_id()) for _ in range(2))
        store.add(kept, b"metadata")
        savepoint = replace(savepoint, kind=CheckpointKind.SAVEPOINT, external_path=f"{ROOT}/savepoint-1")
        store.add(savepoint, b"")
        store.remove(savepoint.checkpoint_id)
        store.remove(savepoint.checkpoint_id)
        assert [info.checkpoint_id for info in store.all()] == [kept.checkpoint_id]

    def test_nothing_is_left_of_a_job_that_retains_nothing(self, stores: JobStores) -> None:
        store = checkpoints_of(stores)
        store.add(checkpoint(store.next_id()), b"metadata")
        store.discard_all()
        store.discard_all()
        assert list(checkpoints_of(stores).all()) == []

    def test_collected_parts_that_nobody_wrote(self, stores: JobStores) -> None:
        collected = stores.collected(f"{ROOT}/{JOB}")
        assert list(collected.names()) == [] and collected.committed() == -1
        with pytest.raises(FileMissing):
            collected.read(part_name(0, 0))
        collected.delete(part_name(0, 0))
        collected.delete_all()

    def test_nobody_holds_a_lease_that_no_driver_took(self, stores: JobStores) -> None:
        told: list[object] = []
        stores.leases.watch(JOB, told.append)
        assert stores.leases.holder(JOB) is None and told in ([], [None])
        stores.leases.unwatch(JOB)
        stores.leases.unwatch(JOB)

    def test_the_latest_state_is_that_of_the_job_that_began_last(self, stores: JobStores) -> None:
        latest = stores.latest_states(ROOT)
        assert latest.read("key") is None and list(latest.left("key")) == []
        latest.begin("key", JOB)
        latest.begin("key", OTHER)
        latest.begin("key", JOB)
        for job_id in (JOB, OTHER, JOB):
            latest.write(LatestState("key", job_id, "job", "RUNNING", f"{ROOT}/{job_id}/chk-1", 1, 2))
        found = stores.latest_states(ROOT).read("key")
        assert found is not None and found.job_id == OTHER
        latest.disposed("key", f"{ROOT}/{JOB}/chk-1")
        assert latest.read("key") == found
        latest.disposed("key", found.path)
        latest.disposed("key", found.path)
        found = latest.read("key")
        assert found is not None and (found.job_id, found.path) == (OTHER, "")
