"""Operators on elements in graphs: what is chained, validated, planned and remembered."""

import pytest

from tests.graph import graphs as g
from yarnflow.core.ids import JobId
from yarnflow.errors import UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.connectors import sources
from yarnflow.graph.element_schema import element_schema
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import ElementKind
from yarnflow.graph.plan import plan
from yarnflow.graph.schema import Schema
from yarnflow.graph.stream_graph import GraphSettings, Input, Transformation
from yarnflow.graph.type_info import PICKLED

ID = JobId("a" * 32)
TIMESTAMPS = o.ElementOperator(ElementKind.TIMESTAMPS, g.CLOSURE, stateful=True)
PICKLES = element_schema(PICKLED)


def elements(operator: o.Operator) -> Transformation:
    """A transformation into pickled elements, to be given inputs."""
    return Transformation("Elements", "process", "job.py:9", lambda schemas: (operator, PICKLES))


def test_stateless_operators_are_chained_and_keyed_ones_are_not() -> None:
    program = g.Program()
    source = program.add(g.SOURCE)
    mapped = program.add(g.ELEMENTS, program.add(g.ELEMENTS, source))
    keyed = program.add(g.KEYED_ELEMENTS, mapped, strategy=ShipStrategy.HASH)
    late = program.add(g.LATE, keyed)
    program.add(g.PRINT, late)
    program.add(g.PRINT, keyed)
    graph = create_job_graph(program.build(), ID)
    assert [vertex.chain for vertex in graph.vertices] == [(1, 2, 3), (4, 5, 6, 7)]
    assert [edge.ship_strategy for edge in graph.edges] == [ShipStrategy.HASH]
    assert [vertex["compiles_to"] for vertex in plan(graph)["vertices"]] == [
        "one Arrow round trip (2 functions)", "one Arrow round trip (1 function)"
    ]  # fmt: skip


def test_what_passes_elements_on_runs_where_they_are() -> None:
    program = g.Program()
    source = program.add(g.SOURCE)
    source.parallelism = 3
    keyed = program.add(g.KEYED_ELEMENTS, source, strategy=ShipStrategy.HASH)
    keyed.parallelism = 2
    late = program.add(g.LATE, keyed)
    program.add(g.PRINT, late)
    parted = program.add(g.PARTITION, source, strategy=ShipStrategy.CUSTOM)
    program.add(g.PRINT, parted)
    graph = program.build(GraphSettings(parallelism=5))
    nodes = list(graph.nodes.values())
    assert [node.parallelism for node in nodes] == [3, 2, 2, 5, 3, 5]
    strategies = [strategy for node in nodes for _, strategy in node.inputs]
    assert [strategy.value for strategy in strategies] == [
        "HASH", "FORWARD", "REBALANCE", "CUSTOM", "FORWARD"
    ]  # fmt: skip


def test_inputs_keep_their_own_strategies() -> None:
    program = g.Program()
    source = program.add(g.SOURCE)
    both = o.ElementOperator(
        ElementKind.BROADCAST_PROCESS, g.CLOSURE, (o.ElementInput(), o.ElementInput(broadcast=True)), True
    )
    joined = program.add(both, source, source)
    joined.inputs = (Input(source), Input(source, ShipStrategy.BROADCAST))
    program.add(g.PRINT, joined)
    graph = create_job_graph(program.build(), ID)
    assert graph.nodes[1].strategies == (ShipStrategy.FORWARD, ShipStrategy.BROADCAST)
    shown = [given["ship_strategy"] for given in plan(graph)["nodes"][1]["inputs"]]
    assert shown == ["FORWARD", "BROADCAST"]


def test_forward_that_was_asked_for() -> None:
    program = g.Program()
    source = program.add(g.SOURCE)
    mapped = program.add(g.ELEMENTS, source)
    mapped.inputs = (Input(source, pinned=True),)
    program.add(g.PRINT, mapped)
    assert program.build().nodes[2].inputs == ((1, ShipStrategy.FORWARD),)
    mapped.parallelism = 2
    with pytest.raises(UnsupportedGraph, match=r"^job.py:2: .*there are 1 and 2 subtasks"):
        program.build()


def test_expressions_cannot_follow_a_side_output() -> None:
    program = g.Program()
    aside = program.add(g.LATE, program.add(g.ELEMENTS, program.add(g.SOURCE)))
    program.add(g.PRINT, program.add(g.NATIVE, aside))
    with pytest.raises(UnsupportedGraph, match=r"cannot follow 'SideOutput' \(job.py:3\); .* map\(…\)"):
        program.build()


def test_side_outputs_are_of_operators_on_elements() -> None:
    program = g.Program()
    program.add(g.PRINT, program.add(g.LATE, program.add(g.PYTHON, program.add(g.SOURCE))))
    with pytest.raises(UnsupportedGraph, match=r"^job.py:3: .*\(job.py:2\) has no side output 'late'"):
        program.build()


def test_uids_can_be_asked_for() -> None:
    program = g.Program()
    program.chain(g.SOURCE, g.PRINT)
    program.transformations[0].uid = "source"
    with pytest.raises(UnsupportedGraph, match=r"^job.py:2: .*has no uid"):
        program.build(GraphSettings(auto_uids=False))


def test_hashes_that_were_given() -> None:
    program = g.Program()
    source, _ = program.chain(g.SOURCE, g.PRINT)
    source.uid_hash = "0123456789abcdef" * 2
    graph = create_job_graph(program.build(), ID)
    assert graph.nodes[0].operator_hash == source.uid_hash


@pytest.mark.parametrize(
    "operators",
    [
        (g.SOURCE, g.KEYED_ELEMENTS, g.KEYED_ELEMENTS, g.PRINT),
        (g.SOURCE, TIMESTAMPS, g.KEYED_ELEMENTS, TIMESTAMPS, g.PRINT),
        (g.SOURCE, g.TIMES, g.NATIVE, g.PYTHON, g.LOOKUP, g.KEYED_ELEMENTS, g.PRINT),
    ],
)
def test_combinations_that_are_possible(operators: tuple[o.Operator, ...]) -> None:
    assert g.straight(operators).nodes


@pytest.mark.parametrize("function", [g.ELEMENTS, g.KEYED_ELEMENTS, TIMESTAMPS])
@pytest.mark.parametrize(
    "before",
    [(g.RUNNING,), (g.REDUCE,), (g.SQL_AGGREGATE,), (g.TIMES, g.WINDOWED), (o.DropDuplicates(("a",)),)],
)
def test_functions_on_elements_behind_state_of_columns(
    before: tuple[o.Operator, ...], function: o.Operator
) -> None:
    """Both calls are named when the job is submitted; one batch has no state."""
    operators = (sources.SequenceSource(1, 9), *before, g.NATIVE, function, g.PRINT)
    line, last = len(operators) - 1, len(before) + 1
    with pytest.raises(UnsupportedGraph) as caught:
        g.straight(operators)
    text = str(caught.value)
    assert text.startswith(f"job.py:{line}: ") and f" cannot follow job.py:{last}: " in text
    assert ("give it an output_type as DDL text" in text) is (function is g.ELEMENTS)
    program = g.Program()
    program.chain(*operators)
    for mode in ("BATCH", "AUTOMATIC"):
        assert program.build(GraphSettings(configuration={"execution.runtime-mode": mode})).nodes


def test_plans_say_what_functions_get() -> None:
    program = g.Program()
    source = program.add(g.SOURCE)
    made = elements(g.KEYED_ELEMENTS)
    made.inputs, made.description = (Input(source, ShipStrategy.HASH),), "counts per user"
    program.transformations.append(made)
    program.add(g.PRINT, made, define=lambda schemas: (g.PRINT, schemas[0]))
    found = plan(create_job_graph(program.build(), ID))["nodes"]
    assert [node["element_type"] for node in found] == [
        None, "PickledByteArrayTypeInfo", "PickledByteArrayTypeInfo"
    ]  # fmt: skip
    assert found[1]["description"] == "counts per user" and found[1]["output"] == []


def test_parameters_of_functions_travel() -> None:
    program = g.Program()
    program.chain(g.SOURCE, g.PRINT)
    graph = create_job_graph(program.build(GraphSettings(job_parameters={"limit": "5"})), ID)
    assert graph.job_parameters == {"limit": "5"}
    assert graph.nodes[0].output_schema == Schema(g.SCHEMA.fields)
