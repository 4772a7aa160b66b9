"""Jobs as the program that submitted them sees them: clients, futures, collected elements."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from tests.api.environments import environment
from tests.patience import PATIENCE
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import CompletableFuture, JobClient, JobID, JobStatus
from yarnflow.api.datastream import CloseableIterator
from yarnflow.api.executor import JobExecutionResult, use_executor
from yarnflow.core.ids import JobId
from yarnflow.errors import GraphError, ProgramError, UnsupportedCall
from yarnflow.graph.connectors import sinks
from yarnflow.graph.job_graph import JobGraph


class FakeJob:
    """A job that is over."""

    job_id = JobId("a" * 32)

    def __init__(self) -> None:
        self.cancelled = False
        self.savepoints: list[tuple[str, bool, bool]] = []

    def get_job_status(self) -> JobStatus:
        return JobStatus.FINISHED

    def cancel(self) -> None:
        self.cancelled = True

    def begin_savepoint(
        self, target_dir: str, *, stop: bool = False, drain: bool = False
    ) -> Callable[[], str]:
        self.savepoints.append((target_dir, stop, drain))
        return lambda: f"{target_dir or '/default'}/savepoint-1"

    def get_job_execution_result(self) -> JobExecutionResult:
        return JobExecutionResult(self.job_id, 5)


class FakeElements(Iterator[Any]):
    """Some letters; asked for one more the job would wait for ever."""

    def __init__(self) -> None:
        self.left = list("abc")
        self.closed = 0

    def __next__(self) -> Any:
        if not self.left:
            raise StopIteration
        return self.left.pop(0)

    def close(self) -> None:
        self.closed += 1


class CollectingFake(FakeJob):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[FakeElements] = []

    def collected(self) -> FakeElements:
        self.elements.append(FakeElements())
        return self.elements[-1]


class FakeExecutor:
    def __init__(self, job: FakeJob) -> None:
        self.job = job
        self.graphs: list[JobGraph] = []

    def submit(self, job_graph: JobGraph) -> FakeJob:
        self.graphs.append(job_graph)
        return self.job


def test_job_clients() -> None:
    job = FakeJob()
    client = JobClient(job)
    assert client.get_job_id() == JobID("a" * 32) and client.job_id == "a" * 32
    status = client.get_job_status().result()
    assert status is JobStatus.FINISHED and status.is_terminal_state() and status.is_globally_terminal_state()
    assert client.get_job_execution_result().result().get_net_runtime() == 5
    assert client.cancel().result() is None and job.cancelled
    saved = client.trigger_savepoint("/s")
    assert job.savepoints == [("/s", False, False)], "it begins before anybody asks for its result"
    assert saved.result() == "/s/savepoint-1"
    assert client.stop_with_savepoint(False).result() == "/default/savepoint-1"
    client.stop_with_savepoint(True, "/s")
    assert job.savepoints[1:] == [("", True, False), ("/s", True, True)]
    with pytest.raises(UnsupportedCall, match="accumulators"):
        client.get_accumulators()
    result = JobExecutionResult(JobId("b" * 32), 5)
    assert result.get_all_accumulator_results() == {}
    assert result.get_accumulator_result("n") is None


def test_futures() -> None:
    calls: list[int] = []

    def compute() -> int:
        calls.append(1)
        return 7

    future = CompletableFuture(compute)
    assert str(future) == "CompletableFuture[Not completed]"
    assert (future.result(), future.result(), future.exception(), calls) == (7, 7, None, [1])
    assert future.done() and not future.cancel() and not future.cancelled()
    failed = CompletableFuture(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failed.result()
    assert isinstance(failed.exception(), ZeroDivisionError) and failed.done()


def test_futures_that_are_asked_without_waiting() -> None:
    go_on = threading.Event()
    future = CompletableFuture(lambda: go_on.wait(PATIENCE.thread_s))
    assert not future.done() and future.exception() is None
    go_on.set()
    assert future.result() is True and future.done()


def test_futures_that_are_given_up() -> None:
    go_on = threading.Event()
    future = CompletableFuture(lambda: go_on.wait(PATIENCE.thread_s))
    assert not future.done()
    assert future.cancel() and future.cancelled() and future.done()
    with pytest.raises(CancelledError):
        future.result()
    go_on.set()
    assert isinstance(future.exception(), CancelledError)


def test_an_interrupted_future_can_be_asked_again() -> None:
    answers: list[BaseException] = [KeyboardInterrupt()]

    def compute() -> int:
        if answers:
            raise answers.pop()
        return 7

    future = CompletableFuture(compute)
    with pytest.raises(KeyboardInterrupt):
        future.result()
    assert future.result() == 7


def test_elements_come_back_to_the_program() -> None:
    job = CollectingFake()
    executor = FakeExecutor(job)
    with use_executor(executor):
        stream = environment().from_collection([("a", 1)])
        collected = stream.execute_and_collect("collect")
        assert isinstance(collected, CloseableIterator)
        with collected as found:
            assert list(found) == ["a", "b", "c"]
        assert stream.execute_and_collect(limit=2) == ["a", "b"]
        assert stream.execute_and_collect(limit=4) == ["a", "b", "c"]
    wanted = [sinks.CollectSink(None), sinks.CollectSink(2), sinks.CollectSink(4)]
    assert [graph.nodes[-1].operator for graph in executor.graphs] == wanted
    assert executor.graphs[0].name == "collect"
    assert all(graph.collects for graph in executor.graphs)
    assert [elements.closed for elements in job.elements] == [1, 1, 1]


def test_a_limit_asks_for_no_further_element() -> None:
    job = CollectingFake()
    with use_executor(FakeExecutor(job)):
        environment().from_collection([1]).execute_and_collect(limit=2)
    assert job.elements[0].left == ["c"]


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_limits_that_are_none(limit: Any) -> None:
    with use_executor(FakeExecutor(CollectingFake())), pytest.raises(GraphError, match="1 or more"):
        environment().from_collection([1]).execute_and_collect(limit=limit)


def test_targets_that_bring_nothing_back() -> None:
    with use_executor(FakeExecutor(FakeJob())), pytest.raises(ProgramError, match="do not come back"):
        environment().from_collection([1]).execute_and_collect()


def test_closing_an_iterator_stops_the_job() -> None:
    closed: list[bool] = []
    with CloseableIterator(iter([1]), lambda: closed.append(True)) as found:
        assert found.next() == 1
        with pytest.raises(StopIteration):
            found.next()
    assert closed == [True]


def test_the_default_of_environments_that_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamExecutionEnvironment, "_default_local_parallelism", None)
    first = environment()
    assert first.get_default_local_parallelism() >= 1
    first.set_default_local_parallelism(3)
    assert first.get_default_local_parallelism() == 3 and first.get_parallelism() == 1
    for options_around, parallelism in (
        ({"execution.target": "local"}, 3),
        ({"execution.target": "remote"}, 1),
        ({"execution.target": "local", "parallelism.default": "2"}, 2),
    ):
        with use_executor(FakeExecutor(FakeJob()), options_around):
            assert environment().get_parallelism() == parallelism
