"""Who sees what of a job, and whether everybody has seen its end."""

from __future__ import annotations

import threading
import time

from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobOverview
from yarnflow.core.states import JobStatus
from yarnflow.process.clock import SystemClock
from yarnflow.runtime.dispatcher.job_board import FOLLOWER_PATIENCE_MS, JobBoard
from yarnflow.testing.runtime import ManualClock

JOB, OTHER = JobId("a" * 32), JobId("b" * 32)


def details(job_id: JobId = JOB, status: JobStatus = JobStatus.RUNNING) -> JobDetails:
    return JobDetails(JobOverview(job_id, "j", status, 1, -1), 0)


def test_a_long_poll_sees_the_next_version() -> None:
    board = JobBoard(SystemClock(), 5)
    board.publish(details(status=JobStatus.CREATED))
    seen: list[JobDetails] = []
    thread = threading.Thread(target=lambda: seen.append(board.await_change(JOB, 1, 30_000)))
    thread.start()
    board.publish(details())
    thread.join(30)
    assert seen[0].overview.status is JobStatus.RUNNING
    assert board.await_change(JOB, 99, 0).version == 2


def test_only_new_statuses_are_told() -> None:
    told: list[JobStatus] = []
    board = JobBoard(ManualClock(), 5, lambda made: told.append(made.overview.status))
    for status in (JobStatus.CREATED, JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RUNNING):
        board.publish(details(status=status))
    board.publish(details(OTHER, JobStatus.RUNNING))
    assert told == [JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RUNNING]


def test_who_reads_a_snapshot_is_waited_for_until_he_has_the_last_one() -> None:
    clock = ManualClock()
    board = JobBoard(clock, 5)
    board.publish(details())
    board.await_change(JOB, 0, 0)  # two of them follow
    board.await_change(JOB, 0, 0)
    board.publish(details(status=JobStatus.FINISHED))
    assert not board.await_followers(0)
    board.await_change(JOB, 1, 0)
    assert not board.await_followers(0), "one of them has not seen the end"
    board.await_change(JOB, 1, 0)
    assert board.await_followers(0)


def test_who_does_not_come_back_is_not_waited_for() -> None:
    clock = ManualClock()
    board = JobBoard(clock, 5)
    board.publish(details())
    board.await_change(JOB, 0, 0)
    clock.advance(FOLLOWER_PATIENCE_MS)
    board.await_change(JOB, 0, 0)  # another one
    board.publish(details(status=JobStatus.FINISHED))
    board.await_change(JOB, 1, 0)
    assert board.await_followers(0)


def test_a_job_nobody_follows_is_not_waited_for() -> None:
    board = JobBoard(ManualClock(), 5)
    board.publish(details(status=JobStatus.FINISHED))
    assert board.await_followers(0)


def test_a_newcomer_may_come_while_a_poll_waits() -> None:
    """The end is published, nobody has seen it; the client of a very short job comes a moment later."""
    board = JobBoard(SystemClock(), 5)
    board.publish(details(status=JobStatus.FINISHED))
    outcome: list[bool] = []
    waiter = threading.Thread(target=lambda: outcome.append(board.await_followers(30_000, 30_000)))
    waiter.start()
    waiter.join(0.05)
    assert not outcome, "it did not wait for a newcomer"
    board.await_change(JOB, 0, 0)
    waiter.join(30)
    assert outcome == [True]


def test_a_poll_that_waits_is_a_follower() -> None:
    board = JobBoard(SystemClock(), 5)
    board.publish(details())
    poll = threading.Thread(target=lambda: board.await_change(JOB, 1, 30_000))
    poll.start()
    until = time.monotonic() + 30
    while board.await_followers(0) and time.monotonic() < until:
        poll.join(0.001)
    assert not board.await_followers(0)
    board.publish(details(status=JobStatus.CANCELED))
    poll.join(30)
    assert board.await_followers(0)
