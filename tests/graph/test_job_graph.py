"""What a job graph says of itself."""

from __future__ import annotations

import pytest

from tests.graph.test_codec import CLOSURE, OPERATORS, graph
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ProgramKind
from yarnflow.graph import operators as o
from yarnflow.graph.connectors import sinks
from yarnflow.graph.job_graph import JobGraph


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: type(operator).__name__)
def test_only_one_kind_of_sink_calls_functions_in_the_driver(operator: o.Operator) -> None:
    assert graph(operator).runs_code_in_driver is isinstance(operator, sinks.ForeachBatchSink)


def test_a_script_runs_there_as_a_whole() -> None:
    assert JobGraph(JobId("a" * 32), "s", ProgramKind.SCRIPT).runs_code_in_driver
    assert graph(sinks.DiscardSink(), sinks.ForeachBatchSink(CLOSURE)).runs_code_in_driver
