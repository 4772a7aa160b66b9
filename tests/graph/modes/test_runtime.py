"""What ``execution.runtime-mode`` means for a job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.graph import graphs as g
from yarnflow.core.ids import JobId
from yarnflow.errors import UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.codec import job_graph_from_json, job_graph_to_json
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.connectors.rabbitmq import RabbitMqServer, RabbitMqSource
from yarnflow.graph.connectors.sources import RateSource, SequenceSource
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.modes.runtime import endless_sources, runs_as_batch
from yarnflow.graph.plan import plan
from yarnflow.graph.stream_graph import GraphSettings
from yarnflow.graph.type_info import Types


def job(source: o.Operator) -> JobGraph:
    program = g.Program()
    program.chain(source, g.PRINT)
    return create_job_graph(program.build(GraphSettings(job_name="j")), JobId("a" * 32))


ENDLESS = RateSource(1)
QUEUE = RabbitMqSource(RabbitMqServer("h"), "q", MessageFormat(MessageFormatKind.STRING, Types.STRING()))
BOUNDED = SequenceSource(1, 9)


@pytest.mark.parametrize(
    ("source", "mode", "batch"),
    [
        (BOUNDED, "STREAMING", False),
        (BOUNDED, "BATCH", True),
        (BOUNDED, "AUTOMATIC", True),
        (ENDLESS, "STREAMING", False),
        (ENDLESS, "AUTOMATIC", False),
        # tables are read as they are
        (o.SqlOperator("SELECT 1"), "BATCH", True),
    ],
)
def test_modes(source: o.Operator, mode: str, batch: bool) -> None:
    assert runs_as_batch(job(source), mode) is batch


@pytest.mark.parametrize("endless", [ENDLESS, QUEUE])
def test_a_batch_of_an_endless_source_is_refused_by_its_line(endless: o.Operator) -> None:
    graph = job(endless)
    (source,) = endless_sources(graph)
    with pytest.raises(UnsupportedGraph) as raised:
        runs_as_batch(graph, "BATCH")
    assert str(raised.value).startswith(f"{source.origin}: '{source.name}' does not end")
    assert "\n" not in str(raised.value)


def test_a_batch_is_one_on_its_way_and_in_its_plan() -> None:
    graph = replace(job(BOUNDED), batch=True)
    assert job_graph_from_json(job_graph_to_json(graph)) == graph
    assert plan(graph)["type"] == "BATCH" and plan(job(BOUNDED))["type"] == "STREAMING"
