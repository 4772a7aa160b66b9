"""What may be asked of jobs, and when a cluster ends."""

from __future__ import annotations

import pytest

from tests.runtime.dispatcher.dispatcher_bench import JOB, OTHER, Bench
from yarnflow.core.checkpoint.messages import CheckpointKind, CheckpointRequest
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import DriverId, JobId, TaskManagerId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.messages import DriverPhase, DriverReport
from yarnflow.core.states import JobStatus
from yarnflow.errors import CheckpointError, JobError, JobNotFound, LeadershipLost, ZooKeeperUnavailable


def test_unknown_jobs() -> None:
    bench = Bench()
    with pytest.raises(JobNotFound):
        bench.dispatcher.job_details(JOB)
    with pytest.raises(JobNotFound):
        bench.dispatcher.cancel_job(JOB)
    with pytest.raises(JobNotFound):
        bench.dispatcher.report(DriverReport(JOB, DriverId("d"), 1, DriverPhase.RUNNING))
    assert bench.dispatcher.offer_slots(JOB, []) == ()


def test_collected_elements_and_the_end_of_their_job() -> None:
    bench = Bench()
    with pytest.raises(JobNotFound):
        bench.dispatcher.await_collected(JOB, "", 0)
    bench.submit()
    job = bench.jobs[JOB]
    assert bench.dispatcher.await_collected(JOB, "", 0) == CollectedPage((), "")
    job.collected = True
    assert bench.dispatcher.await_collected(JOB, "", 0) == CollectedPage((b"x",), "1")
    assert bench.dispatcher.await_collected(JOB, "1", 0) == CollectedPage((), "1")
    job.end(JobStatus.FINISHED)
    assert bench.dispatcher.await_collected(JOB, "1", 0) == CollectedPage((), "1", ended=True)
    bench.mailbox.run_pending()
    assert job.stopped
    assert bench.dispatcher.await_collected(JOB, "1", 0) == CollectedPage((), "1", ended=True)


def test_cancel_of_an_ended_job() -> None:
    bench = Bench()
    bench.submit()
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    with pytest.raises(JobError, match="FINISHED already"):
        bench.dispatcher.cancel_job(JOB)


def test_a_cancel_that_cannot_be_written_down_is_not_begun() -> None:
    bench = Bench()
    bench.submit()
    bench.stores.graphs.error = LeadershipLost("deposed")
    with pytest.raises(LeadershipLost):
        bench.dispatcher.cancel_job(JOB)
    assert not bench.jobs[JOB].canceled


def test_a_cancel_that_may_have_been_written_down_is_begun() -> None:
    bench = Bench()
    bench.submit()
    bench.stores.graphs.error = ZooKeeperUnavailable("no answer")
    with pytest.raises(ZooKeeperUnavailable):
        bench.dispatcher.cancel_job(JOB)
    assert bench.jobs[JOB].canceled


def test_ended_jobs_are_kept_up_to_a_number() -> None:
    bench = Bench()
    for letter in "abcd":
        job_id = JobId(letter * 32)
        bench.submit(job_id)
        bench.jobs[job_id].end(JobStatus.FINISHED)
    assert [overview.job_id[0] for overview in bench.dispatcher.list_jobs()] == ["c", "d"]


@pytest.mark.parametrize("hold_ends", [False, True])
def test_the_end_of_a_job_is_told_once_while_all_is_known_of_it(hold_ends: bool) -> None:
    bench = Bench(hold_ends=hold_ends)
    bench.submit()
    bench.dispatcher.trigger_checkpoint(JOB, CheckpointRequest("r1", CheckpointKind.CHECKPOINT))
    bench.jobs[JOB].end(JobStatus.FAILED)
    assert not bench.over or bench.over[0][1] is JobStatus.FAILED
    for _ in range(2):
        bench.mailbox.run_pending()
    ((job_id, status, checkpoints, description),) = bench.over
    assert (job_id, status, len(checkpoints.history)) == (JOB, JobStatus.FAILED, 1)
    assert description == JobDescription(JOB, "flights")
    assert not bench.stores.graphs.job_ids()


def test_shut_down_waits_for_the_jobs() -> None:
    bench = Bench()
    bench.submit()
    bench.dispatcher.shut_down_cluster()
    bench.mailbox.run_pending()
    assert bench.jobs[JOB].canceled
    assert not bench.ended.is_set()
    with pytest.raises(JobError, match="shutting down"):
        bench.submit(OTHER)
    bench.jobs[JOB].end(JobStatus.CANCELED)
    bench.mailbox.run_pending()
    assert bench.ended.is_set()


def test_closed_ends_with_the_last_job() -> None:
    bench = Bench()
    bench.submit(JOB, "daily")
    bench.dispatcher.close("this cluster is for job j only")
    bench.mailbox.run_pending()
    assert not bench.ended.is_set() and not bench.jobs[JOB].canceled
    with pytest.raises(JobError, match="for job j only"):
        bench.submit(OTHER)
    assert bench.submit(OTHER, "daily") == (JOB, True)
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert bench.ended.is_set()


def test_closed_without_a_job_ends_at_once() -> None:
    bench = Bench()
    bench.dispatcher.close("nothing to do")
    bench.mailbox.run_pending()
    assert bench.ended.is_set()


def test_jobs_hear_what_the_resource_manager_says() -> None:
    bench = Bench()
    bench.submit(JOB)
    bench.dispatcher.resources_wait("queue default is full")
    bench.submit(OTHER)
    bench.dispatcher.task_manager_diagnosed(TaskManagerId("tm"), "out of memory")
    assert bench.jobs[JOB].heard == bench.jobs[OTHER].heard == ["queue default is full", "tm: out of memory"]


def test_nothing_is_decided_while_the_leadership_is_in_doubt() -> None:
    bench = Bench()
    bench.submit()
    bench.leads = False
    bench.dispatcher.suspended()
    for call in (
        lambda: bench.submit(OTHER),
        lambda: bench.dispatcher.cancel_job(JOB),
        lambda: bench.dispatcher.trigger_checkpoint(JOB, CheckpointRequest("r", CheckpointKind.CHECKPOINT)),
        lambda: bench.dispatcher.shut_down_cluster(),
    ):
        with pytest.raises(LeadershipLost, match="in doubt whether this master leads; try again"):
            call()
    assert bench.dispatcher.job_details(JOB).overview.job_id == JOB, "reading is allowed"
    assert not bench.jobs[JOB].canceled and OTHER not in bench.jobs
    bench.dispatcher.resumed()
    bench.leads = True
    bench.submit(OTHER)
    assert bench.jobs[JOB].heard == ["suspended", "resumed"]


def test_checkpoints_are_asked_of_the_job_and_known_after_its_end() -> None:
    bench = Bench()
    bench.submit()
    request = CheckpointRequest("r1", CheckpointKind.CHECKPOINT)
    bench.dispatcher.trigger_checkpoint(JOB, request)
    assert bench.dispatcher.await_checkpoint(JOB, "r1", 10).checkpoint_id == 1
    bench.jobs[JOB].end(JobStatus.FINISHED)
    bench.mailbox.run_pending()
    assert bench.dispatcher.await_checkpoint(JOB, "r1", 10).checkpoint_id == 1
    bench.dispatcher.trigger_checkpoint(JOB, request)
    assert len(bench.dispatcher.job_checkpoints(JOB).history) == 1
    assert bench.dispatcher.job_description(JOB) == JobDescription(JOB, "flights")
    assert bench.dispatcher.job_description(JOB) == JobDescription(JOB, "flights")
    with pytest.raises(CheckpointError, match="is FINISHED"):
        bench.dispatcher.trigger_checkpoint(JOB, CheckpointRequest("r2", CheckpointKind.CHECKPOINT))
    with pytest.raises(JobNotFound):
        bench.dispatcher.job_checkpoints(OTHER)
    with pytest.raises(JobNotFound):
        bench.dispatcher.job_description(OTHER)
    with pytest.raises(JobNotFound):
        bench.dispatcher.job_description(OTHER)
