"""The queries of ``scripts/bench nexmark`` give what DuckDB gives, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.bench.nexmark.generator import Events, make_events
from integration.bench.nexmark.queries import PROGRAMS, QUERIES, Query
from integration.bench.nexmark.reference import Reference
from integration.pyflink.query_jobs import Queries
from yarnflow.api.executor import use_executor
from yarnflow.client.programs.program import load_program, run_main

_EVENTS = 20_000
#: 80 s of event time, so that there are several windows and sessions
_EVENTS_PER_S = 250
#: two micro-batches with events
_FILES = 4
#: their joins, windows and rankings are those of other queries in another order
_DRILLS = ("q4", "q7", "q9", "q11")


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Events:
    return make_events(tmp_path_factory.mktemp("nexmark"), _EVENTS, _EVENTS_PER_S, _FILES)


@pytest.fixture(scope="module")
def reference(events: Events) -> Iterator[Reference]:
    found = Reference(events)
    yield found
    found.close()


@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize(
    "query",
    [
        pytest.param(query, id=query.name, marks=[pytest.mark.drill] * (query.name in _DRILLS))
        for query in QUERIES
    ],
)
def test_query_gives_what_sql_gives(
    query: Query, spark: SparkSession, events: Events, reference: Reference, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    program = load_program(str(PROGRAMS / f"{query.name}.py"), [str(out), str(events.directory)])
    with use_executor(Queries(spark, tmp_path)):
        run_main(program)
    rows = reference.compare(query, out)
    assert rows.is_equal, rows
    assert rows.written > 0
