"""State that only grows is named before the job runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.graph import graphs as g
from yarnflow.core.ids import JobId
from yarnflow.graph import operators as o
from yarnflow.graph.connectors.sources import RateSource
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.growing_state import growing_state, reads_for_ever
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.plan import plan_json

QUERY = replace(g.SQL_AGGREGATE, keeps=("GROUP BY a keeps every group for ever", "and a join"))
BOUNDED = RateSource(1, 5)


def graph(*operators: o.Operator) -> JobGraph:
    return create_job_graph(g.straight(operators), JobId("0" * 32))


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        ([g.SOURCE, g.RUNNING], ["job.py:2: 'RunningAggregate': keeps every key (a) for ever"]),
        ([g.SOURCE, g.NATIVE, g.REDUCE], ["job.py:3: 'KeyedReduce': keeps every key (a)"]),
        ([g.SOURCE, QUERY], ["job.py:2: 'SqlOperator': GROUP BY a", "job.py:2: 'SqlOperator': and a join"]),
        ([g.SOURCE, replace(g.KEYED_ELEMENTS, keeps="all")], ["job.py:2: 'ElementOperator': all"]),
        ([g.SOURCE, g.KEYED_ELEMENTS], []),
        ([g.SOURCE, o.DropDuplicates(("a",))], ["job.py:2: 'DropDuplicates': keeps every a for ever"]),
        ([g.SOURCE, g.TIMES, o.DropDuplicates(("a",), 0)], []),
        ([g.SOURCE, g.TIMES, g.WINDOWED], []),
        # one value, however long it runs
        ([g.SOURCE, o.RunningAggregate(o.Key((), ()), ("count(*) AS n",))], []),
        # input that ends takes its state with it
        ([BOUNDED, g.RUNNING], []),
        ([BOUNDED, QUERY], []),
    ],
)
def test_what_is_kept_for_ever(operators: Sequence[o.Operator], found: list[str]) -> None:
    said = [str(one) for one in growing_state(graph(*operators, g.PRINT))]
    assert len(said) == len(found)
    assert all(line.startswith(start) for line, start in zip(said, found, strict=True))


def test_the_plan_names_it() -> None:
    shown = json.loads(plan_json(graph(g.SOURCE, g.RUNNING, g.PRINT)))["growing_state"]
    (one,) = shown
    assert (one["id"], one["operator"], one["origin"]) == (2, "RunningAggregate", "job.py:2")
    assert "call window(…)" in one["why"]


@pytest.mark.parametrize(("source", "for_ever"), [(g.SOURCE, True), (BOUNDED, False)])
def test_what_does_not_end_by_itself(source: o.Operator, for_ever: bool) -> None:
    made = graph(source, g.PRINT)
    assert reads_for_ever(made) is for_ever
    assert not reads_for_ever(replace(made, batch=True))
