"""Jobs that a new leader found, and not what they are to run."""

from __future__ import annotations

import pytest

from tests.runtime.dispatcher.dispatcher_bench import JOB, OTHER, Bench
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
)
from yarnflow.core.ha.ports import DriverLeaseInfo, LatestState
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.job_run.events import Adopted
from yarnflow.core.messages import DriverPhase as Phase
from yarnflow.core.messages import DriverRegistration, DriverReport, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    ConfigError,
    DriverLost,
    JobError,
    JobUnreadable,
    RpcTimeout,
    StorageDenied,
    StorageUnavailable,
    SubmissionMissing,
)
from yarnflow.testing.stores import FakeCheckpoints

DRIVER = DriverId("driver-1")
SUBMISSION = JobSubmission(JOB, "j", ProgramKind.GRAPH, "", {}, "daily")


def damaged(holder: DriverId | None = DRIVER) -> Bench:
    """A new leader with a job whose graph is damaged, and one that is not."""
    before = Bench()
    before.submit(JOB, "daily")
    before.submit(OTHER, "hourly")
    stores = before.stores
    stores.graphs.unreadable.add(JOB)
    if holder is not None:
        stores.lease_table.hold(DriverLeaseInfo(JOB, holder, "d:1", "d", 1, 1, 1))
    bench = Bench(stores=stores)
    bench.dispatcher.recover()
    return bench


def registration(submission: JobSubmission | None, driver_id: DriverId = DRIVER) -> DriverRegistration:
    return DriverRegistration(JOB, driver_id, "d:1", 1, "spark://", "app", attempt=1, submission=submission)


def status(bench: Bench) -> JobStatus:
    return bench.dispatcher.job_details(JOB).overview.status


def test_it_is_seen_with_the_reason_and_does_not_keep_others() -> None:
    bench = damaged()
    assert list(bench.jobs) == [OTHER]
    details = bench.dispatcher.job_details(JOB)
    assert (details.overview.status, details.overview.job_key) == (JobStatus.RECOVERY_FAILED, "daily")
    (failure,) = details.failures
    assert failure.error.code == JobUnreadable.code and "yarnflow recover" in details.waiting_for
    assert JOB in [job.job_id for job in bench.dispatcher.list_jobs()]
    assert not bench.stores.lease_table.revoked and JOB in bench.stores.graphs.stored


def test_it_keeps_its_key() -> None:
    """Another job of the key would run beside its driver."""
    bench = damaged()
    assert bench.submit(JobId("c" * 32), "daily") == (JOB, True)


def test_its_driver_supplies_what_it_runs_and_the_job_is_adopted() -> None:
    bench = damaged()
    with pytest.raises(SubmissionMissing):
        bench.dispatcher.register_driver(registration(None))
    bench.dispatcher.register_driver(registration(SUBMISSION))
    assert isinstance(bench.jobs[JOB].start_kind, Adopted)
    assert status(bench) is JobStatus.CREATED
    assert bench.stores.graphs.get(JOB) == SUBMISSION, "the next leader can read it"
    bench.dispatcher.register_driver(registration(SUBMISSION))
    bench.dispatcher.register_driver(registration(None))
    bench.dispatcher.report(DriverReport(JOB, DRIVER, 1, Phase.RUNNING))
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert status(bench) is JobStatus.FINISHED and "daily" not in bench.stores.keys.owners


@pytest.mark.parametrize("holder", [DriverId("driver-2"), None])
def test_only_the_driver_that_may_write_the_jobs_state_is_believed(holder: DriverId | None) -> None:
    bench = damaged(holder)
    with pytest.raises(DriverLost):
        bench.dispatcher.register_driver(registration(SUBMISSION))
    assert status(bench) is JobStatus.RECOVERY_FAILED


def test_what_another_job_is_to_run_is_refused() -> None:
    bench = damaged()
    other = JobSubmission(JOB, "j", ProgramKind.GRAPH, "", {}, "weekly")
    with pytest.raises(JobError, match="daily"):
        bench.dispatcher.register_driver(registration(other))
    assert status(bench) is JobStatus.RECOVERY_FAILED


def test_a_user_supplies_it() -> None:
    bench = damaged(holder=None)
    assert bench.dispatcher.submit_job(SUBMISSION).job_id == JOB
    assert isinstance(bench.jobs[JOB].start_kind, Adopted)
    assert bench.stores.graphs.get(JOB) == SUBMISSION


def test_a_key_that_zookeeper_has_lost_is_the_jobs_again() -> None:
    bench = damaged()
    bench.stores.keys.owners.clear()
    bench = Bench(stores=bench.stores)
    bench.dispatcher.recover()
    assert bench.dispatcher.job_details(JOB).overview.job_key == ""
    bench.dispatcher.register_driver(registration(SUBMISSION))
    assert bench.stores.keys.owners == {"daily": JOB, "hourly": OTHER} and JOB in bench.jobs
    assert bench.submit(JobId("c" * 32), "daily") == (JOB, True)


def test_a_key_that_another_job_has_by_now_is_not_taken() -> None:
    bench = damaged()
    bench.stores.keys.owners.clear()
    bench = Bench(stores=bench.stores)
    bench.dispatcher.recover()
    third = JobId("c" * 32)
    assert bench.submit(third, "daily") == (third, False)
    with pytest.raises(JobError, match=f"is that of job {third} by now"):
        bench.dispatcher.submit_job(SUBMISSION)
    assert status(bench) is JobStatus.RECOVERY_FAILED and JOB in bench.stores.graphs.unreadable


@pytest.mark.parametrize("failure", [StorageUnavailable("safe mode"), RpcTimeout("busy")])
def test_it_stays_until_the_job_is_taken_over(failure: StorageUnavailable | RpcTimeout) -> None:
    bench = damaged()
    bench.stores.graphs.error = failure
    with pytest.raises(type(failure)):
        bench.dispatcher.register_driver(registration(SUBMISSION))
    assert status(bench) is JobStatus.RECOVERY_FAILED
    bench.stores.graphs.error, bench.refusal = None, ConfigError("unknown option")
    with pytest.raises(ConfigError):
        bench.dispatcher.register_driver(registration(SUBMISSION))
    assert status(bench) is JobStatus.RECOVERY_FAILED
    bench.refusal = None
    bench.dispatcher.register_driver(registration(SUBMISSION))
    assert list(bench.jobs) == [OTHER, JOB]


def test_a_user_may_cancel_it() -> None:
    bench = damaged()
    bench.dispatcher.cancel_job(JOB)
    assert status(bench) is JobStatus.CANCELED
    assert bench.stores.lease_table.revoked == [DRIVER], "its driver must end"
    assert list(bench.stores.graphs.stored) == [OTHER] and "daily" not in bench.stores.keys.owners
    bench.dispatcher.cancel_job(JOB)
    # the driver is unknown from now on
    with pytest.raises(JobError):
        bench.dispatcher.register_driver(registration(SUBMISSION))


def info(number: int, kind: CheckpointKind = CheckpointKind.CHECKPOINT) -> CheckpointInfo:
    return CheckpointInfo(number, kind, CheckpointStatus.COMPLETED, CheckpointTrigger.INTERVAL, 1)


def with_checkpoints(bench: Bench, directory: str = f"hdfs://nn/own/{JOB}") -> FakeCheckpoints:
    checkpoints = FakeCheckpoints(directory)
    bench.stores.by_job[JOB] = checkpoints
    for number in (4, 5):
        checkpoints.add(info(number), b"")
    checkpoints.add(info(6, CheckpointKind.SAVEPOINT), b"")
    return checkpoints


def test_the_next_job_of_its_key_does_not_go_on_from_its_state_when_it_was_canceled() -> None:
    bench = damaged()
    checkpoints = with_checkpoints(bench)
    bench.stores.latest.write(
        LatestState("daily", JOB, "flights", "RUNNING", f"hdfs://nn/own/{JOB}/chk-4", 4, 1)
    )
    bench.dispatcher.cancel_job(JOB)
    now_ms = bench.clock.now_ms()
    path = f"hdfs://nn/own/{JOB}/chk-5"
    assert bench.stores.latest.states["daily"] == LatestState(
        "daily", JOB, "flights", "CANCELED", path, 5, now_ms
    )
    assert checkpoints.log[-1] == "close_job CANCELED"
    assert bench.stores.latest.roots == ["hdfs://nn/own"]


def test_a_canceled_job_without_a_checkpoint_leaves_what_the_one_before_it_left() -> None:
    bench = damaged()
    before = LatestState("daily", OTHER, "flights", "FAILED", "hdfs://nn/cp/b/chk-4", 4, 1)
    bench.stores.latest.write(before)
    bench.dispatcher.cancel_job(JOB)
    left = bench.stores.latest.states["daily"]
    assert (left.job_id, left.status, left.path) == (JOB, "CANCELED", before.path)
    assert bench.stores.by_job[JOB].directory == f"hdfs://nn/cp/{JOB}"


def test_a_canceled_job_whose_options_are_known_is_looked_for_where_they_say() -> None:
    before = Bench()
    options = {"execution.checkpointing.dir": "hdfs://nn/mine/"}
    before.dispatcher.submit_job(JobSubmission(JOB, "j", ProgramKind.GRAPH, "", options, "daily"))
    bench = Bench(stores=before.stores)
    bench.refusal = ConfigError("unknown option")
    bench.dispatcher.recover()
    bench.dispatcher.cancel_job(JOB)
    assert bench.stores.by_job[JOB].log == ["close_job CANCELED"]
    assert bench.stores.by_job[JOB].directory == f"hdfs://nn/mine/{JOB}"


def test_its_state_is_marked_before_the_job_is_gone() -> None:
    bench = damaged()
    with_checkpoints(bench).error = StorageUnavailable("safe mode")
    with pytest.raises(StorageUnavailable):
        bench.dispatcher.cancel_job(JOB)
    assert JOB in bench.stores.graphs.stored and not bench.stores.ended.stored
    bench.stores.by_job[JOB].error = None
    bench.dispatcher.cancel_job(JOB)
    assert status(bench) is JobStatus.CANCELED and bench.stores.by_job[JOB].log[-1] == "close_job CANCELED"


def test_a_job_whose_state_cannot_be_marked_can_be_canceled() -> None:
    bench = damaged()
    with_checkpoints(bench).error = StorageDenied("permission denied")
    bench.dispatcher.cancel_job(JOB)
    assert status(bench) is JobStatus.CANCELED


def test_a_cancel_that_was_written_down_counts_for_it_too() -> None:
    before = Bench()
    before.submit(JOB, "daily")
    before.dispatcher.cancel_job(JOB)
    before.stores.graphs.unreadable.add(JOB)
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert status(bench) is JobStatus.CANCELED and not bench.stores.graphs.stored


def test_a_cancel_that_was_written_down_counts_for_one_that_cannot_be_accepted() -> None:
    before = Bench()
    before.submit(JOB, "daily")
    before.dispatcher.cancel_job(JOB)
    bench = Bench(stores=before.stores)
    bench.refusal = ConfigError("unknown option")
    bench.dispatcher.recover()
    assert status(bench) is JobStatus.CANCELED and not bench.stores.graphs.stored


def test_a_job_that_is_over_is_cleared_away_although_nobody_can_read_it() -> None:
    before = Bench()
    before.submit(JOB, "daily")
    before.jobs[JOB].end(JobStatus.FINISHED)
    before.stores.ended.put(before.board.get(JOB))
    before.stores.graphs.unreadable.add(JOB)
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert not bench.stores.graphs.stored and not bench.stores.keys.owners
    assert status(bench) is JobStatus.FINISHED


def test_it_is_a_job_of_the_cluster_until_it_is_canceled() -> None:
    bench = damaged()
    bench.dispatcher.close("no more jobs")
    bench.mailbox.run_pending()
    bench.jobs[OTHER].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert not bench.ended.is_set()
    bench.dispatcher.shut_down_cluster()
    bench.mailbox.run_pending()
    assert bench.ended.is_set() and status(bench) is JobStatus.CANCELED
