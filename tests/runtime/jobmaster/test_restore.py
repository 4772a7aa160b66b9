"""Which state a job starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.hadoop_directory import hadoop_environ
from tests.runtime.jobmaster.job_bench import JOB, TM1, USER_ERROR, Bench
from yarnflow.config.configuration import Configuration
from yarnflow.core.checkpoint.messages import CheckpointKind, ClaimMode, RestoredState, RestoreSettings
from yarnflow.core.ha.ports import LatestState, LostJob
from yarnflow.core.ids import JobId
from yarnflow.core.messages import DriverPhase, ErrorInfo, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    DuplicateJob,
    StateDrained,
    StateIncompatible,
    StateUndecided,
    StorageDenied,
    StorageUnavailable,
)
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


def checkpoint_of(job_id: str, status: str = "LOST") -> LatestState:
    """A checkpoint that is only known by itself."""
    return LatestState("flights", JobId(job_id), "flights", status, f"hdfs://nn/{job_id}/chk-8", 8, 1)


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


@pytest.mark.parametrize(
    ("program", "restore", "fails"), [("d1", None, False), ("d2", None, True), ("d2", LATEST, False)]
)
def test_a_job_goes_on_from_another_program_only_if_asked_to(
    program: str, restore: RestoreSettings | None, fails: bool
) -> None:
    """The state may have appeared since the job was accepted."""
    stores = FakeJobStores()
    state = LatestState(
        "flights", JobId("b" * 32), "flights", "FAILED", "hdfs://nn/b/chk-5", 5, 1, program="d1"
    )
    stores.latest.write(state)
    bench = Bench(
        stores=stores, restore=restore, restore_if_lost=True, job_key="flights", program_digest=program
    )
    if fails:
        error = bench.start().details.error
        assert error is not None and error.code == DuplicateJob.code and not bench.gateways.drivers
    else:
        assert deployed(bench.running()) is not None


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
def test_a_job_does_not_start_empty_when_its_state_is_gone(restore: RestoreSettings | None) -> None:
    stores = left("FAILED")
    stores.latest.gone.add("hdfs://nn/b/chk-5")
    stores.latest.found.append(checkpoint_of("c" * 32))
    bench = Bench(stores=stores, restore=restore, restore_if_lost=True, job_key="flights").running()
    bench.report(DriverPhase.FAILED, error=NOT_FOUND)
    assert bench.status() is JobStatus.FAILED and len(bench.driver.deployments) == 1
    error = bench.details.error
    assert error is not None and error.code == StateUndecided.code
    for part in ("no state at hdfs://nn/b/chk-5 any more", f"hdfs://nn/{'c' * 32}/chk-8", "--restore none"):
        assert part in error.message


def test_a_job_does_not_start_empty_when_only_the_checkpoints_tell_of_its_state() -> None:
    """The record is lost, or was never written; all input would be processed again."""
    stores = FakeJobStores()
    stores.latest.found.append(checkpoint_of("b" * 32))
    bench = Bench(stores=stores, restore_if_lost=True, job_key="flights").start()
    assert bench.status() is JobStatus.FAILED and not bench.gateways.drivers
    error = bench.details.error
    assert error is not None and error.code == StateUndecided.code
    for part in ("-s PATH", "--restore none to start empty", f"hdfs://nn/{'b' * 32}/chk-8"):
        assert part in error.message


def test_checkpoints_of_an_earlier_version_that_no_record_names_are_told_of_and_left() -> None:
    """It put nothing down of a job that ended well, whatever jobs before that one had left."""
    stores = FakeJobStores()
    stores.latest.found += [checkpoint_of("b" * 32, "UNMARKED"), checkpoint_of("c" * 32, "CANCELED")]
    bench = Bench(stores=stores, restore_if_lost=True, job_key="flights").running()
    assert deployed(bench) is None and bench.status() is JobStatus.RUNNING
    (note,) = bench.details.failures
    assert note.recovered
    for part in (f"hdfs://nn/{'b' * 32}/chk-8", "-s PATH", "job flights starts empty"):
        assert part in str(note)
    assert "c" * 32 not in str(note), "what was canceled is not gone on from in any case"


def test_a_job_does_not_start_empty_beside_a_lost_one_of_this_version() -> None:
    stores = FakeJobStores()
    stores.latest.found += [checkpoint_of("b" * 32, "UNMARKED"), checkpoint_of("c" * 32, "FAILED")]
    bench = Bench(stores=stores, restore_if_lost=True, job_key="flights").start()
    error = bench.details.error
    assert error is not None and error.code == StateUndecided.code and "c" * 32 in error.message


@pytest.mark.parametrize("restore", [LATEST, None])
@pytest.mark.parametrize("before", ["CANCELED", "FAILED", None])
def test_a_job_does_not_start_beside_the_output_of_one_lost_before_its_first_checkpoint(
    before: str | None, restore: RestoreSettings | None
) -> None:
    stores = FakeJobStores() if before is None else left(before)
    stores.latest.lost_job = LostJob(JobId("c" * 32), "hdfs://nn/c", (("counts", 3),))
    bench = Bench(stores=stores, restore=restore, restore_if_lost=True, job_key="flights").start()
    error = bench.details.error
    assert error is not None and error.code == StateUndecided.code and not bench.gateways.drivers
    wanted = ["batch 3 of query counts in hdfs://nn/c", f"yarnflow recover {'c' * 32}", "--restore none"]
    for part in wanted + ["-s hdfs://nn/b/chk-5"] * (before is not None):
        assert part in error.message


@pytest.mark.parametrize("path", ["", SAVED.path])
def test_a_job_does_not_start_as_a_lost_one_of_another_program(path: str) -> None:
    """Where there is nothing to go on from, the batches it has begun matter more."""
    stores = FakeJobStores()
    stores.latest.lost_job = LostJob(JobId("c" * 32), "hdfs://nn/c", (("counts", 3),), path, program="d1")
    bench = Bench(stores=stores, restore_if_lost=True, job_key="flights", program_digest="d2").start()
    error = bench.details.error
    assert error is not None and error.code == (DuplicateJob if path else StateUndecided).code


def test_a_job_starts_as_one_that_was_lost_before_it_went_on() -> None:
    stores = left("CANCELED")
    stores.latest.lost_job = LostJob(JobId("c" * 32), "hdfs://nn/c", (("counts", 3),), SAVED.path)
    bench = Bench(stores=stores, restore_if_lost=True, job_key="flights").running()
    assert deployed(bench) == SAVED


def test_whoever_says_what_a_job_starts_from_need_not_know_of_lost_jobs() -> None:
    stores = FakeJobStores()
    stores.latest.lost_job = LostJob(JobId("c" * 32), "hdfs://nn/c", (("counts", 3),))
    assert deployed(Bench(stores=stores, job_key="flights").running()) is None
    assert deployed(Bench(stores=stores, job_key="flights", restore=SAVED).running()) == SAVED


def test_a_job_goes_on_in_its_own_directory_on_a_cluster_that_has_forgotten_it() -> None:
    stores = FakeJobStores()
    stores.latest.found += [checkpoint_of("b" * 32), checkpoint_of(JOB)]
    bench = Bench(stores=stores, restore_if_lost=True, job_key="flights").running()
    assert deployed(bench) is None


@pytest.mark.parametrize("others", [1, 2])
def test_latest_is_what_the_checkpoints_tell_if_that_is_one_job(others: int) -> None:
    stores = FakeJobStores()
    stores.latest.found.extend(checkpoint_of(digit * 32) for digit in "bc"[:others])
    bench = Bench(stores=stores, restore=LATEST, job_key="flights").start()
    bench.offer(TM1, 2)
    if others == 2:
        assert bench.status() is JobStatus.FAILED
    else:
        bench.register()
        assert deployed(bench) == RestoreSettings(f"hdfs://nn/{'b' * 32}/chk-8", ClaimMode.CLAIM)


def test_a_job_that_was_asked_to_start_empty_does() -> None:
    stores = FakeJobStores()
    stores.latest.found.append(checkpoint_of("b" * 32))
    # neither a path nor the state of a lost job is wanted: --restore none
    bench = Bench(stores=stores, job_key="flights").running()
    assert deployed(bench) is None
    assert stores.latest.jobs == {"flights": [JOB]}, "what it leaves comes after what others have left"


def test_a_job_that_was_taken_over_has_begun_already() -> None:
    stores = FakeJobStores()
    stores.latest.found.append(checkpoint_of("b" * 32))
    bench = Bench(stores=stores, restore_if_lost=True, recovered=True, job_key="flights").start().run(5_000)
    bench.offer(TM1, 2)
    assert deployed(bench.register()) is None and bench.status() is not JobStatus.FAILED


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


@pytest.mark.parametrize("restore", [LATEST, None])
def test_a_lookup_that_is_refused(restore: RestoreSettings | None) -> None:
    """What cannot be read is not nothing."""
    stores = left("FAILED")
    stores.latest.error = StorageDenied("permission denied")
    bench = Bench(stores=stores, restore=restore, restore_if_lost=True, job_key="flights").start()
    assert bench.status() is JobStatus.FAILED


@pytest.mark.parametrize("restore", [SAVED, None])
def test_what_a_user_said_needs_no_lookup(restore: RestoreSettings | None) -> None:
    stores = left("FAILED")
    stores.latest.error = StorageDenied("permission denied")
    bench = Bench(stores=stores, restore=restore, job_key="flights").running()
    assert deployed(bench) == restore


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


def test_both_say_of_which_hdfs_the_state_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in hadoop_environ(tmp_path, "hdfs://nn:8020").items():
        monkeypatch.setenv(name, value)
    options = Configuration.from_dict({"execution.state-recovery.path": "hdfs:///saved/1"}, "test")
    for restore in (None, RestoreSettings("hdfs:///saved/1")):
        submission = JobSubmission(JOB, "flights", ProgramKind.GRAPH, "", {}, "flights", restore=restore)
        assert restore_settings(submission, options) == (RestoreSettings("hdfs://nn:8020/saved/1"), False)
