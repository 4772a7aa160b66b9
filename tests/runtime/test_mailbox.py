"""Order, timers, calls and fatal errors of mailboxes."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import pytest

from tests.patience import PATIENCE
from yarnflow.core.job.context import current_job, job_context
from yarnflow.errors import InternalError, JobNotFound, RpcTimeout
from yarnflow.process.clock import SystemClock
from yarnflow.runtime.mailbox import Effects, Mailbox, Work
from yarnflow.testing.runtime import ManualClock


def test_posts_run_in_order_and_timers_when_due() -> None:
    clock = ManualClock()
    mailbox = Mailbox("m", clock)
    ran: list[str] = []
    mailbox.schedule(100, lambda: ran.append("late"))
    canceled = mailbox.schedule(50, lambda: ran.append("never"))
    mailbox.post(lambda: ran.append("first"))
    mailbox.post(lambda: ran.append("second"))
    canceled.cancel()
    assert mailbox.run_pending() == 2
    clock.advance(99)
    assert mailbox.run_pending() == 0
    clock.advance(1)
    assert mailbox.run_pending() == 1
    assert ran == ["first", "second", "late"]


def test_call_gives_result_and_error_to_the_caller() -> None:
    mailbox = Mailbox("m", SystemClock())
    mailbox.start()
    try:
        assert mailbox.call(lambda: 42, 5_000) == 42

        def fail() -> None:
            raise JobNotFound("no such job")

        with pytest.raises(JobNotFound):
            mailbox.call(fail, 5_000)
        assert mailbox.call(lambda: 1, 5_000) == 1, "the mailbox died of a caller's error"
    finally:
        mailbox.stop()


def test_call_to_a_busy_mailbox_times_out_and_is_not_run_later() -> None:
    mailbox = Mailbox("busy", SystemClock())
    mailbox.start()
    release = threading.Event()
    ran: list[int] = []

    def be_busy() -> None:
        release.wait(PATIENCE.thread_s)

    try:
        mailbox.post(be_busy)
        with pytest.raises(RpcTimeout, match="busy"):
            mailbox.call(lambda: ran.append(1), 10)
        release.set()
        mailbox.call(lambda: None, 5_000)
        assert ran == []
    finally:
        release.set()
        mailbox.stop()


def test_an_escaped_error_is_fatal() -> None:
    seen: list[BaseException] = []
    mailbox = Mailbox("m", ManualClock(), seen.append)
    mailbox.post(lambda: (_ for _ in ()).throw(ZeroDivisionError()))
    mailbox.run_pending()
    assert isinstance(seen[0], ZeroDivisionError)


def test_state_may_only_be_touched_in_the_mailbox() -> None:
    mailbox = Mailbox("m", SystemClock())
    mailbox.start()
    try:
        mailbox.call(mailbox.assert_mailbox_thread, 5_000)
        with pytest.raises(InternalError):
            mailbox.assert_mailbox_thread()
    finally:
        mailbox.stop()


def test_no_effect_is_lost() -> None:
    mailbox, effects = Mailbox("m", SystemClock()), Effects(2)
    mailbox.start()
    done = threading.Semaphore(0)
    results: list[object] = []

    def finished(result: object) -> None:
        results.append(result)
        done.release()

    def bug() -> int:
        raise KeyError("bug")

    try:
        effects.perform(mailbox, lambda: 1, finished, finished)
        effects.perform(mailbox, bug, finished, finished)
        assert done.acquire(timeout=PATIENCE.thread_s) and done.acquire(timeout=PATIENCE.thread_s)
        assert 1 in results
        assert any(isinstance(result, InternalError) for result in results)
    finally:
        effects.close()
        mailbox.stop()


def test_what_hangs_holds_up_only_its_like() -> None:
    """A NameNode that does not answer must not keep slots from being given."""
    mailbox, effects = Mailbox("m", SystemClock()), Effects(1)
    mailbox.start()
    release, done = threading.Event(), threading.Event()
    try:
        effects.perform(
            mailbox, lambda: release.wait(PATIENCE.thread_s), lambda _: None, lambda _: None, Work.STORAGE
        )
        effects.perform(mailbox, lambda: None, lambda _: done.set(), lambda _: None)
        assert done.wait(PATIENCE.thread_s)
    finally:
        release.set()
        effects.close()
        mailbox.stop()


def noted(
    actions: weakref.WeakSet[Callable[[], None]], action: Callable[[], None]
) -> Callable[[], None]:
    actions.add(action)
    return action


def test_canceled_timers_do_not_pile_up() -> None:
    mailbox = Mailbox("m", ManualClock())
    ran: list[int] = []
    mailbox.schedule(5, lambda: ran.append(1))
    actions: weakref.WeakSet[Callable[[], None]] = weakref.WeakSet()
    for _ in range(1_000):
        mailbox.schedule(600_000, noted(actions, lambda: ran.append(2))).cancel()
    gc.collect()
    assert len(actions) < 100, "what is canceled is still held"
    assert mailbox.run_pending() == 0 and ran == []


JOB, OTHER = "ab" * 16, "cd" * 16


def test_the_mailbox_of_a_job_works_for_it_whoever_posts() -> None:
    with job_context(JOB):
        mailbox = Mailbox("job", SystemClock())
    mailbox.start()
    try:
        with job_context(OTHER):
            assert mailbox.call(current_job, 5_000) == JOB
        assert mailbox.call(current_job, 5_000) == JOB
    finally:
        mailbox.stop()


def test_any_other_mailbox_works_for_the_job_of_whoever_posts() -> None:
    clock = ManualClock()
    mailbox = Mailbox("m", clock)
    found: list[str] = []
    with job_context(JOB):
        mailbox.post(lambda: found.append(current_job()))
        # a timer may go on for others
        mailbox.schedule(0, lambda: found.append(current_job()))
    mailbox.post(lambda: found.append(current_job()))
    mailbox.run_pending()
    assert sorted(found) == ["", "", JOB]


def test_effects_and_their_ends_work_for_the_job_that_wanted_them() -> None:
    mailbox, effects = Mailbox("m", SystemClock()), Effects()
    mailbox.start()
    ended, found = threading.Event(), list[str]()

    def end(job_id: str) -> None:
        found.extend((job_id, current_job()))
        ended.set()

    try:
        with job_context(JOB):
            effects.perform(mailbox, current_job, end, lambda error: ended.set(), target="t:1")
        assert ended.wait(PATIENCE.thread_s) and found == [JOB, JOB]
    finally:
        effects.close()
        mailbox.stop()
