"""Elements as a program reads them: their order, the job's end, slow programs, closing."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from tests.client.fakes import FakeConnection, Listener, checkpoint
from tests.patience import PATIENCE
from yarnflow.client import collecting
from yarnflow.client.collecting import PageReader
from yarnflow.client.executor import ClusterExecutor
from yarnflow.client.job_client import ClusterJobClient
from yarnflow.config.options.job import PROGRAM_HEARTBEAT_TIMEOUT_MS
from yarnflow.core.checkpoint.messages import AfterSavepoint, CheckpointKind, CheckpointStatus
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ErrorInfo, JobSubmitted
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    DuplicateJob,
    FileChanged,
    InternalError,
    JobCanceled,
    JobNotFound,
    RpcUnavailable,
    StorageUnavailable,
    UserCodeError,
    YarnflowError,
)
from yarnflow.testing.gateways.dispatcher import FakeDispatcher, details

JOB = JobId("ab" * 16)
S = JobStatus
END = CollectedPage((), "", ended=True)


def page(position: str, *lists: list[Any]) -> CollectedPage:
    return CollectedPage(tuple(pickle.dumps(values) for values in lists), position)


class Bench:
    """A job that collects, and its client."""

    def __init__(self, *pages: CollectedPage, states: tuple[JobStatus, ...] = (S.FINISHED,)) -> None:
        self.dispatcher = FakeDispatcher(states)
        self.dispatcher.pages = list(pages)
        self.connection = FakeConnection(self.dispatcher)
        self.client = ClusterJobClient(
            self.connection, JOB, "flights", Listener(), timeout_ms=10_000
        )


def test_elements_come_in_order_and_each_page_is_acknowledged() -> None:
    bench = Bench(page("1", [1, 2], [], [3]), page("2", ["four"]), END)
    assert list(bench.client.collected()) == [1, 2, 3, "four"]
    assert bench.dispatcher.positions == ["", "1", "2"]
    assert not bench.dispatcher.cancelled


def test_after_the_end_there_is_nothing() -> None:
    found = Bench(page("1", [None]), END).client.collected()
    assert next(found) is None
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(found)
    found.close()


def test_the_jobs_error_comes_out_of_the_iterator() -> None:
    bench = Bench(page("1", [1]), END, states=(S.FAILED,))
    bench.dispatcher.error = ErrorInfo("USER_CODE", "ValueError: bad row", "Traceback x")
    found = bench.client.collected()
    assert next(found) == 1
    with pytest.raises(UserCodeError, match="bad row"):
        next(found)
    found.close()
    assert not bench.dispatcher.cancelled and not bench.client.left


def test_somebody_else_cancels_the_job() -> None:
    with pytest.raises(JobCanceled):
        list(Bench(END, states=(S.CANCELED,)).client.collected())


def test_a_cluster_that_ends_with_its_job() -> None:
    bench = Bench(page("1", [1]), states=(S.FINISHED,))
    calls: list[str] = []

    def before(method: str) -> None:
        calls.append(method)
        if calls.count("await_collected") > 1:
            bench.connection.left = details(JOB, 5, S.FINISHED)
            raise RpcUnavailable("nobody there")

    bench.dispatcher.before = before
    assert list(bench.client.collected()) == [1]


@pytest.mark.parametrize("error", [RpcUnavailable("away"), StorageUnavailable("safe mode")])
def test_what_passes_is_waited_for(monkeypatch: pytest.MonkeyPatch, error: YarnflowError) -> None:
    monkeypatch.setattr(collecting, "_RETRY_S", 0.0)
    bench = Bench(page("1", [1]), page("2", [2]), END)
    errors: Iterator[YarnflowError | None] = iter([None, error, error, None, None])

    def before(method: str) -> None:
        found = next(errors) if method == "await_collected" else None
        if found is not None:
            raise found

    bench.dispatcher.before = before
    assert list(bench.client.collected()) == [1, 2]
    assert bench.dispatcher.positions == ["", "1", "2"]


@pytest.mark.parametrize("error", [FileChanged("not the driver's"), JobNotFound("no job")])
def test_what_does_not_pass_is_raised(error: YarnflowError) -> None:
    bench = Bench()

    def before(method: str) -> None:
        if method == "await_collected":
            raise error

    bench.dispatcher.before = before
    found = bench.client.collected()
    with pytest.raises(type(error)):
        next(found)
    # nobody reads the rest
    found.close()
    assert bench.dispatcher.cancelled == [JOB]


def broken(*_: object) -> None:
    raise ValueError("cannot be")


def test_a_call_that_ends_in_a_bug() -> None:
    bench = Bench(page("1", [1]))
    methods: list[str] = []

    def before(method: str) -> None:
        methods.append(method)
        if method == "await_collected" and methods.count(method) > 1:
            broken()

    bench.dispatcher.before = before
    found = bench.client.collected()
    assert next(found) == 1
    bug(found)
    found.close()
    assert bench.dispatcher.cancelled == [JOB]


def test_an_answer_that_is_missing_for_an_unknown_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.dispatcher.down = RpcUnavailable("nobody there")
    monkeypatch.setattr(bench.connection, "final_details", broken)
    bug(bench.client.collected())


def bug(found: Iterator[object]) -> None:
    """The next element cannot be had; asked in another thread, as it may never answer."""
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            next(found)
        except InternalError as error:
            errors.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE.thread_s)
    assert [str(error.__cause__) for error in errors] == ["cannot be"]
    assert f"job {JOB} cannot be read any more: ValueError: cannot be" in str(errors[0])


def test_a_cluster_that_is_lost() -> None:
    bench = Bench()
    bench.connection.lost = bench.dispatcher.down = RpcUnavailable("the cluster has failed")
    found = bench.client.collected()
    with pytest.raises(RpcUnavailable, match="has failed"):
        next(found)
    found.close()


def test_closing_cancels_a_job_that_runs_and_waits_for_its_end() -> None:
    bench = Bench(page("1", [1, 2]), states=(S.RUNNING,))
    found = bench.client.collected()
    assert next(found) == 1
    found.close()
    found.close()
    assert bench.dispatcher.cancelled == [JOB]
    ended = bench.client.ended
    assert ended is not None and ended.overview.status is S.CANCELED
    with pytest.raises(StopIteration):
        next(found)


def test_closing_while_another_thread_waits() -> None:
    bench = Bench(states=(S.RUNNING,))
    found = bench.client.collected()
    left: list[object] = []
    waiting = threading.Thread(target=lambda: left.extend(found))
    waiting.start()
    found.close()
    waiting.join(PATIENCE.thread_s)
    assert not waiting.is_alive() and not left


class Fragile:
    """Cannot be made again."""

    def __setstate__(self, state: object) -> None:
        raise KeyError("wing")


def fragile() -> Fragile:
    made = Fragile()
    made.__dict__["color"] = "red"
    return made


class TestElementsThatCannotBeUnpickled:
    def ends(self, bad: bytes, message: str) -> None:
        good = pickle.dumps([1, 2])
        bench = Bench(CollectedPage((good, bad, good), "1"), page("2", [3]), states=(S.RUNNING,))
        found = bench.client.collected()
        assert [next(found), next(found)] == [1, 2], "what comes before them is good"
        with pytest.raises(UserCodeError, match=message):
            next(found)
        for _ in range(3):
            assert list(found) == [], "elements were left out"
        found.close()
        assert bench.dispatcher.cancelled == [JOB]

    def test_their_class_is_not_there(self) -> None:
        self.ends(b"cplanes.wings\nFlap\n.", r"there is no planes\.wings\.Flap .*ModuleNotFoundError")
        self.ends(f"c{__name__}\nFlap\n.".encode(), rf"there is no {__name__}\.Flap .*AttributeError")

    def test_their_class_refuses(self) -> None:
        self.ends(pickle.dumps([0, fragile()]), rf"made of .*{__name__}\.Fragile .*KeyError: 'wing'")

    def test_they_are_damaged(self) -> None:
        self.ends(pickle.dumps([0])[:-2], "plain values")

    def test_an_interrupt_leaves_nothing_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        interrupts = [True]

        def load(payload: bytes) -> list[object]:
            if interrupts:
                interrupts.pop()
                raise KeyboardInterrupt
            return list(pickle.loads(payload))  # noqa: S301

        monkeypatch.setattr(collecting, "_unpickled", load)
        found = Bench(page("1", [1], [2]), END).client.collected()
        with pytest.raises(KeyboardInterrupt):
            next(found)
        assert list(found) == [1, 2]


class TestSlowPrograms:
    def test_a_job_cannot_be_told_to_expect_them_more_often_than_they_call(self) -> None:
        shortest_ms = int(3 * 1000 * collecting._PRESENT_S)
        option = PROGRAM_HEARTBEAT_TIMEOUT_MS
        assert option.parse(f"{shortest_ms} ms") == shortest_ms
        with pytest.raises(ValueError, match="30 s or more"):
            option.parse(f"{shortest_ms - 1} ms")

    def test_no_more_than_two_pages_are_read_ahead_and_the_job_hears_of_the_program(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(collecting, "_PRESENT_S", 0.01)
        bench = Bench(*(page(str(number), [number]) for number in range(1, 6)), END)
        heard = threading.Semaphore(0)
        bench.dispatcher.before = lambda method: heard.release()
        found = bench.client.collected()
        # three pages, one of them without a place, and then only signs of life
        for _ in range(8):
            assert heard.acquire(timeout=PATIENCE.thread_s)
        assert len(bench.dispatcher.pages) == 3
        assert bench.dispatcher.positions[:3] == ["", "1", "2"]
        assert set(bench.dispatcher.positions[3:]) == {"2"}
        assert list(found) == [1, 2, 3, 4, 5]

    def test_an_iterator_that_nobody_holds_reads_no_more(self) -> None:
        bench = Bench(page("1", [1]), states=(S.RUNNING,))
        reader = PageReader(bench.connection, JOB, 1_000)
        found = collecting.CollectedElements(reader, bench.client.await_result, lambda: None)
        assert next(found) == 1
        gone = weakref.ref(found)
        del found
        gc.collect()
        assert gone() is None
        # or it would wait for the job's end
        assert reader.next_page() is None
        bench.dispatcher.cancel_job(JOB)


class TestPrograms:
    """What the command does when the program has ended."""

    def executor(self, bench: Bench) -> ClusterExecutor:
        return ClusterExecutor(bench.connection, {}, Listener())

    def test_an_open_iterator_is_closed(self) -> None:
        bench = Bench(page("1", [1, 2]), states=(S.RUNNING,))
        executor = self.executor(bench)
        client = executor.watch(JobSubmitted(JOB), "flights")
        found = client.collected()
        assert next(found) == 1
        executor.await_all()
        assert bench.dispatcher.cancelled == [JOB]

    def test_so_is_one_that_the_program_has_dropped(self) -> None:
        bench = Bench(states=(S.RUNNING,))
        executor = self.executor(bench)
        executor.watch(JobSubmitted(JOB), "flights").collected()
        gc.collect()
        executor.await_all()
        assert bench.dispatcher.cancelled == [JOB]

    def test_a_failed_job_fails_the_command_although_its_error_was_caught(self) -> None:
        bench = Bench(END, states=(S.FAILED,))
        bench.dispatcher.error = ErrorInfo("USER_CODE", "ValueError: bad row", "Traceback x")
        executor = self.executor(bench)
        found = executor.watch(JobSubmitted(JOB), "flights").collected()
        with pytest.raises(UserCodeError):
            next(found)
        found.close()
        with pytest.raises(UserCodeError):
            executor.await_all()

    def test_the_elements_of_another_programs_job_are_not_to_be_had(self) -> None:
        bench = Bench()
        client = self.executor(bench).watch(JobSubmitted(JOB, attached_to_existing=True), "flights")
        with pytest.raises(DuplicateJob, match="yarnflow cancel.*--on-existing replace"):
            client.collected()


@pytest.mark.parametrize(
    ("stop", "drain", "after"),
    [
        (False, False, AfterSavepoint.CONTINUE),
        (True, False, AfterSavepoint.STOP),
        (True, True, AfterSavepoint.DRAIN),
    ],
)
def test_savepoints(stop: bool, drain: bool, after: AfterSavepoint) -> None:
    bench = Bench()
    bench.dispatcher.outcomes = [
        checkpoint(1, CheckpointStatus.IN_PROGRESS, CheckpointKind.SAVEPOINT),
        checkpoint(1, kind=CheckpointKind.SAVEPOINT, path="file:///s/savepoint-1"),
    ]
    assert bench.client.begin_savepoint("/s", stop=stop, drain=drain)() == "file:///s/savepoint-1"
    (job_id, request), *more = bench.dispatcher.requests
    assert not more and job_id == JOB and request.kind is CheckpointKind.SAVEPOINT
    assert (request.target_dir, request.after) == ("file:///s", after)
