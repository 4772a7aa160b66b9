"""One target that does not answer holds up no other, and after some failures nobody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.patience import PATIENCE
from yarnflow.errors import CallSuspended, RpcTimeout, RpcUnavailable, YarnflowError
from yarnflow.process.clock import SystemClock
from yarnflow.runtime.bulkheads import (
    FAILURES,
    MAX_WAITING,
    PER_TARGET,
    REFUSED_S,
    Bulkheads,
    Task,
    _Lane,
)
from yarnflow.runtime.mailbox import Effects, Mailbox


class Desk:
    """Bulkheads whose time the test moves, and tasks that the test ends."""

    def __init__(self, max_threads: int = 8, jitter: float = 0.0) -> None:
        self.now_s = 100.0
        self.bulkheads = Bulkheads("desk", max_threads, 2, lambda: self.now_s, lambda: jitter)
        self.refused: list[YarnflowError] = []
        self._changed = threading.Condition()
        self._begun: list[str] = []
        self._ended = 0
        self.release = threading.Event()

    def submit(self, target: str, task: Task) -> None:
        def counted() -> YarnflowError | None:
            with self._changed:
                self._begun.append(target)
                self._changed.notify_all()
            return task()

        self.bulkheads.submit(target, counted, self.refused.append)

    def until(self, event: threading.Event, failure: YarnflowError | None = None) -> Task:
        """A call that ends with the event, or with the test."""

        def task() -> YarnflowError | None:
            while not event.wait(0.01) and not self.release.is_set():
                pass
            return failure

        return task

    def hang(self, target: str) -> None:
        """A call that has no answer before the test lets it time out."""
        self.submit(target, self.until(self.release, RpcTimeout("no answer")))

    def done(self, target: str, failure: YarnflowError | None = None) -> None:
        """A call that is answered at once; returns when what follows from it is done."""
        ended = threading.Event()

        def task() -> YarnflowError | None:
            ended.set()
            return failure

        before = len(self.refused)
        self.submit(target, task)
        if len(self.refused) == before:
            assert ended.wait(PATIENCE.thread_s)
            self.settle(target)

    def settle(self, target: str) -> None:
        """Wait until nothing runs for a target."""
        self._await(target, lambda lane: not lane.running)

    def await_failed(self, target: str) -> None:
        self._await(target, lambda lane: lane.failures > 0)

    def _await(self, target: str, reached: Callable[[_Lane], bool]) -> None:
        end = threading.Event()
        for _ in range(int(PATIENCE.thread_s * 1000)):
            with self.bulkheads._lock:
                if reached(self.bulkheads._lanes[target]):
                    return
            end.wait(0.001)
        raise AssertionError(f"{target} is still called")

    def await_begun(self, target: str, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._begun.count(target) >= count, PATIENCE.thread_s)

    def begun(self, target: str) -> int:
        with self._changed:
            return self._begun.count(target)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.release.set()
    made.bulkheads.close()


def test_a_hanging_target_has_only_its_own_threads(desk: Desk) -> None:
    for _ in range(20):
        desk.hang("tm-1")
    desk.await_begun("tm-1", PER_TARGET)
    for _number in range(20):
        desk.done("tm-2")
    assert desk.begun("tm-1") == PER_TARGET and not desk.refused


def test_many_hanging_targets_leave_threads_to_others(desk: Desk) -> None:
    """Whatever has failed before has a half of the threads, all together."""
    suspects = [f"tm-{number}" for number in range(30)]
    for target in suspects:
        desk.done(target, RpcTimeout("no answer"))
    for target in suspects:
        desk.hang(target)
    for _ in range(20):
        desk.done("healthy")
    assert sum(desk.begun(target) - 1 for target in suspects) == 4, "of eight threads"


def test_one_that_fails_while_its_next_call_waits_is_a_suspect_too(desk: Desk) -> None:
    """It was never heard to fail when that call began to wait."""
    ends = {f"tm-{number}": threading.Event() for number in range(5)}
    for number in range(3):
        desk.hang(f"other-{number}")
    for target, end in ends.items():
        desk.submit(target, desk.until(end, RpcTimeout("no answer")))
        desk.await_begun(target, 1)
    for target, end in ends.items():
        desk.hang(target)  # waits, as there is no thread left
        end.set()
        desk.await_failed(target)
    for _ in range(20):
        desk.done("healthy")
    assert sum(desk.begun(target) - 1 for target in ends) == 4, "of eight threads"


def test_calls_under_way_to_one_that_has_failed_are_those_of_a_suspect(desk: Desk) -> None:
    suspects = [f"tm-{number}" for number in range(4)]
    for target in suspects:
        desk.done(target, RpcTimeout("no answer"))
    ends = {f"new-{number}": threading.Event() for number in range(4)}
    for target, end in ends.items():
        desk.hang(target)
        desk.submit(target, desk.until(end, RpcTimeout("no answer")))
        desk.await_begun(target, 2)
    for target, end in ends.items():
        end.set()
        desk.await_failed(target)
    for target in suspects:
        desk.hang(target)
    for _ in range(20):
        desk.done("healthy")
    assert not any(desk.begun(target) > 1 for target in suspects), "four threads wait for suspects already"


def test_one_that_recovers_is_no_suspect_any_more(desk: Desk) -> None:
    """It was queued behind those that still are."""
    suspects = [f"tm-{number}" for number in range(4)]
    for target in (*suspects, "back"):
        desk.done(target, RpcTimeout("no answer"))
    for target in suspects:
        desk.hang(target)
        desk.await_begun(target, 2)
    desk.submit("back", lambda: None)
    desk.bulkheads.heard_of("back")
    desk.done("healthy")
    desk.await_begun("back", 2)


def test_one_that_is_forgotten_while_it_is_queued_has_no_more_threads_than_others(desk: Desk) -> None:
    others, fails, held = threading.Event(), threading.Event(), threading.Event()
    for _ in range(FAILURES - 1):
        desk.done("tm-1", RpcTimeout("no answer"))
    desk.submit("tm-1", desk.until(fails, RpcTimeout("no answer")))
    for number in range(7):
        desk.submit(f"other-{number}", desk.until(others))
        desk.await_begun(f"other-{number}", 1)
    desk.await_begun("tm-1", FAILURES)
    desk.submit("tm-1", desk.until(held))  # waits for a thread …
    desk.submit("last", desk.until(others))  # … which this one gets
    fails.set()
    desk.await_begun("last", 1)
    assert len(desk.refused) == 1
    desk.bulkheads.heard_of("tm-1")
    desk.bulkheads._sweep_at = 0
    desk.submit("new", desk.until(others))
    assert "tm-1" not in desk.bulkheads._lanes, "as if it had never failed"
    before = desk.begun("tm-1")
    for _ in range(5):
        desk.submit("tm-1", desk.until(held))
    others.set()
    desk.await_begun("tm-1", before + PER_TARGET)
    desk.done("healthy")
    assert desk.begun("tm-1") == before + PER_TARGET
    held.set()


def test_a_hundred_targets_that_hang_at_once_hold_up_nobody() -> None:
    """As many threads as it takes: TaskManagers of a lost rack have never failed before."""
    mailbox, effects = Mailbox("m", SystemClock()), Effects()
    mailbox.start()
    release, done = threading.Event(), threading.Event()

    def ignored(_result: object) -> None: ...

    try:
        for target in (f"tm-{number}" for number in range(100)):
            for _ in range(PER_TARGET + 1):
                effects.perform(
                    mailbox, lambda: release.wait(PATIENCE.thread_s), ignored, ignored, target=target
                )
        effects.perform(mailbox, lambda: None, lambda _: done.set(), ignored, target="healthy")
        assert done.wait(PATIENCE.thread_s)
        again = threading.Event()
        effects.perform(mailbox, lambda: None, lambda _: again.set(), ignored)
        assert again.wait(PATIENCE.thread_s), "what names no target has threads of its own"
    finally:
        release.set()
        effects.close()
        mailbox.stop()


def test_after_failures_in_a_row_work_is_refused_at_once_and_then_tried_by_one(desk: Desk) -> None:
    for _ in range(FAILURES):
        desk.done("tm-1", RpcTimeout("no answer"))
    desk.done("tm-1")
    assert [type(error) for error in desk.refused] == [CallSuspended]
    assert desk.begun("tm-1") == FAILURES
    desk.done("tm-2")
    desk.now_s += REFUSED_S
    for _ in range(5):
        desk.hang("tm-1")
    desk.await_begun("tm-1", FAILURES + 1)
    assert desk.begun("tm-1") == FAILURES + 1, "one is enough to see whether it is back"
    desk.release.set()
    desk.settle("tm-1")
    assert len(desk.refused) == 5 and desk.begun("tm-1") == FAILURES + 1
    desk.now_s += REFUSED_S
    for _ in range(5):
        desk.done("tm-1")
    assert len(desk.refused) == 5


def test_what_waits_for_a_target_that_is_given_up_is_refused(desk: Desk) -> None:
    for _ in range(10):
        desk.hang("tm-1")
    desk.await_begun("tm-1", PER_TARGET)
    desk.release.set()
    desk.settle("tm-1")
    assert desk.begun("tm-1") + len(desk.refused) == 10
    assert desk.begun("tm-1") <= FAILURES + PER_TARGET


def test_only_what_no_answer_came_to_counts(desk: Desk) -> None:
    for _ in range(2 * FAILURES):
        desk.done("tm-1", RpcUnavailable("gone"))
        desk.done("tm-1", YarnflowError("it says no"))
    assert not desk.refused


def test_a_sign_of_life_ends_the_refusals(desk: Desk) -> None:
    """A TaskManager that is started again may have the address of one that was lost."""
    for _ in range(FAILURES):
        desk.done("tm-1", RpcUnavailable("gone"))
    desk.bulkheads.heard_of("tm-1")
    desk.bulkheads.heard_of("never called")
    desk.done("tm-1")
    assert not desk.refused


def test_one_that_lives_is_called_again_and_stays_a_suspect(desk: Desk) -> None:
    """It is heard, and does not hear: one call at a time shows when it does."""
    for _ in range(FAILURES):
        desk.done("tm-1", RpcTimeout("no answer"))
    desk.bulkheads.alive("tm-1")
    desk.bulkheads.alive("never called")
    for _ in range(3):
        desk.hang("tm-1")
    desk.await_begun("tm-1", FAILURES + 1)
    assert desk.begun("tm-1") == FAILURES + 1 and not desk.refused
    desk.release.set()
    desk.settle("tm-1")
    assert len(desk.refused) == 2, "one more failure is enough"
    desk.bulkheads.alive("tm-1")
    desk.done("tm-1")
    assert desk.bulkheads._lanes["tm-1"].failures == 0


def test_too_much_for_one_target_is_refused(desk: Desk) -> None:
    for _ in range(PER_TARGET):
        desk.hang("tm-1")
    desk.await_begun("tm-1", PER_TARGET)
    for _ in range(MAX_WAITING + 3):
        desk.hang("tm-1")
    assert len(desk.refused) == 3 and "wait for tm-1 already" in desk.refused[0].message


def test_all_slots_of_a_large_task_manager_can_be_asked_for_at_once(desk: Desk) -> None:
    for _ in range(1_000):
        desk.hang("tm-1")
    assert not desk.refused


def test_targets_do_not_refuse_all_for_the_same_time() -> None:
    """Else all who wait for them would come back together."""
    until = []
    for jitter in (0.0, 1.0):
        desk = Desk(jitter=jitter)
        for _ in range(FAILURES):
            desk.done("tm-1", RpcTimeout("no answer"))
        until.append(desk.bulkheads._lanes["tm-1"].refused_until_s - desk.now_s)
        desk.bulkheads.close()
    assert until == [REFUSED_S, pytest.approx(REFUSED_S * 1.2)]


def test_targets_that_are_gone_are_forgotten(desk: Desk) -> None:
    for number in range(2_000):
        desk.done(f"tm-{number}")
    assert len(desk.bulkheads._lanes) <= 513
    assert not desk.refused


def test_a_task_that_breaks_gives_its_thread_back(desk: Desk) -> None:
    def breaks() -> YarnflowError | None:
        raise KeyError("bug")

    for _ in range(20):
        desk.submit("tm-1", breaks)
    desk.await_begun("tm-1", 20)
    desk.done("tm-1")


def test_nothing_runs_after_the_end(desk: Desk) -> None:
    desk.bulkheads.close()
    for target in ("tm-1", ""):
        with pytest.raises(RuntimeError):
            desk.submit(target, lambda: None)
