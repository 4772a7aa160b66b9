"""What is kept of jobs, on a real quorum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from integration.ha.conftest import Cluster
from integration.ha.masters import Master
from integration.ha.test_leases import JOB, stores_of
from yarnflow.core.checkpoint.coordinator import CheckpointCoordinator, CheckpointSettings
from yarnflow.core.checkpoint.effects import Discard
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
)
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import JobDetails, JobOverview, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import LeadershipLost

OTHER = JobId("b" * 32)
THIRD = JobId("c" * 32)


def submission(job_id: JobId) -> JobSubmission:
    return JobSubmission(job_id, "job", ProgramKind.SCRIPT, "{}", {}, files={"a.py": b"\x00"})


def ended(job_id: JobId, status: JobStatus = JobStatus.FINISHED) -> JobDetails:
    return JobDetails(JobOverview(job_id, "job", status, 1, 2), 3)


def checkpoint(number: int, kind: CheckpointKind = CheckpointKind.CHECKPOINT) -> CheckpointInfo:
    return CheckpointInfo(number, kind, CheckpointStatus.COMPLETED, CheckpointTrigger.INTERVAL, 1)


def test_records_of_savepoints_level_off_over_masters(cluster: Cluster, tmp_path: Path) -> None:
    """Whatever an earlier version recorded, the next leader reads once, and keeps the newest of."""
    first = Master(cluster.session(), "first").lead()
    old = stores_of(first, tmp_path / "ha").checkpoints(JOB, str(tmp_path / "job"))
    for number in range(1, 101):
        directory = tmp_path / f"savepoint-{number}"
        directory.mkdir()
        savepoint = checkpoint(number, CheckpointKind.SAVEPOINT)
        old.add(replace(savepoint, external_path=str(directory)), b"")
    kept = old.add(checkpoint(101), b"metadata")
    first.election.close()

    second = Master(cluster.session(), "second").lead()
    store = stores_of(second, tmp_path / "ha").checkpoints(JOB, str(tmp_path / "job"))
    coordinator = CheckpointCoordinator.create(CheckpointSettings(10_000, 0, 60_000, 1))
    coordinator, effects = coordinator.recovered(store.all(), 1)
    for effect in effects:
        assert isinstance(effect, Discard)
        store.remove(effect.checkpoint_id)
    assert coordinator.completed == 101
    numbers = [info.checkpoint_id for info in store.all()]
    assert numbers == list(range(81, 102)) and store.all()[-1] == kept
    node = second.zookeeper.path("jobs", JOB, "checkpoints")
    assert len(second.zookeeper.children(node)) == 21
    assert len(list((tmp_path / "ha").rglob("*.json"))) == 21
    assert len(list(tmp_path.glob("savepoint-*"))) == 100


@pytest.mark.gate
def test_next_leader_finds_everything_and_a_deposed_one_changes_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    first, job = Master(cluster.session(), "first").lead(), str(tmp_path / "job")
    second = Master(cluster.session(), "second").stand()
    old, storage = stores_of(first, tmp_path / "ha"), tmp_path / "ha"
    old.job_graphs.put(submission(JOB))
    old.job_graphs.put(submission(OTHER))
    old.results.put(ended(OTHER))
    old.job_graphs.mark_canceled(JOB)
    old.job_graphs.mark_canceled(JOB)
    assert old.job_keys.claim("a/b.", JOB) == JOB
    assert old.job_keys.claim("a/b.", OTHER) == JOB
    checkpoints = old.checkpoints(JOB, job)
    assert [checkpoints.next_id(), checkpoints.next_id()] == [1, 2]
    kept = checkpoints.add(checkpoint(2), b"metadata")
    assert kept.external_path == f"{job}/chk-2"
    assert (tmp_path / "job/chk-2/_metadata").read_bytes() == b"metadata"
    number = checkpoints.next_id()
    savepoint = checkpoints.add(checkpoint(number, CheckpointKind.SAVEPOINT), b"")

    first.election.close()
    second.await_lead()
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    refused: tuple[Callable[[], object], ...] = (
        checkpoints.next_id,
        lambda: checkpoints.add(checkpoint(9), b"late"),
        lambda: checkpoints.remove(2),
        lambda: checkpoints.remove(7),
        lambda: checkpoints.close_job(JobStatus.FAILED),
        checkpoints.discard_all,
        lambda: old.job_graphs.remove(JOB),
        lambda: old.job_graphs.put(submission(THIRD)),
        lambda: old.job_graphs.mark_canceled(OTHER),
        lambda: old.results.put(ended(JOB)),
        lambda: old.job_keys.release("a/b.", JOB),
        lambda: old.job_keys.claim("another", JOB),
        lambda: old.leases.revoke(JOB, DriverId("driver")),
    )
    for write in refused:
        with pytest.raises(LeadershipLost):
            write()
    assert sorted(str(path) for path in tmp_path.rglob("*") if path.is_file()) == [
        path for path in before if Path(path).is_file()
    ]

    new = stores_of(second, storage)
    assert list(new.job_graphs.job_ids()) == [JOB, OTHER]
    assert new.job_graphs.get(JOB) == submission(JOB)
    assert new.job_graphs.get(THIRD) is None
    assert [new.job_graphs.is_canceled(job_id) for job_id in (JOB, OTHER)] == [True, False]
    assert list(new.results.all()) == [ended(OTHER)] and new.results.get(JOB) is None
    assert new.job_keys.claim("a/b.", OTHER) == JOB
    taken_over = new.checkpoints(JOB, job)
    assert list(taken_over.all()) == [kept, savepoint]
    assert taken_over.next_id() == 4


@pytest.mark.gate
def test_cancelled_job_leaves_what_it_retains(cluster: Cluster, tmp_path: Path) -> None:
    leader = Master(cluster.session(), "leader").lead()
    stores = stores_of(leader, tmp_path / "ha")
    stores.job_graphs.put(submission(JOB))
    checkpoints = stores.checkpoints(JOB, str(tmp_path / "job"))
    checkpoints.add(checkpoint(checkpoints.next_id()), b"metadata")
    stores.job_graphs.mark_canceled(JOB)
    stores.results.put(ended(JOB, JobStatus.CANCELED))
    checkpoints.close_job(JobStatus.CANCELED)
    checkpoints.close_job(JobStatus.CANCELED)
    stores.job_graphs.remove(JOB)
    stores.job_graphs.remove(JOB)
    stores.job_graphs.mark_canceled(JOB)
    assert (tmp_path / "job/chk-1/_metadata").exists()
    files = [path for path in (tmp_path / "ha").rglob("*") if path.is_file()]
    assert [path.parent.name for path in files] == ["results"]
    assert leader.zookeeper.children(leader.zookeeper.path("jobs")) == []
    assert list(stores.job_graphs.job_ids()) == []
    assert stores.results.get(JOB) == ended(JOB, JobStatus.CANCELED)


@pytest.mark.gate
def test_finished_job_leaves_only_its_result(cluster: Cluster, tmp_path: Path) -> None:
    leader = Master(cluster.session(), "leader").lead()
    stores = stores_of(leader, tmp_path / "ha")
    checkpoints = stores.checkpoints(JOB, str(tmp_path / "job"))
    for _ in range(2):
        checkpoints.add(checkpoint(checkpoints.next_id()), b"metadata")
    checkpoints.remove(1)
    checkpoints.remove(1)
    assert [info.checkpoint_id for info in checkpoints.all()] == [2]
    assert not (tmp_path / "job/chk-1").exists()
    checkpoints.discard_all()
    assert not (tmp_path / "job").exists() and list(checkpoints.all()) == []


def test_oldest_results_are_dropped(cluster: Cluster, tmp_path: Path) -> None:
    from dataclasses import replace

    cluster.settings = replace(cluster.settings, max_results=2)
    stores = stores_of(Master(cluster.session(), "leader").lead(), tmp_path)
    for job_id in (THIRD, OTHER, JOB):
        stores.results.put(ended(job_id))
    stores.results.put(ended(JOB, JobStatus.FAILED))
    assert list(stores.results.all()) == [ended(OTHER), ended(JOB)]


def test_a_job_that_has_lost_its_body_is_still_there(cluster: Cluster, tmp_path: Path) -> None:
    stores = stores_of(Master(cluster.session(), "leader").lead(), tmp_path / "ha")
    stores.job_graphs.put(submission(JOB))
    for path in (tmp_path / "ha").rglob("*.json"):
        path.write_bytes(b"")
    assert list(stores.job_graphs.job_ids()) == [JOB] and stores.job_graphs.get(JOB) is None
    stores.job_graphs.replace(submission(JOB))
    assert stores.job_graphs.get(JOB) == submission(JOB)
    assert len(list((tmp_path / "ha").rglob("*.json"))) == 1


def test_a_checkpoint_that_has_lost_its_body_is_passed_over(cluster: Cluster, tmp_path: Path) -> None:
    stores = stores_of(Master(cluster.session(), "leader").lead(), tmp_path / "ha")
    checkpoints = stores.checkpoints(JOB, str(tmp_path / "job"))
    for _ in range(2):
        checkpoints.add(checkpoint(checkpoints.next_id()), b"metadata")
    (tmp_path / "job/chk-2/_metadata").unlink()
    assert [info.checkpoint_id for info in checkpoints.all()] == [1]
