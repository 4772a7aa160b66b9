"""Checkpoints and savepoints of one job, and what is left of its state at its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from tests.patience import PATIENCE
from tests.runtime.jobmaster.job_bench import EVERY_10_S, JOB, TM1, USER_ERROR, Bench
from yarnflow.core.checkpoint.manifest import from_bytes
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointInfo,
    CheckpointKind,
    CheckpointOrder,
    CheckpointOutcome,
    CheckpointRequest,
    CheckpointStatus,
    CheckpointTrigger,
    JobStop,
    QueryPosition,
)
from yarnflow.core.ha.ports import DriverLeaseInfo, LatestState
from yarnflow.core.ids import DriverId, ExecutorId, JobId
from yarnflow.core.messages import DriverPhase, ExecutorStatus, IdleQueries
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    CheckpointError,
    CheckpointFailed,
    ConfigError,
    RpcUnavailable,
    StorageUnavailable,
    YarnflowError,
)
from yarnflow.runtime.jobmaster import checkpoints
from yarnflow.runtime.jobmaster.services import Retention
from yarnflow.runtime.mailbox import Mailbox, Work
from yarnflow.testing.runtime import InlineEffects
from yarnflow.testing.stores import FakeCheckpoints, FakeJobStores

T = TypeVar("T")
POSITION = QueryPosition("q", 7)
CHECKPOINT = CheckpointRequest("r1", CheckpointKind.CHECKPOINT)
SAVEPOINT = CheckpointRequest("r1", CheckpointKind.SAVEPOINT, "hdfs://nn/saved/")


def running(bench: Bench | None = None) -> Bench:
    return (bench or Bench()).running().report(DriverPhase.RUNNING, batch=0)


def later(bench: Bench, batch: int, seconds: int = 10) -> Bench:
    """A driver reports every second that it is at this batch, as long as its job runs."""
    for _ in range(seconds):
        bench.run(1_000)
        if bench.status() is JobStatus.RUNNING:
            bench.report(DriverPhase.RUNNING, batch=batch)
    return bench


def with_checkpoint(bench: Bench | None = None) -> Bench:
    """A job with checkpoint 1."""
    return later(running(bench), 1)


def newest(bench: Bench) -> CheckpointInfo:
    return bench.master.checkpoints().history[0]


def batches(info: CheckpointInfo) -> dict[str, int]:
    return {position.query: position.batch_id for position in info.positions}


# --- periodic ----------------------------------------------------------------


def test_a_commit_after_the_interval_is_recorded() -> None:
    bench = running()
    bench.run(2_000).report(DriverPhase.RUNNING, batch=5)
    assert bench.master.checkpoints().history == ()
    info = newest(later(bench, 5, 8))
    assert (info.checkpoint_id, info.status, info.trigger) == (
        1,
        CheckpointStatus.COMPLETED,
        CheckpointTrigger.INTERVAL,
    )
    assert info.external_path == f"file:/checkpoints/{JOB}/chk-1"
    assert [(p.query, p.batch_id) for p in info.positions] == [("q", 5)]
    assert info.positions[0].committed_ms == 5_300, "not when the batch began"
    assert not bench.driver.orders, "positions come with the reports"
    metadata = from_bytes(bench.checkpoints.metadata[1], "here")
    assert (metadata.checkpoint_id, metadata.job_id, metadata.positions) == (1, JOB, info.positions)
    assert bench.checkpoints.records[1].status is CheckpointStatus.COMPLETED


def test_a_job_that_has_nothing_to_do_is_up_to_date() -> None:
    bench = with_checkpoint()
    end_ms, now_ms = newest(bench).end_ms, bench.clock.now_ms()
    bench.report(DriverPhase.RUNNING, batch=1, idle=IdleQueries())
    assert bench.master.checkpoints().kept_until_ms == end_ms, "not all have told"
    bench.run(1_000).report(DriverPhase.RUNNING, batch=1, idle=IdleQueries(400))
    assert bench.master.checkpoints().kept_until_ms == now_ms + 600
    # a batch takes long
    bench.run(9_000).report(DriverPhase.RUNNING, batch=1, idle=IdleQueries(9_400))
    assert bench.master.checkpoints().kept_until_ms == now_ms + 600
    bench.report(DriverPhase.RUNNING, batch=2, idle=IdleQueries(0))
    bench.report(DriverPhase.RUNNING, batch=2, idle=IdleQueries(0))
    assert bench.master.checkpoints().kept_until_ms >= now_ms + 600
    assert batches(newest(bench)) == {"q": 2}


def test_a_query_that_has_been_silent_since_it_went_on_is_in_the_next_checkpoint() -> None:
    """It has read nothing since the savepoint: the job has its first checkpoint all the same."""
    bench = running(Bench()).report(
        DriverPhase.RUNNING, idle=IdleQueries(100, (QueryPosition("silent", 40, "file:/c/silent"),))
    )
    info = newest(later(bench, 0))
    assert batches(info) == {"q": 0, "silent": 40}


def test_subsumed_checkpoints_are_removed() -> None:
    bench = running()
    for batch in range(1, 4):
        later(bench, batch)
    assert sorted(bench.checkpoints.records) == [2, 3]
    assert bench.checkpoints.log == ["add 1", "add 2", "add 3", "remove 1"]


def test_a_checkpoint_that_cannot_be_recorded_is_shown_and_made_up_for() -> None:
    bench = with_checkpoint()
    bench.checkpoints.error = StorageUnavailable("name node is in safe mode")
    later(bench, 2, 15)
    assert "name node is in safe mode" in newest(bench).failure
    assert bench.status() is JobStatus.RUNNING
    assert bench.details.failures == () and bench.details.restarts == 0
    bench.checkpoints.error = None
    assert newest(later(bench, 3, 15)).status is CheckpointStatus.COMPLETED


def test_a_directory_that_can_never_be_used_fails_the_job() -> None:
    bench = running()
    bench.stores.by_job[JOB] = FakeCheckpoints("s3a://x", error=ConfigError("s3a://x: only hdfs and file"))
    later(bench, 1)
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error is not None and bench.details.error.code == "CONFIG"
    assert bench.ended == [JOB], "the end waits for a directory that cannot be"


def test_nothing_is_completed_while_the_lead_is_in_doubt() -> None:
    bench = running()
    bench.master.suspended()
    later(bench, 1, 20)
    assert JOB not in bench.stores.by_job
    bench.master.resumed()
    bench.run()
    assert newest(bench).status is CheckpointStatus.COMPLETED


# --- on request --------------------------------------------------------------


def test_a_requested_checkpoint_is_as_the_driver_says() -> None:
    bench = running()
    bench.master.trigger_checkpoint(CHECKPOINT)
    bench.run()
    (order,) = bench.driver.orders
    assert (order.checkpoint_id, order.kind, order.target) == (1, CheckpointKind.CHECKPOINT, "")
    assert bench.master.await_checkpoint("r1", 0).status is CheckpointStatus.IN_PROGRESS
    bench.outcome(CheckpointOutcome(1, positions=(POSITION,), commit_wait_ms=30))
    info = bench.master.await_checkpoint("r1", 0)
    assert (info.status, info.positions, info.commit_wait_ms) == (
        CheckpointStatus.COMPLETED,
        (POSITION,),
        30,
    )


def test_asking_again_is_no_second_checkpoint() -> None:
    bench = running()
    for _ in range(2):
        bench.master.trigger_checkpoint(CHECKPOINT)
        bench.run()
    bench.outcome(CheckpointOutcome(1, positions=(POSITION,)))
    bench.master.trigger_checkpoint(CHECKPOINT)
    bench.run()
    assert len(bench.driver.orders) == 1


def test_whoever_waits_is_woken() -> None:
    bench = running()
    bench.master.trigger_checkpoint(CHECKPOINT)
    bench.run()
    found: list[CheckpointInfo] = []
    waiter = threading.Thread(target=lambda: found.append(bench.master.await_checkpoint("r1", 600_000)))
    waiter.start()
    bench.outcome(CheckpointOutcome(1, positions=(POSITION,)))
    waiter.join(PATIENCE.thread_s)
    assert [info.status for info in found] == [CheckpointStatus.COMPLETED]


def test_what_waits_is_bounded_but_for_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MAX_WAITING", 2)
    master = running().master
    for number in range(3):
        master.trigger_checkpoint(replace(SAVEPOINT, request_id=f"w{number}"))
    with pytest.raises(CheckpointFailed, match="2 checkpoints and savepoints of job .* wait already"):
        master.trigger_checkpoint(replace(SAVEPOINT, request_id="w3"))
    master.trigger_checkpoint(replace(SAVEPOINT, request_id="w2"))
    master.trigger_checkpoint(replace(SAVEPOINT, request_id="s", after=AfterSavepoint.STOP))
    assert master.await_checkpoint("s", 0).status is CheckpointStatus.IN_PROGRESS


def test_nobody_asked_for_it() -> None:
    with pytest.raises(CheckpointError, match="nobody asked"):
        running().master.await_checkpoint("other", 0)


def test_a_savepoint_needs_a_directory() -> None:
    bench = running()
    with pytest.raises(CheckpointError, match="execution.checkpointing.savepoint-dir"):
        bench.master.trigger_checkpoint(replace(SAVEPOINT, target_dir=""))


@pytest.mark.parametrize(("target_dir", "parent"), [("hdfs://nn/saved/", "saved"), ("", "default")])
def test_a_savepoint_has_a_directory_of_its_own(target_dir: str, parent: str) -> None:
    bench = running(Bench(savepoint_dir="hdfs://nn/default"))
    bench.master.trigger_checkpoint(replace(SAVEPOINT, target_dir=target_dir))
    bench.run()
    (order,) = bench.driver.orders
    assert order.target.startswith(f"hdfs://nn/{parent}/savepoint-aaaaaa-")
    bench.outcome(CheckpointOutcome(1, positions=(POSITION,), copied_bytes=9, target=order.target))
    info = bench.master.await_checkpoint("r1", 0)
    assert (info.external_path, info.copied_bytes) == (order.target, 9)
    assert bench.checkpoints.records[1].external_path == order.target
    assert bench.status() is JobStatus.RUNNING


def test_an_order_that_gets_lost_is_given_again() -> None:
    bench = running()
    bench.driver.error = RpcUnavailable("driver:1: connection refused")
    bench.master.trigger_checkpoint(CHECKPOINT)
    bench.run().run(1_000)
    bench.driver.error = None
    bench.run(1_000)
    assert [order.checkpoint_id for order in bench.driver.orders] == [1]
    bench.run(5_000)
    assert len(bench.driver.orders) == 1


def test_a_savepoint_that_fails_leaves_the_job_alone() -> None:
    bench = running()
    bench.master.trigger_checkpoint(SAVEPOINT)
    bench.run().outcome(CheckpointOutcome(1, failure="no space left"))
    assert bench.master.await_checkpoint("r1", 0).failure == "no space left"
    assert bench.status() is JobStatus.RUNNING


def test_a_lost_driver_fails_its_savepoint() -> None:
    bench = running()
    bench.master.trigger_checkpoint(SAVEPOINT)
    bench.run()
    bench.launcher.end(bench.driver_id, -9)
    bench.run()
    info = bench.master.await_checkpoint("r1", 0)
    assert info.status is CheckpointStatus.FAILED
    assert "ended by signal 9" in info.failure
    assert bench.status() is JobStatus.RESTARTING


def test_a_canceled_job_fails_its_savepoint() -> None:
    bench = running()
    bench.master.trigger_checkpoint(SAVEPOINT)
    bench.run()
    bench.master.cancel()
    bench.run()
    assert bench.master.await_checkpoint("r1", 0).failure == "the job is canceled"
    bench.report(DriverPhase.CANCELED)
    assert bench.status() is JobStatus.CANCELED


def test_a_job_that_does_not_run_takes_none() -> None:
    bench = Bench().start()
    with pytest.raises(CheckpointFailed, match="is CREATED"):
        bench.master.trigger_checkpoint(CHECKPOINT)
    bench.master.cancel()
    bench.run()
    with pytest.raises(CheckpointError, match="is CANCELED"):
        bench.master.trigger_checkpoint(CHECKPOINT)


# --- stop --------------------------------------------------------------------


def done(order: CheckpointOrder) -> CheckpointOutcome:
    """As a driver tells it."""
    return CheckpointOutcome(
        order.checkpoint_id,
        positions=(POSITION,),
        request_id=order.request_id,
        kind=order.kind,
        target=order.target,
        after=order.after,
    )


@pytest.mark.parametrize("after", [AfterSavepoint.STOP, AfterSavepoint.DRAIN])
def test_stop_with_a_savepoint(after: AfterSavepoint) -> None:
    """The job is FINISHED, its own state is gone, the savepoint is what `latest` means."""
    bench = with_checkpoint(Bench(job_key="flights"))
    bench.master.trigger_checkpoint(replace(SAVEPOINT, after=after))
    bench.run()
    (order,) = bench.driver.orders
    assert order.after is after
    bench.outcome(done(order), phase=DriverPhase.FINISHED)
    assert bench.status() is JobStatus.FINISHED
    info = bench.master.await_checkpoint("r1", 0)
    assert (info.status, info.trigger) == (CheckpointStatus.COMPLETED, CheckpointTrigger.STOP)
    assert bench.checkpoints.log[-1] == "discard_all"
    state = bench.stores.latest.states["flights"]
    assert (state.path, state.status) == (order.target, "FINISHED")
    assert bench.details.stop == JobStop(order.target, "r1", drained=after is AfterSavepoint.DRAIN)
    assert bench.ended == [JOB]


def test_no_checkpoint_is_in_progress_after_the_end() -> None:
    """One is due by its interval when the savepoint is complete, and the job does not run any more."""
    bench = with_checkpoint()
    bench.master.trigger_checkpoint(replace(SAVEPOINT, after=AfterSavepoint.STOP))
    later(bench, 1, 12)
    (order,) = bench.driver.orders
    outcome = CheckpointOutcome(order.checkpoint_id, positions=(POSITION,), target=order.target)
    bench.outcome(outcome, phase=DriverPhase.FINISHED)
    assert bench.status() is JobStatus.FINISHED
    statuses = [info.status for info in bench.master.checkpoints().history]
    assert statuses == [CheckpointStatus.COMPLETED] * 2


def test_the_end_waits_until_the_savepoint_is_recorded() -> None:
    bench = with_checkpoint()
    bench.master.trigger_checkpoint(replace(SAVEPOINT, after=AfterSavepoint.STOP))
    bench.run()
    (order,) = bench.driver.orders
    bench.checkpoints.error = StorageUnavailable("no name node")
    outcome = CheckpointOutcome(2, positions=(POSITION,), target=order.target)
    bench.outcome(outcome, phase=DriverPhase.FINISHED)
    assert bench.status() is JobStatus.RUNNING
    bench.checkpoints.error = None
    bench.run(1_000)
    assert bench.master.await_checkpoint("r1", 0).status is CheckpointStatus.COMPLETED
    assert bench.status() is JobStatus.FINISHED


def test_a_job_whose_savepoint_cannot_be_recorded_keeps_its_state() -> None:
    """It has stopped, and the path of its savepoint is known to nobody."""
    bench = with_checkpoint(Bench(job_key="flights"))
    bench.master.trigger_checkpoint(replace(SAVEPOINT, after=AfterSavepoint.STOP))
    bench.run()
    (order,) = bench.driver.orders
    bench.checkpoints.error = StorageUnavailable("safe mode")
    bench.outcome(done(order), phase=DriverPhase.FINISHED)
    bench.run(1_000).run(1_000)
    assert bench.status() is JobStatus.FINISHED
    assert bench.details.stop == JobStop("", "r1")
    bench.checkpoints.error = None
    bench.run(1_000)
    assert bench.ended == [JOB]
    assert "discard_all" not in bench.checkpoints.log
    assert bench.stores.latest.states["flights"].path.endswith("chk-1")
    info = bench.master.await_checkpoint("r1", 0)
    assert info.status is CheckpointStatus.FAILED
    assert info.failure == f"safe mode; its files are complete, in {order.target}"


@pytest.mark.parametrize("before", ["ordered", "ordered, and unreadable at first", "recorded"])
def test_a_stop_that_was_ordered_by_a_lost_master_is_recorded(before: str) -> None:
    stores = FakeJobStores(highly_available=True)
    stores.by_job[JOB] = FakeCheckpoints(f"file:/checkpoints/{JOB}", 7)
    unreadable_at_first = "unreadable" in before
    if before == "recorded":
        stores.by_job[JOB].records[7] = CheckpointInfo(
            7,
            CheckpointKind.SAVEPOINT,
            CheckpointStatus.COMPLETED,
            CheckpointTrigger.STOP,
            trigger_ms=1,
            end_ms=2,
            positions=(POSITION,),
            external_path="hdfs://nn/saved/savepoint-1",
            request_id="r1",
        )
    if unreadable_at_first:
        stores.by_job[JOB].error = StorageUnavailable("safe mode")
    driver = DriverId("driver-of-the-master-before")
    stores.lease_table.hold(DriverLeaseInfo(JOB, driver, "driver:1", "host", 42, epoch=1, attempt=3))
    bench = Bench(stores=stores, recovered=True, job_key="flights").start()
    bench.offer(TM1, 2, ExecutorStatus(ExecutorId("4"), JOB, driver, 77, 2))
    bench.register(driver, attempt=3)
    bench.adopted_driver, bench.attempt = driver, 3
    told = CheckpointOutcome(
        7,
        positions=(POSITION,),
        request_id="r1",
        kind=CheckpointKind.SAVEPOINT,
        target="hdfs://nn/saved/savepoint-1",
        after=AfterSavepoint.STOP,
    )
    bench.outcome(told, phase=DriverPhase.FINISHED)
    if unreadable_at_first:
        assert bench.status() is JobStatus.RECONCILING
        stores.by_job[JOB].error = None
        bench.run(1_000)
    assert bench.status() is JobStatus.FINISHED
    info = bench.master.await_checkpoint("r1", 0)
    assert (info.status, info.external_path) == (CheckpointStatus.COMPLETED, "hdfs://nn/saved/savepoint-1")
    assert bench.stores.latest.states["flights"].path == "hdfs://nn/saved/savepoint-1"
    assert bench.details.stop == JobStop("hdfs://nn/saved/savepoint-1", "r1")


def test_the_last_order_that_has_ended_a_job_is_its_stop() -> None:
    earlier = CheckpointOutcome(1, request_id="r0", kind=CheckpointKind.SAVEPOINT, after=AfterSavepoint.STOP)
    failed = replace(earlier, checkpoint_id=3, request_id="r2", failure="no room")
    drained = replace(earlier, checkpoint_id=2, request_id="r1", after=AfterSavepoint.DRAIN)
    assert JobStop.of((earlier, drained, failed)) == JobStop("", "r1", drained=True)
    assert JobStop.of((failed, replace(earlier, after=AfterSavepoint.CONTINUE))) is None


def test_a_job_that_went_on_after_its_stop_was_not_stopped() -> None:
    """Its driver was lost before it could end: the savepoint is not that of what it has done since."""
    bench = with_checkpoint(Bench(job_key="flights"))
    bench.master.trigger_checkpoint(replace(SAVEPOINT, after=AfterSavepoint.STOP))
    bench.run()
    (order,) = bench.driver.orders
    bench.outcome(done(order))
    bench.launcher.end(bench.driver_id, -9)
    bench.run()
    assert bench.status() is JobStatus.RESTARTING
    bench.run(5_000).register().report(DriverPhase.RUNNING)
    bench.attempt = bench.driver.deployments[-1].attempt
    bench.report(DriverPhase.RUNNING).report(DriverPhase.FINISHED, batch=9)
    assert bench.status() is JobStatus.FINISHED
    assert bench.details.stop is None
    assert bench.stores.latest.states["flights"].path == ""


def test_a_job_that_finishes_first_has_no_savepoint() -> None:
    bench = running()
    bench.master.trigger_checkpoint(SAVEPOINT)
    bench.run().report(DriverPhase.FINISHED, batch=7)
    assert bench.status() is JobStatus.FINISHED
    assert bench.master.await_checkpoint("r1", 0).failure == "the job is FINISHED"
    assert bench.details.stop is None


# --- the end -----------------------------------------------------------------


def end(bench: Bench, status: JobStatus) -> Bench:
    if status is JobStatus.FINISHED:
        return bench.report(DriverPhase.FINISHED, batch=2)
    if status is JobStatus.FAILED:
        bench.report(DriverPhase.FAILED, error=USER_ERROR, batch=2)
    else:
        bench.master.cancel()
        bench.run().report(DriverPhase.CANCELED, batch=2)
    return bench


class SlowWrites(InlineEffects):
    """Effects that are performed when the test says so, once :attr:`held` is a list."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Callable[[], None]] | None = None

    def perform(
        self,
        mailbox: Mailbox,
        effect: Callable[[], T],
        on_success: Callable[[T], None],
        on_failure: Callable[[YarnflowError], None],
        work: Work = Work.CALL,
        target: str = "",
    ) -> None:
        if self.held is None:
            super().perform(mailbox, effect, on_success, on_failure)
        else:
            self.held.append(lambda: super(SlowWrites, self).perform(mailbox, effect, on_success, on_failure))


def test_the_state_is_deleted_after_the_last_write_to_it() -> None:
    """The other way round a record of a deleted state would be left."""
    effects = SlowWrites()
    bench = later(running(Bench(effects=effects)), 1, 9)
    effects.held = []
    later(bench, 1, 1)
    draw_id = effects.held.pop()
    draw_id()
    bench.run().report(DriverPhase.FINISHED, batch=2)
    assert bench.status() is JobStatus.FINISHED
    for _ in range(10):
        # the latest first: a pool keeps no order
        for perform in reversed(effects.held):
            perform()
        effects.held.clear()
        bench.run()
    assert bench.checkpoints.log[-1] == "discard_all"
    assert bench.ended == [JOB]


@pytest.mark.parametrize(
    ("status", "retention", "kept"),
    [
        (JobStatus.FINISHED, Retention.RETAIN_ON_CANCELLATION, False),
        (JobStatus.CANCELED, Retention.RETAIN_ON_CANCELLATION, True),
        (JobStatus.FAILED, Retention.RETAIN_ON_CANCELLATION, True),
        (JobStatus.CANCELED, Retention.DELETE_ON_CANCELLATION, False),
        (JobStatus.FAILED, Retention.DELETE_ON_CANCELLATION, True),
        (JobStatus.CANCELED, Retention.NO_EXTERNALIZED_CHECKPOINTS, False),
        (JobStatus.FAILED, Retention.NO_EXTERNALIZED_CHECKPOINTS, False),
    ],
)
def test_what_is_left_of_the_state(status: JobStatus, retention: Retention, kept: bool) -> None:
    bench = end(with_checkpoint(Bench("none", retention=retention, job_key="flights")), status)
    assert bench.status() is status
    assert bench.checkpoints.log == ["add 1", f"close_job {status.value}" if kept else "discard_all"]
    state = bench.stores.latest.states["flights"]
    assert (state.status, state.path) == (status.value, f"file:/checkpoints/{JOB}/chk-1" if kept else "")
    assert bench.ended == [JOB]


def test_a_job_canceled_before_its_first_checkpoint_leaves_one() -> None:
    bench = end(running(Bench(job_key="flights")), JobStatus.CANCELED)
    assert bench.checkpoints.log == ["add 1", "close_job CANCELED"]
    assert bench.stores.latest.states["flights"].checkpoint_id == 1


def test_a_job_that_never_committed_deletes_nothing() -> None:
    """What it was to start from may have been moved into its directory."""
    bench = Bench("none", job_key="flights").running()
    bench.report(DriverPhase.FAILED, error=USER_ERROR)
    assert bench.checkpoints.log == ["close_job FAILED"]
    assert not bench.stores.latest.states


def test_the_result_is_stored_before_any_state_is_deleted() -> None:
    bench = with_checkpoint()
    bench.stores.ended.error = StorageUnavailable("no ZooKeeper")
    bench.report(DriverPhase.FINISHED, batch=2)
    assert bench.checkpoints.log == ["add 1"]
    assert bench.ended == []
    bench.stores.ended.error = None
    bench.run(1_000)
    assert bench.stores.ended.stored[JOB].overview.status is JobStatus.FINISHED
    assert bench.checkpoints.log == ["add 1", "discard_all"]
    assert bench.ended == [JOB]


def test_a_state_that_cannot_be_deleted_does_not_keep_the_job() -> None:
    bench = with_checkpoint()
    bench.checkpoints.error = StorageUnavailable("safe mode")
    bench.report(DriverPhase.FINISHED, batch=2)
    for _ in range(10):
        bench.run(1_000)
    assert bench.ended == [JOB]


def test_the_key_leads_to_the_newest_checkpoint_while_the_job_runs() -> None:
    bench = with_checkpoint(Bench(job_key="flights"))
    later(bench, 2)
    state = bench.stores.latest.states["flights"]
    assert (state.status, state.path) == ("RUNNING", f"file:/checkpoints/{JOB}/chk-2")


def test_what_a_lost_job_left_is_not_taken_again_after_its_successor_finished() -> None:
    """Else the next job of the key would do the successor's work once more."""
    bench = Bench(job_key="flights")
    bench.stores.latest.write(LatestState("flights", JobId("b" * 32), "flights", "FAILED", "hdfs://b", 5, 1))
    end(running(bench), JobStatus.FINISHED)
    state = bench.stores.latest.states["flights"]
    assert (state.path, state.status) == ("hdfs://b", "FINISHED")


def test_how_a_job_ended_is_put_down_as_often_as_it_takes() -> None:
    """Else the next job of the key would take it for lost and do its work again."""
    bench = with_checkpoint(Bench(job_key="flights"))
    bench.stores.latest.error = StorageUnavailable("safe mode")
    end(bench, JobStatus.CANCELED)
    assert bench.ended == []
    bench.stores.latest.error = None
    bench.run(1_000)
    assert bench.ended == [JOB] and bench.stores.latest.states["flights"].status == "CANCELED"


def test_a_job_without_a_key_leaves_no_name() -> None:
    bench = end(with_checkpoint(), JobStatus.CANCELED)
    assert not bench.stores.latest.states


def test_checkpoints_of_an_ended_job_can_still_be_read() -> None:
    bench = end(with_checkpoint(Bench(checkpointing=replace(EVERY_10_S, retained=3))), JobStatus.CANCELED)
    bench.master.stop()
    checkpoints = bench.master.checkpoints()
    assert (checkpoints.completed, checkpoints.retained, checkpoints.directory) == (
        1,
        3,
        f"file:/checkpoints/{JOB}",
    )
