"""How elements get to subtasks, and what is known of streams before the job is executed."""

from __future__ import annotations

import pickle

import pytest

from tests.api.conftest import Jobs
from tests.api.elements.programs import MINUTE, WORDS, words
from yarnflow.api.common import Types
from yarnflow.errors import GraphError, UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.job_graph import ShipStrategy


@pytest.mark.parametrize(
    ("way", "strategy"),
    [
        ("rebalance", ShipStrategy.REBALANCE),
        ("rescale", ShipStrategy.RESCALE),
        ("shuffle", ShipStrategy.SHUFFLE),
        ("broadcast", ShipStrategy.BROADCAST),
        ("forward", ShipStrategy.FORWARD),
    ],
)
def test_exchanges(jobs: Jobs, way: str, strategy: ShipStrategy) -> None:
    getattr(words(jobs), way)().map(lambda word: word).print()
    assert jobs.graph().nodes[1].strategies == (strategy,)


def test_forward_keeps_the_parallelism(jobs: Jobs) -> None:
    words(jobs).forward().map(lambda word: word).set_parallelism(2).print()
    with pytest.raises(UnsupportedGraph, match=r"map\(\): forward\(\) needs one parallelism"):
        jobs.env.execute()


def test_custom_partitions(jobs: Jobs) -> None:
    words(jobs).partition_custom(lambda key, count: key % count, lambda word: word[1]).map(str).print()
    node = jobs.graph().nodes[1]
    assert isinstance(node.operator, o.PartitionCustom) and node.strategies == (ShipStrategy.CUSTOM,)
    assert pickle.loads(node.operator.partitioner.payload).build()(7, 4) == 3
    assert node.operator.selector is not None
    assert pickle.loads(node.operator.selector.payload).build()([("a", 7)]) == [7]
    assert node.output_schema.element_type == WORDS


def test_streams_can_be_used_again_after_a_job(jobs: Jobs) -> None:
    stream = words(jobs).map(lambda word: word)
    stream.print()
    assert len(jobs.graph().nodes) == 3
    stream.union(stream).print()
    assert [n.name for n in jobs.graph().nodes] == [
        "Source: Collection Source", "Map", "Union", "Sink: Print to Std. Out"
    ]  # fmt: skip


def test_what_a_stream_is(jobs: Jobs) -> None:
    stream = words(jobs).map(lambda word: word[0], Types.STRING()).name("First")
    assert (stream.get_type(), stream.get_name()) == (Types.STRING(), "First")
    assert stream.get_execution_environment() is jobs.env
    assert stream.get_execution_config().get_parallelism() == 1
    assert jobs.rows("a INT, b STRING").get_type() == Types.ROW([Types.INT(), Types.STRING()])
    assert stream.key_by(lambda word: word).window(MINUTE).get_input_type() == Types.STRING()
    broken = stream.select("nothing")
    with pytest.raises(GraphError, match=r"^test_ways.py:\d+: select\(\): no field 'nothing'"):
        broken.get_type()


def test_settings(jobs: Jobs) -> None:
    stream = words(jobs).map(str).set_uid_hash("ab" * 16).set_description("texts").force_non_parallel()
    stream.set_buffer_timeout(5).cache().print()
    node = jobs.graph().nodes[1]
    assert (node.operator_hash, node.description, node.parallelism) == ("ab" * 16, "texts", 1)
