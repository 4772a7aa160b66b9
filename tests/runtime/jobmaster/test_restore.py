"""Which state a job starts from."""

from __future__ import annotations

import pytest

from tests.runtime.jobmaster.job_bench import JOB, TM1, USER_ERROR, Bench
from yarnflow.config.configuration import Configuration
from yarnflow.core.checkpoint.messages import CheckpointKind, ClaimMode, RestoredState, RestoreSettings
from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.messages import DriverPhase, ErrorInfo, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import StateDrained, StateIncompatible, StorageDenied, StorageUnavailable
from yarnflow.runtime.dispatcher.job_factory import restore_settings
from yarnflow.testing.stores import FakeJobStores

LATEST = RestoreSettings(claim_mode=ClaimMode.CLAIM, latest=True)
SAVED = RestoreSettings("hdfs://nn/saved/savepoint-1")
NOT_FOUND = ErrorInfo("SAVEPOINT_NOT_FOUND", "there is nothing at hdfs://nn/…")


def left(status: str, job_id: str = "b" * 32) -> FakeJobStores:
    """Stores with the state an earlier job of the key left."""
    stores = FakeJobStores()
    stores.latest.write(LatestState("flights", JobId(job_id), "flights", status, "hdfs://nn/b/chk-5", 5, 1))
    return stores


def deployed(bench: Bench) -> RestoreSettings | None:
    return bench.driver.deployments[-1].restore


def test_a_named_path_is_passed_on() -> None:
    bench = Bench(restore=SAVED).running()
    assert deployed(bench) == SAVED
    restored = bench.master.checkpoints().restored
    now_ms = bench.clock.now_ms()
    assert restored == RestoredState(SAVED.path, CheckpointKind.SAVEPOINT, 0, now_ms, "NO_CLAIM")


def test_latest_is_looked_up() -> None:
    bench = Bench(stores=left("CANCELED"), restore=LATEST, job_key="flights").running()
    assert deployed(bench) == RestoreSettings("hdfs://nn/b/chk-5", ClaimMode.CLAIM)
    restored = bench.master.checkpoints().restored
    assert restored is not None
    assert (restored.kind, restored.checkpoint_id) == (CheckpointKind.CHECKPOINT, 5)


@pytest.mark.parametrize(("status", "taken"), [("FAILED", True), ("RUNNING", True), ("CANCELED", False)])
def test_the_state_of_a_lost_job_is_taken_without_being_asked(status: str, taken: bool) -> None:
    bench = Bench(stores=left(status), restore_if_lost=True, job_key="flights").running()
    assert (deployed(bench) is not None) is taken
    assert bench.details.failures == (), "nobody asked, so nobody is told"


def test_without_a_state_the_job_starts_empty_and_says_so() -> None:
    bench = Bench(restore=LATEST, job_key="flights").running()
    assert deployed(bench) is None
    assert bench.status() is JobStatus.RUNNING
    (note,) = bench.details.failures
    assert note.recovered and "no state of job key flights is retained; job flights starts empty" in str(note)


@pytest.mark.parametrize("wanted", [LATEST, None])
def test_a_job_does_not_start_from_its_own_record(wanted: RestoreSettings | None) -> None:
    bench = Bench(stores=left("RUNNING", JOB), restore=wanted, restore_if_lost=True, job_key="flights")
    assert deployed(bench.running()) is None
    assert bench.details.failures == (), "it has not lost anything by having another master"


def test_the_state_is_named_until_something_was_committed() -> None:
    bench = Bench(restore=SAVED).running()
    bench.launcher.end(bench.driver_id, -9)
    bench.run().run(1_000).register()
    assert [d.restore for d in bench.driver.deployments] == [SAVED, SAVED]
    bench.attempt = 2
    bench.report(DriverPhase.RUNNING, "1", batch=0)
    bench.report(DriverPhase.FAILED, "1", error=USER_ERROR)
    bench.run(1_000)
    assert [d.restore for d in bench.driver.deployments] == [SAVED, SAVED, None]


def test_a_named_path_that_is_not_there_fails_the_job() -> None:
    bench = Bench(restore=SAVED).running()
    bench.report(DriverPhase.FAILED, error=NOT_FOUND)
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error == NOT_FOUND


@pytest.mark.parametrize("restore", [LATEST, None])
def test_a_state_that_was_deleted_meanwhile_is_none(restore: RestoreSettings | None) -> None:
    stores = left("FAILED")
    bench = Bench("none", stores=stores, restore=restore, restore_if_lost=True, job_key="flights").start()
    bench.offer(TM1, 2)
    bench.register().report(DriverPhase.FAILED, error=NOT_FOUND)
    bench.run()
    assert [d.restore is None for d in bench.driver.deployments] == [False, True]
    assert any("starts empty" in failure.error.message for failure in bench.details.failures)
    bench.attempt = 2
    bench.report(DriverPhase.RUNNING)
    assert bench.status() is JobStatus.RUNNING
    assert bench.master.checkpoints().restored is None


@pytest.mark.parametrize("code", [StateIncompatible.code, StateDrained.code])
def test_a_state_that_does_not_fit_is_not_tried_again(code: str) -> None:
    """Also after commits: a program that changed does not change back, and what was drained stays so."""
    bench = Bench(restore=SAVED).running().report(DriverPhase.RUNNING, batch=0)
    bench.report(DriverPhase.FAILED, error=ErrorInfo(code, "operator counts is gone"))
    assert bench.status() is JobStatus.FAILED


def test_nothing_is_deployed_before_the_state_is_known() -> None:
    stores = left("FAILED")
    stores.latest.error = StorageUnavailable("safe mode")
    bench = Bench(stores=stores, restore=LATEST, job_key="flights").start()
    bench.offer(TM1, 2)
    bench.register()
    assert not bench.gateways.drivers
    stores.latest.error = None
    bench.run(1_000)
    assert deployed(bench) is not None


@pytest.mark.parametrize(("restore", "status"), [(LATEST, JobStatus.FAILED), (None, JobStatus.RUNNING)])
def test_a_lookup_that_is_refused(restore: RestoreSettings | None, status: JobStatus) -> None:
    stores = left("FAILED")
    stores.latest.error = StorageDenied("permission denied")
    bench = Bench(stores=stores, restore=restore, restore_if_lost=True, job_key="flights").start()
    bench.offer(TM1, 2)
    if status is JobStatus.RUNNING:
        bench.register().report(DriverPhase.RUNNING)
    assert bench.status() is status


@pytest.mark.parametrize(
    ("options", "submitted", "expected"),
    [
        ({}, None, (None, True)),
        ({"execution.state-recovery.path": "none"}, None, (None, False)),
        ({"execution.state-recovery.path": "latest"}, None, (RestoreSettings(latest=True), False)),
        (
            {"execution.state-recovery.path": "hdfs://a", "execution.state-recovery.claim-mode": "CLAIM"},
            None,
            (RestoreSettings("hdfs://a", ClaimMode.CLAIM), False),
        ),
        ({"execution.state-recovery.path": "hdfs://a"}, SAVED, (SAVED, False)),
    ],
)
def test_options_and_submission(
    options: dict[str, str],
    submitted: RestoreSettings | None,
    expected: tuple[RestoreSettings | None, bool],
) -> None:
    submission = JobSubmission(JOB, "flights", ProgramKind.GRAPH, "", {}, "flights", restore=submitted)
    assert restore_settings(submission, Configuration.from_dict(options, "test")) == expected
