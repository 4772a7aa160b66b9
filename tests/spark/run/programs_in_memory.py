"""Small programs on elements, run as a job does it, without Spark."""

from __future__ import annotations

import pickle
import textwrap
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from yarnflow.api.executor import use_executor
from yarnflow.graph.connectors.sources import CollectionSource
from yarnflow.graph.job_graph import JobGraph
from yarnflow.operators.elements import Chunk
from yarnflow.spark.translate.query_groups import query_groups
from yarnflow.testing.in_memory_levels import InMemoryLevels
from yarnflow.testing.kept_graph import KeptGraph

#: ten lines, so that a program begins in line 11, with the name ``numbers`` for a collection
HEAD = """\
import json, operator, threading
from yarnflow.api.common.types import Row
from yarnflow.api.common.typeinfo import Types
from yarnflow.api.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from yarnflow.api.datastream import *
from yarnflow.api.datastream.functions import *
from yarnflow.api.datastream.state import *
from yarnflow.api.datastream.window import *
env = StreamExecutionEnvironment.get_execution_environment()
rows = [(1, 'a'), (2, 'b')]
"""


def graph_of(program: str) -> JobGraph:
    executor = KeptGraph()
    with use_executor(executor):
        scope: dict[str, object] = {"__name__": "__main__"}
        if "numbers" in program:
            program = program.replace("numbers", "env.from_collection(rows, Types.PICKLED_BYTE_ARRAY())")
        source = HEAD + textwrap.dedent(program).lstrip("\n") + "\nenv.execute_async()\n"
        exec(compile(source, "/u/job.py", "exec"), scope)
    return executor.graphs[-1]


def elements(graph: JobGraph, node_id: int) -> Iterator[Chunk]:
    operator = {node.node_id: node for node in graph.nodes}[node_id].operator
    assert isinstance(operator, CollectionSource)
    with pa.ipc.open_stream(operator.arrow_ipc) as reader:
        yield Chunk([pickle.loads(row["value"]) for row in reader.read_all().to_pylist()])


def run(program: str) -> list[list[Any]]:
    """What each sink got, in the order of the sinks."""
    return [found for _, found in sorted(run_graph(graph_of(program)).sinks.items())]


def run_graph(graph: JobGraph) -> InMemoryLevels:
    """A job that has ended."""
    (group,) = query_groups(graph)
    assert group.levels is not None
    plan = group.levels
    levels = InMemoryLevels([source.level for source in plan.sources], plan.levels, groups=128)
    inputs = {i: [elements(graph, source.node_id)] for i, source in enumerate(plan.sources)}
    levels.run_batch(inputs)
    levels.run_batch(end=True)
    return levels
