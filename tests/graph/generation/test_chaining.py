"""Chains, vertices and hashes."""

import re

import pytest

from tests.graph import graphs as g
from yarnflow.core.ids import JobId
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.job_graph import JobGraph, ShipStrategy
from yarnflow.graph.stream_graph import ChainingStrategy, GraphSettings, Transformation

JOB_ID = JobId("a" * 32)


def job(program: g.Program, settings: GraphSettings = GraphSettings()) -> JobGraph:
    return create_job_graph(program.build(settings), JOB_ID)


def chains(program: g.Program, settings: GraphSettings = GraphSettings()) -> list[tuple[int, ...]]:
    return [vertex.chain for vertex in job(program, settings).vertices]


def line() -> tuple[g.Program, list[Transformation]]:
    program = g.Program()
    return program, program.chain(g.SOURCE, g.NATIVE, g.PYTHON, g.PRINT)


def test_forward_neighbours_chain() -> None:
    program, _ = line()
    graph = job(program)
    assert [v.chain for v in graph.vertices] == [(1, 2, 3, 4)]
    assert graph.vertices[0].name == "RateSource -> SelectOperator -> PythonOperator -> PrintSink"
    assert graph.edges == ()
    assert graph.vertices[0].vertex_id == graph.nodes[0].operator_hash


def test_strategies() -> None:
    program, made = line()
    made[2].chaining = ChainingStrategy.HEAD
    assert chains(program) == [(1, 2), (3, 4)]
    made[2].chaining = ChainingStrategy.NEVER
    assert chains(program) == [(1, 2), (3,), (4,)]
    made[2].chaining = ChainingStrategy.ALWAYS
    assert chains(program, GraphSettings(chaining=False)) == [(1,), (2,), (3,), (4,)]


def test_another_parallelism_breaks_the_chain_and_rebalances() -> None:
    program, made = line()
    made[2].parallelism = 3
    graph = job(program, GraphSettings(parallelism=2))
    assert [v.chain for v in graph.vertices] == [(1, 2), (3,), (4,)]
    assert [e.ship_strategy for e in graph.edges] == [ShipStrategy.REBALANCE, ShipStrategy.REBALANCE]
    assert graph.required_slots() == 3


def test_another_slot_sharing_group_breaks_the_chain_and_adds_slots() -> None:
    program, made = line()
    made[2].slot_sharing_group = "python"
    graph = job(program, GraphSettings(parallelism=2))
    assert [
        (v.chain, v.slot_sharing_group) for v in graph.vertices
    ] == [((1, 2), "default"), ((3, 4), "python")]
    assert [e.ship_strategy for e in graph.edges] == [ShipStrategy.FORWARD]
    assert graph.required_slots() == 4


def test_hash_edges_and_explicit_rebalance_break_the_chain() -> None:
    program = g.Program()
    running = program.chain(g.SOURCE, g.RUNNING)[-1]
    program.add(g.PRINT, running, strategy=ShipStrategy.REBALANCE)
    graph = job(program)
    assert [v.chain for v in graph.vertices] == [(1,), (2,), (3,)]
    assert [e.ship_strategy for e in graph.edges] == [ShipStrategy.HASH, ShipStrategy.REBALANCE]


def test_several_inputs_never_chain() -> None:
    program = g.Program()
    union = program.add(g.UNION, program.add(g.SOURCE), program.add(g.SOURCE))
    program.add(g.PRINT, union)
    graph = job(program)
    assert [v.chain for v in graph.vertices] == [(1,), (2,), (3, 4)]
    assert len(graph.edges) == 2


def test_branches_share_a_chain() -> None:
    program = g.Program()
    source = program.add(g.SOURCE)
    program.add(g.PRINT, program.add(g.NATIVE, source))
    program.add(g.PRINT, source)
    graph = job(program)
    assert [v.chain for v in graph.vertices] == [(1, 2, 3, 4)]
    assert graph.vertices[0].name == "RateSource -> (SelectOperator -> PrintSink, PrintSink)"


def test_a_vertexs_maximum_is_the_least_of_its_chain() -> None:
    program, made = line()
    made[2].max_parallelism = 5
    assert job(program).vertices[0].max_parallelism == 5


def test_hashes_are_stable_distinct_and_32_hex_digits() -> None:
    first, second = (job(line()[0]) for _ in range(2))
    hashes = [node.operator_hash for node in first.nodes]
    assert hashes == [node.operator_hash for node in second.nodes]
    assert len(set(hashes)) == 4
    assert all(re.fullmatch("[0-9a-f]{32}", h) for h in hashes)


def test_a_uid_keeps_its_hash_when_the_program_changes_before_it() -> None:
    program, made = line()
    made[2].uid = "parse"
    changed = g.Program()
    select = changed.chain(g.SOURCE, g.NATIVE, g.NATIVE, g.PYTHON, g.PRINT)
    select[3].uid = "parse"
    before, after = job(program).nodes, job(changed).nodes
    assert before[2].operator_hash == after[3].operator_hash
    assert before[3].operator_hash != after[4].operator_hash


@pytest.mark.parametrize("attribute", ["name", "parallelism"])
def test_generated_hashes_do_not_depend_on_names(attribute: str) -> None:
    program, made = line()
    before = [node.operator_hash for node in job(program).nodes]
    for transformation in made:
        setattr(transformation, attribute, {"name": "other", "parallelism": 3}[attribute])
    assert [node.operator_hash for node in job(program).nodes] == before
