"""When queries had nothing to do, by what Spark tells of them."""

from __future__ import annotations

import json
import threading
import time

import pytest

from tests.patience import PATIENCE
from yarnflow.core.checkpoint.messages import QueryPosition
from yarnflow.core.messages import IdleQueries
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.progress.idleness import Idleness

UNKNOWN = IdleQueries()


def position(name: str, batch_id: int) -> QueryPosition:
    return QueryPosition(name, batch_id, f"/{name}")


class Told:
    """What is heard of queries, whose logs are at batch 40."""

    def __init__(self) -> None:
        self.now_ms = 100_000
        self.idleness = Idleness(lambda: self.now_ms)
        self.idleness.use_positions(self.look)
        #: query id and name of each question
        self.asked: list[tuple[str, str]] = []
        self.found: QueryPosition | Exception | None = position("a", 40)
        self.may_look = threading.Event()
        self.may_look.set()

    def look(self, query_id: str, name: str) -> QueryPosition | None:
        self.asked.append((query_id, name))
        assert self.may_look.wait(PATIENCE.thread_s)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def start(self, *names: str, run: str = "1") -> None:
        for name in names:
            self.idleness.started(f"id-{name}", run, name)

    def commit(self, *names: str, run: str = "1") -> None:
        for name in names:
            self.idleness.committed(f"id-{name}", run)

    def idle(self, name: str, ago_ms: int = 0, run: str = "1") -> None:
        """Until what is read then is known."""
        self.idleness.idled(f"id-{name}", run, ago_ms)
        for thread in threading.enumerate():
            if thread.name == "query-position" and self.may_look.is_set():
                thread.join(PATIENCE.thread_s)

    def end(self, name: str, run: str = "1") -> None:
        self.idleness.ended(f"id-{name}", run)

    def report(self) -> IdleQueries:
        return self.idleness.told()


@pytest.fixture
def told() -> Told:
    return Told()


def test_nothing_is_known_before_queries_have_started(told: Told) -> None:
    told.idle("a")
    assert (told.report(), told.asked) == (UNKNOWN, [])


def test_all_queries_must_have_had_nothing_to_do(told: Told) -> None:
    told.start("a", "b")
    told.commit("a", "b")
    told.idle("a", 5_000)
    assert told.report() == UNKNOWN
    told.idle("b", 10_000)
    assert told.report() == IdleQueries(10_000)
    told.now_ms += 1_000
    told.commit("a")
    assert told.report() == IdleQueries(11_000), "a batch since then changes nothing of that"
    assert told.asked == [], "they say themselves where they are"


def test_where_a_query_is_that_was_started_again_is_read_once(told: Told) -> None:
    told.start("a")
    told.idle("a")
    told.idle("a")
    assert told.report() == IdleQueries(0, (position("a", 40),))
    assert told.asked == [("id-a", "a")]
    told.commit("a")
    assert told.report() == IdleQueries(0)
    # in between it has done a batch of which it has not told
    told.found = position("a", 42)
    told.start("a", run="2")
    assert told.report() == UNKNOWN
    told.idle("a", run="2")
    assert told.report().positions == (position("a", 42),)


def test_positions_are_not_told_while_another_query_is_in_its_first_batch(told: Told) -> None:
    """A checkpoint would say that the job has begun well."""
    told.start("a", "b")
    told.idle("a")
    assert told.report() == UNKNOWN
    told.commit("b")
    assert told.report() == IdleQueries(-1, (position("a", 40),))


def test_reports_do_not_wait_for_what_is_read(told: Told) -> None:
    told.may_look.clear()
    told.start("a")
    told.idle("a")
    told.idle("a")
    assert told.report() == UNKNOWN
    told.may_look.set()
    told.idle("a")
    assert told.report() == IdleQueries(0, (position("a", 40),))
    assert len(told.asked) == 1


@pytest.mark.parametrize("found", [None, OSError("HDFS does not answer\nat x")])
def test_what_cannot_be_read_is_read_again(
    told: Told, found: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    told.found = found
    told.start("a")
    told.idle("a")
    assert told.report() == UNKNOWN
    said = ["Where query a is cannot be read now: HDFS does not answer"] if found else []
    assert caplog.messages == said
    told.found = position("a", 40)
    told.idle("a")
    assert told.report() == IdleQueries(0, (position("a", 40),))


def test_a_query_that_has_never_committed_is_nowhere(told: Told) -> None:
    told.found = position("a", -1)
    told.start("a")
    told.idle("a")
    assert told.report() == IdleQueries(0)


def test_a_query_that_has_ended_has_nothing_to_do_any_more(told: Told) -> None:
    told.start("a", "b")
    told.idle("a", 10_000)
    told.end("b")
    assert told.report().ago_ms == 10_000
    told.end("a")
    assert told.report() == IdleQueries(0)
    told.start("a", run="2")
    assert told.report() == UNKNOWN


def test_what_comes_late_of_an_earlier_run_is_not_of_the_next(told: Told) -> None:
    told.start("a")
    told.start("a", run="2")
    told.end("a")
    told.idle("a")
    told.commit("a")
    assert told.report() == UNKNOWN
    told.idle("a", run="2")
    assert told.report() == IdleQueries(0, (position("a", 40),))


def test_a_new_attempt_knows_nothing(told: Told) -> None:
    told.start("a")
    told.idle("a")
    told.idleness.new_attempt()
    assert told.report() == UNKNOWN
    told.end("a")
    assert told.report() == UNKNOWN


def test_a_collector_tells_of_what_spark_says() -> None:
    collector = ProgressCollector()
    collector.started("id", "run", "words")
    collector.progressed(json.dumps({"id": "id", "runId": "run", "name": "words", "batchId": 0}))
    now_s = time.time()
    collector.idled("id", "run", time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now_s - 3_600)))
    assert 3_600_000 <= collector.idleness.told().ago_ms < 7_200_000
    collector.started("id", "next", "words")
    collector.terminated("id", "run", "")
    assert collector.idleness.told() == UNKNOWN
    collector.terminated("id", "next", "boom")
    assert collector.idleness.told() == UNKNOWN, "what has failed has not done what there was"
    collector.terminated("id", "next", "")
    assert collector.idleness.told().ago_ms == 0
