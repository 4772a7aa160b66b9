"""Plans for people."""

import json

import pytest

from tests.graph import graphs as g
from tests.graph.test_codec import OPERATORS
from yarnflow.core.ids import JobId
from yarnflow.graph import operators as o
from yarnflow.graph.chaining import create_job_graph
from yarnflow.graph.plan import compiles_to, describe, duration, guarantee, plan, plan_json
from yarnflow.graph.stream_graph import GraphSettings


def test_plan() -> None:
    program = g.Program()
    *_, sink = program.chain(g.SOURCE, g.PYTHON, g.RUNNING, o.FileSink("/out", "parquet"))
    graph = create_job_graph(program.build(GraphSettings(job_name="j", parallelism=2)), JobId("a" * 32))
    shown = plan(graph)
    assert (shown["jid"], shown["name"], shown["required_slots"]) == ("a" * 32, "j", 2)
    assert shown["slot_sharing_groups"] == {"default": 2}
    assert [node["inputs"] for node in shown["nodes"]] == [
        [],
        [{"num": 0, "id": 1, "ship_strategy": "FORWARD"}],
        [{"num": 0, "id": 2, "ship_strategy": "HASH"}],
        [{"num": 0, "id": 3, "ship_strategy": "FORWARD"}],
    ]
    assert [
        v["compiles_to"] for v in shown["vertices"]
    ] == ["one Arrow round trip (1 function)", "native columns"]
    assert shown["vertices"][1]["inputs"] == [{"id": shown["vertices"][0]["id"], "ship_strategy": "HASH"}]
    assert shown["sinks"][0]["guarantee"] == "exactly-once"
    assert json.loads(plan_json(graph)) == shown


KEYED = o.PythonOperator(o.PythonKind.KEY, g.CLOSURE)
PYTHON_TIMES = o.AssignTimestamps("", 0)


@pytest.mark.parametrize(
    ("operators", "text"),
    [
        ([g.SOURCE, g.NATIVE, g.TIMES], "native columns"),
        ([g.PYTHON, g.PYTHON, KEYED], "one Arrow round trip (3 functions)"),
        ([g.PYTHON, PYTHON_TIMES, KEYED], "one Arrow round trip (2 functions)"),
        ([g.PYTHON, g.NATIVE, g.PYTHON], "2 Arrow round trips (2 functions)"),
        ([g.REDUCE, g.PRINT], "one Arrow round trip (1 function)"),
    ],
)
def test_compiles_to(operators: list[o.Operator], text: str) -> None:
    assert compiles_to(operators) == text


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: type(operator).__name__)
def test_every_operator_is_described_in_one_line(operator: o.Operator) -> None:
    text = describe(operator)
    assert text and "\n" not in text and "None" not in text


def test_every_sink_says_what_it_promises() -> None:
    assert guarantee(o.PrintSink()) == "at-least-once"
    assert "idempotent" in guarantee(o.ForeachBatchSink(g.CLOSURE))
    assert guarantee(o.CollectSink()) == "at-least-once"
    assert guarantee(o.DiscardSink()) == "at-least-once"
    assert len(o.SINKS) == 5


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0 seconds"), (1, "1 millisecond"), (90_000, "90 seconds"), (7_200_000, "2 hours")]
)
def test_duration(ms: int, text: str) -> None:
    assert duration(ms) == text
