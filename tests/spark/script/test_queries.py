"""Queries of a script in several sessions, and the end of their starting."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.patience import PATIENCE
from yarnflow.errors import JobCanceled
from yarnflow.spark.script.queries import ScriptQueries


class FakeQuery:
    def __init__(self, name: str) -> None:
        self.id = name
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


class FakeSession:
    """Python's view of a session; several may be of one in the JVM."""

    def __init__(self, java: str) -> None:
        self._jsparkSession = java
        self.streams = SimpleNamespace(active=[])

    def start(self, name: str) -> FakeQuery:
        query = FakeQuery(name)
        self.streams.active.append(query)
        return query


def test_queries_of_every_session_are_known() -> None:
    driver, other = FakeSession("driver"), FakeSession("other")
    prepared: list[FakeSession] = []
    queries = ScriptQueries(driver, prepared.append)
    one = queries.start(FakeSession("driver"), lambda: driver.start("1"))
    two = queries.start(other, lambda: other.start("2"))
    queries.start(FakeSession("other"), lambda: other.start("3"))
    assert prepared == [other], "once, and not the driver's own"
    assert [query.id for query in queries.active()] == ["1", "2", "3"]
    assert queries.get("2") is two and queries.get("4") is None
    queries.stop()
    assert one.stopped and two.stopped


def test_none_starts_after_the_end() -> None:
    driver = FakeSession("driver")
    queries = ScriptQueries(driver, lambda _: None)
    queries.refuse()
    with pytest.raises(JobCanceled, match="no query starts any more"):
        queries.start(driver, lambda: driver.start("1"))
    assert not queries.active()


def test_the_end_waits_for_a_query_that_is_starting() -> None:
    driver = FakeSession("driver")
    queries = ScriptQueries(driver, lambda _: None)
    begun, go_on, failures = threading.Event(), threading.Event(), []

    def slowly() -> Any:
        begun.set()
        go_on.wait(PATIENCE.thread_s)
        return driver.start("1")

    def main() -> None:
        try:
            queries.start(driver, slowly)
        except JobCanceled as error:
            failures.append(error)

    starting = threading.Thread(target=main)
    starting.start()
    assert begun.wait(PATIENCE.thread_s)
    ending = threading.Thread(target=queries.refuse)
    ending.start()
    ending.join(0.1)
    assert ending.is_alive()
    go_on.set()
    ending.join(PATIENCE.thread_s)
    starting.join(PATIENCE.thread_s)
    assert driver.streams.active[0].stopped and failures


def test_a_query_that_cannot_start_is_not_waited_for() -> None:
    driver = FakeSession("driver")
    queries = ScriptQueries(driver, lambda _: None)
    with pytest.raises(ZeroDivisionError):
        queries.start(driver, lambda: 1 // 0)
    queries.refuse()
