"""State of a job that grows for ever, known before the job runs.

Names operators that keep something for each key, group or row, of which neither event time nor a time-to-live
ever lets go.  Bounded input ends, and its state with it.  In Flink such state is found when it is too large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from yarnflow.graph.job_graph import JobGraph, StreamNode
from yarnflow.graph.operators import (
    DropDuplicates,
    ElementOperator,
    KeyedReduce,
    RunningAggregate,
    Source,
    SqlOperator,
)


@dataclass(frozen=True, slots=True)
class GrowingState:
    """State that only grows."""

    node_id: int
    #: the operator's
    name: str
    #: ``file:line`` of its call
    origin: str
    #: what is kept, and what to do about it
    why: str

    def __str__(self) -> str:
        return f"{self.origin}: '{self.name}': {self.why}"


def growing_state(graph: JobGraph) -> tuple[GrowingState, ...]:
    """The state of a job that only grows, in the order of its operators; of a script nothing is known."""
    nodes = {node.node_id: node for node in graph.nodes}
    endless: dict[int, bool] = {}
    found: list[GrowingState] = []
    for node in graph.nodes:
        # inputs stand before what reads them
        endless[node.node_id] = _is_endless(node, nodes, endless)
        if endless[node.node_id]:
            found += (GrowingState(node.node_id, node.name, node.origin, why) for why in _kept(node))
    return tuple(found)


def reads_for_ever(graph: JobGraph) -> bool:
    """Whether a job has a source without an end, so that it does not end by itself; not known of scripts."""
    return not graph.batch and any(
        isinstance(node.operator, Source) and not node.operator.bounded for node in graph.nodes
    )


def _is_endless(node: StreamNode, nodes: Mapping[int, StreamNode], known: Mapping[int, bool]) -> bool:
    if not node.inputs:
        return isinstance(node.operator, Source) and not node.operator.bounded
    return any(known[input_id] for input_id in node.inputs)


def _kept(node: StreamNode) -> Iterator[str]:
    match node.operator:
        case SqlOperator(keeps=keeps):
            yield from keeps
        case RunningAggregate(key=key) | KeyedReduce(key=key):
            if key.names:
                names = ", ".join(key.names)
                yield f"keeps every key ({names}) for ever; call window(…) before it if keys come and go"
        case DropDuplicates(fields=fields, within_ms=None):
            names = ", ".join(fields)
            yield f"keeps every {names} for ever; call assign_timestamps_and_watermarks(…) before it"
        case ElementOperator(keeps=kept) if kept:
            yield kept
