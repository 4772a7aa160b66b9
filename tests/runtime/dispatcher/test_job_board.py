"""Who sees what of a job, and whether everybody has seen its end."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from tests.patience import PATIENCE
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobOverview
from yarnflow.core.states import JobStatus
from yarnflow.errors import JobNotFound
from yarnflow.process.clock import SystemClock
from yarnflow.runtime.dispatcher.job_board import FOLLOWER_PATIENCE_MS, PACE_MS, JobBoard
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
    thread.join(PATIENCE.thread_s)
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
    waiter.join(PATIENCE.thread_s)
    assert outcome == [True]


def test_a_poll_that_waits_is_a_follower() -> None:
    board = JobBoard(SystemClock(), 5)
    board.publish(details())
    poll = threading.Thread(target=lambda: board.await_change(JOB, 1, 30_000))
    poll.start()
    until = time.monotonic() + PATIENCE.thread_s
    while board.await_followers(0) and time.monotonic() < until:
        poll.join(0.001)
    assert not board.await_followers(0)
    board.publish(details(status=JobStatus.CANCELED))
    poll.join(PATIENCE.thread_s)
    assert board.await_followers(0)


def test_nobody_is_waited_for_who_follows_a_job_that_goes_on() -> None:
    board = JobBoard(ManualClock(), 5)
    board.publish(details())
    board.await_change(JOB, 0, 0)
    assert board.await_followers(0, of_ended=True)
    assert not board.await_followers(0)
    board.publish(details(status=JobStatus.FINISHED))
    assert not board.await_followers(0, of_ended=True)


class CountingClock(SystemClock):
    """Counts how often each thread looks at it: a poll does whenever it wakes."""

    def __init__(self) -> None:
        self.looks: Counter[str] = Counter()
        self.looked = threading.Condition()

    def monotonic_ms(self) -> int:
        with self.looked:
            self.looks[threading.current_thread().name] += 1
            self.looked.notify_all()
        return super().monotonic_ms()

    def await_looks(self, name: str, count: int) -> None:
        with self.looked:
            assert self.looked.wait_for(lambda: self.looks[name] >= count, PATIENCE.thread_s)


def test_an_update_of_one_job_wakes_nobody_who_waits_for_another() -> None:
    clock = CountingClock()
    board = JobBoard(clock, 5)
    for job_id in (JOB, OTHER):
        board.publish(details(job_id))
    poll = threading.Thread(target=lambda: board.await_change(JOB, 1, 30_000), name="poll")
    poll.start()
    clock.await_looks("poll", 2)  # once for its deadline; then it waits
    for _ in range(200):
        board.publish(details(OTHER))
    poll.join(0.05)  # time to wake, if anything had woken it
    woken_by_others = clock.looks["poll"] - 2
    board.publish(details(status=JobStatus.CANCELED))
    poll.join(PATIENCE.thread_s)
    assert woken_by_others == 0


def test_a_poll_does_not_end_for_each_of_many_reports() -> None:
    """Versions are given together: as many as come within the pace."""
    clock = ManualClock()
    board = JobBoard(clock, 5)
    board.publish(details())
    assert board.await_change(JOB, 0, 0).version == 1
    board.publish(details())  # wakes whoever waits, and the pace begins
    assert board.await_change(JOB, 1, 0).version == 2, "with no time to wait it gets what there is"
    answers: list[JobDetails] = []
    poll = threading.Thread(target=lambda: answers.append(board.await_change(JOB, 2, 3_600_000)))
    poll.start()
    for _ in range(50):
        board.publish(details())
    poll.join(PACE_MS * 2 / 1000)
    assert not answers, "it ended before the pace allowed it"
    board.publish(details())
    clock.advance(PACE_MS)
    poll.join(PATIENCE.thread_s)
    assert [answer.version for answer in answers] == [53]


def test_a_new_leader_puts_nobody_off_before_it_has_told_something() -> None:
    """Whoever followed the leader before knows a lower version; the pace begins with the first change."""
    clock = ManualClock()
    board = JobBoard(clock, 5, first_version=1 << 32)
    board.publish(details())
    first = (1 << 32) + 1
    for seen_before in (57, 58):
        assert board.await_change(JOB, seen_before, 3_600_000).version == first
    board.publish(details())
    board.publish(details())
    answers: list[JobDetails] = []
    poll = threading.Thread(target=lambda: answers.append(board.await_change(JOB, first, 3_600_000)))
    poll.start()
    poll.join(PACE_MS * 2 / 1000)
    assert not answers, "it ended before the pace allowed it"
    clock.advance(PACE_MS)
    poll.join(PATIENCE.thread_s)
    assert [answer.version for answer in answers] == [first + 2]


def test_reports_within_the_pace_are_seen_without_another_one() -> None:
    board = JobBoard(SystemClock(), 5)
    board.publish(details())
    board.await_change(JOB, 0, 0)
    board.publish(details())
    board.publish(details())  # comes within the pace, and is the last one
    assert board.await_change(JOB, 2, 30_000).version == 3


def test_a_new_status_is_never_put_off() -> None:
    clock = ManualClock()  # the pace never ends
    board = JobBoard(clock, 5)
    board.publish(details())
    board.await_change(JOB, 0, 0)
    board.publish(details())
    board.publish(details(status=JobStatus.CANCELED))
    assert board.await_change(JOB, 2, 3_600_000).overview.status is JobStatus.CANCELED


def test_who_waits_for_a_job_that_is_forgotten_is_told() -> None:
    board = JobBoard(SystemClock(), 1)
    board.publish(details(status=JobStatus.FINISHED))
    failures: list[BaseException] = []

    def wait() -> None:
        with pytest.raises(JobNotFound) as caught:
            board.await_change(JOB, 1, 30_000)
        failures.append(caught.value)

    poll = threading.Thread(target=wait)
    poll.start()
    until = time.monotonic() + PATIENCE.thread_s
    while board.await_followers(0) and time.monotonic() < until:
        poll.join(0.001)
    board.publish(details(OTHER, JobStatus.FINISHED))
    poll.join(PATIENCE.thread_s)
    assert len(failures) == 1


def test_a_job_that_ran_for_long_is_not_forgotten_when_it_ends() -> None:
    board = JobBoard(SystemClock(), 1)
    board.publish(details())
    board.publish(details(OTHER, JobStatus.FINISHED))
    board.publish(details(status=JobStatus.FINISHED))
    assert board.get(JOB).overview.status is JobStatus.FINISHED
    with pytest.raises(JobNotFound):
        board.get(OTHER)
