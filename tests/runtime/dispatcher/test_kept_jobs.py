"""What of jobs outlives a Dispatcher, and what the next leader makes of it."""

from __future__ import annotations

import pytest

from tests.runtime.dispatcher.dispatcher_bench import JOB, OTHER, Bench, details
from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.job_run.events import Adopted
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    ConfigError,
    LeadershipLost,
    StorageUnavailable,
    YarnflowError,
    ZooKeeperUnavailable,
)
from yarnflow.runtime.dispatcher.ended_jobs import ARCHIVE_RETRY_MS


def test_a_cancel_is_known_to_the_next_leader_before_it_is_answered() -> None:
    before = Bench()
    before.submit(JOB)
    before.submit(OTHER)
    before.dispatcher.cancel_job(JOB)
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert (bench.jobs[JOB].canceled, bench.jobs[OTHER].canceled) == (True, False)


def test_the_next_leader_cancels_the_jobs_of_a_cluster_that_was_to_shut_down() -> None:
    before = Bench()
    before.submit()
    before.dispatcher.shut_down_cluster()
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert bench.jobs[JOB].canceled


def test_a_job_without_its_key_is_not_taken_over() -> None:
    """It was refused, and its master died before it was cleared away."""
    before = Bench()
    before.submit(JOB, "daily")
    before.stores.graphs.put(JobSubmission(OTHER, "j", ProgramKind.GRAPH, "", {}, "daily"))
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert list(bench.jobs) == [JOB] and list(bench.stores.graphs.stored) == [JOB]


def test_a_key_left_by_nobody_is_taken_over_with_the_job() -> None:
    before = Bench()
    before.submit(JOB, "daily")
    before.stores.keys.owners["daily"] = OTHER
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert list(bench.jobs) == [JOB] and bench.stores.keys.owners == {"daily": JOB}


def test_a_job_is_durable_before_it_is_accepted() -> None:
    bench = Bench()
    bench.submit(JOB, "daily")
    assert list(bench.stores.graphs.stored) == [JOB] and bench.stores.keys.owners == {"daily": JOB}
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert bench.stores.ended.stored[JOB].overview.status is JobStatus.FINISHED
    assert not bench.stores.graphs.stored and not bench.stores.keys.owners
    assert bench.jobs[JOB].stopped


def test_a_new_leader_takes_over_jobs_and_runs_no_ended_one_again() -> None:
    before = Bench()
    for job_id, key in ((JOB, "daily"), (OTHER, "hourly")):
        before.submit(job_id, key)
    before.jobs[OTHER].end(JobStatus.FINISHED)
    before.mailbox.run_pending()
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert list(bench.jobs) == [JOB] and isinstance(bench.jobs[JOB].start_kind, Adopted)
    assert bench.dispatcher.job_details(OTHER).overview.status is JobStatus.FINISHED
    assert bench.submit(OTHER, "hourly") == (OTHER, False)
    assert bench.submit(JobId("c" * 32), "daily") == (JOB, True), "the key was forgotten"
    assert list(bench.jobs) == [JOB]


def test_a_job_that_was_half_cleared_away_is_not_run_again() -> None:
    """The master died between the job's result and the removal of its graph."""
    before = Bench()
    before.submit(JOB, "daily")
    before.stores.ended.put(details(JOB, JobStatus.FINISHED))
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    assert not bench.jobs and not bench.stores.graphs.stored and not bench.stores.keys.owners
    assert bench.settled == [(JOB, JobStatus.FINISHED)], "its state may not be in order either"


@pytest.mark.parametrize("error", [StorageUnavailable("safe mode"), ConfigError("unknown option")])
def test_a_state_that_cannot_be_put_in_order_does_not_run_its_job_again(error: YarnflowError) -> None:
    before = Bench()
    before.submit(JOB, "daily")
    before.stores.ended.put(details(JOB, JobStatus.FINISHED))
    bench = Bench(stores=before.stores)
    bench.settle_error = error
    bench.dispatcher.recover()
    assert not bench.jobs and not bench.stores.graphs.stored


def test_a_leader_that_leads_no_more_clears_nothing_away() -> None:
    before = Bench()
    before.submit(JOB, "daily")
    before.stores.ended.put(details(JOB, JobStatus.FINISHED))
    bench = Bench(stores=before.stores)
    bench.settle_error = LeadershipLost("another master leads")
    with pytest.raises(LeadershipLost):
        bench.dispatcher.recover()
    assert list(bench.stores.graphs.stored) == [JOB]


def test_an_ended_job_that_nobody_can_read_leaves_no_lost_state() -> None:
    before = Bench()
    before.submit(JOB, "daily")
    before.stores.latest.write(LatestState("daily", JOB, "j", "RUNNING", "hdfs://nn/cp/chk-3", 3, 1))
    before.stores.ended.put(details(JOB, JobStatus.FINISHED))
    before.stores.graphs.unreadable.add(JOB)
    bench = Bench(stores=before.stores)
    bench.dispatcher.recover()
    state = bench.stores.latest.states["daily"]
    assert (state.status, state.path) == ("FINISHED", "hdfs://nn/cp/chk-3") and not bench.settled


def test_a_job_that_cannot_be_taken_over_stays_stored() -> None:
    before = Bench()
    before.submit()
    bench = Bench(stores=before.stores)
    bench.refusal = ConfigError("unknown option")
    bench.dispatcher.recover()
    assert not bench.jobs and list(bench.stores.graphs.stored) == [JOB]
    details = bench.dispatcher.job_details(JOB)
    assert details.overview.status is JobStatus.RECOVERY_FAILED and "unknown option" in details.waiting_for


def test_an_end_is_seen_once_it_is_written_down() -> None:
    """Another master would run a job again whose end it does not know."""
    bench = Bench(hold_ends=True)
    bench.submit(JOB, "daily")
    bench.stores.ended.error = ZooKeeperUnavailable("no server answers")
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert bench.dispatcher.job_details(JOB).overview.status is JobStatus.CREATED
    assert list(bench.stores.graphs.stored) == [JOB], "cleared away without a result"
    bench.dispatcher.close("that was all")
    bench.mailbox.run_pending()
    assert not bench.ended.is_set()
    bench.stores.ended.error = None
    bench.clock.advance(ARCHIVE_RETRY_MS)
    bench.mailbox.run_pending()
    assert bench.dispatcher.job_details(JOB).overview.status is JobStatus.FINISHED
    assert not bench.stores.graphs.stored and bench.ended.is_set()
