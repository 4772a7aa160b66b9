"""StreamGraph → JobGraph: which operators share a task, and the ids they keep for ever.

Decides by Flink's rules: neighbours chain when the edge is forward, the parallelism and the
slot sharing group are equal, both sides allow it and the downstream side has one input.
Flink counterparts: ``StreamingJobGraphGenerator``, ``StreamGraphHasherV2``.
"""

from __future__ import annotations

from dataclasses import replace

from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.messages import ProgramKind
from yarnflow.graph.generation.projection import projected
from yarnflow.graph.job_graph import JobEdge, JobGraph, JobVertex, ShipStrategy, StreamNode
from yarnflow.graph.operators import PartitionByKey
from yarnflow.graph.stream_graph import ChainingStrategy, GraphNode, StreamGraph


def create_job_graph(graph: StreamGraph, job_id: JobId) -> JobGraph:
    """Chain a validated stream graph."""
    heads = _chain_heads(graph)
    hashes = _operator_hashes(graph)
    chains: dict[int, list[int]] = {}
    for node_id, head in heads.items():
        chains.setdefault(head, []).append(node_id)
    vertex_of = {node_id: VertexId(hashes[head]) for node_id, head in heads.items()}
    edges = {
        JobEdge(vertex_of[input_id], vertex_of[node.node_id], _strategy(node, strategy)): None
        for node in graph.nodes.values()
        for input_id, strategy in node.inputs
        if heads[input_id] != heads[node.node_id]
    }
    return JobGraph(
        job_id,
        graph.settings.job_name,
        ProgramKind.GRAPH,
        projected([_stream_node(node, hashes[node.node_id]) for node in graph.nodes.values()]),
        tuple(_vertex(graph, heads, head, chain, hashes) for head, chain in chains.items()),
        tuple(edges),
        dict(graph.settings.configuration),
        dict(graph.settings.job_parameters),
        dict(graph.settings.files),
    )


def is_chainable(graph: StreamGraph, node: GraphNode) -> bool:
    """Whether a node runs in the task of its only input."""
    if not graph.settings.chaining or len(node.inputs) != 1 or isinstance(node.operator, PartitionByKey):
        return False
    input_id, strategy = node.inputs[0]
    upstream = graph.nodes[input_id]
    return (
        strategy is ShipStrategy.FORWARD
        and upstream.parallelism == node.parallelism
        and upstream.slot_sharing_group == node.slot_sharing_group
        and upstream.chaining is not ChainingStrategy.NEVER
        and node.chaining is ChainingStrategy.ALWAYS
    )


def _chain_heads(graph: StreamGraph) -> dict[int, int]:
    """Node id → id of the first node of its chain, in topological order."""
    heads: dict[int, int] = {}
    for node in graph.nodes.values():
        heads[node.node_id] = heads[node.inputs[0][0]] if is_chainable(graph, node) else node.node_id
    return heads


def _strategy(node: GraphNode, asked: ShipStrategy) -> ShipStrategy:
    """Return how elements get to a node; what was asked of a stream before ``key_by`` has no meaning."""
    return ShipStrategy.HASH if isinstance(node.operator, PartitionByKey) else asked


def _operator_hashes(graph: StreamGraph) -> dict[int, str]:
    """Return 32 hex digits per node: of its uid, else of its place in the graph and its inputs.

    As in Flink, a generated hash changes when an operator is inserted before it; that is what
    uids are for.  An exchange by key is not an operator: the hashes are those of a graph without it.
    """
    operators = _without_exchanges_by_key(graph)
    hashes = _hashes_of_operators(operators, _chain_heads(operators))
    for node_id in graph.nodes:
        if node_id not in hashes:
            (input_id, _), *_ = graph.nodes[node_id].inputs
            hashes[node_id] = _digest("by key", str(node_id), hashes[input_id])
    return hashes


def _without_exchanges_by_key(graph: StreamGraph) -> StreamGraph:
    found = StreamGraph(graph.settings)
    nodes = graph.nodes
    for node_id, node in nodes.items():
        if isinstance(node.operator, PartitionByKey):
            continue
        inputs = tuple(
            nodes[input_id].inputs[0]
            if isinstance(nodes[input_id].operator, PartitionByKey)
            else (input_id, strategy)
            for input_id, strategy in node.inputs
        )
        found.nodes[node_id] = replace(node, inputs=inputs)
    return found


def _hashes_of_operators(graph: StreamGraph, heads: dict[int, int]) -> dict[int, str]:
    hashes: dict[int, str] = {}
    for position, node in enumerate(graph.nodes.values()):
        if node.uid_hash:
            hashes[node.node_id] = node.uid_hash
            continue
        if node.uid:
            hashes[node.node_id] = _digest("uid", node.uid)
            continue
        chained = sum(
            heads[output.node_id] == heads[node.node_id] for output, _ in graph.outputs(node.node_id)
        )
        inputs = (hashes[input_id] for input_id, _ in node.inputs)
        hashes[node.node_id] = _digest("position", str(position), str(chained), *inputs)
    return hashes


def _digest(*parts: str) -> str:
    import hashlib  # loads OpenSSL, which a program that only builds streams never needs

    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _stream_node(node: GraphNode, operator_hash: str) -> StreamNode:
    return StreamNode(
        node.node_id,
        node.name,
        operator_hash,
        node.operator,
        tuple(input_id for input_id, _ in node.inputs),
        node.schema,
        node.parallelism,
        node.max_parallelism,
        node.slot_sharing_group,
        node.uid,
        node.origin,
        node.description,
        tuple(_strategy(node, strategy) for _, strategy in node.inputs),
    )


def _vertex(
    graph: StreamGraph, heads: dict[int, int], head: int, chain: list[int], hashes: dict[int, str]
) -> JobVertex:
    first = graph.nodes[head]
    return JobVertex(
        VertexId(hashes[head]),
        _chain_name(graph, heads, head),
        tuple(chain),
        first.parallelism,
        min(graph.nodes[node_id].max_parallelism for node_id in chain),
        first.slot_sharing_group,
    )


def _chain_name(graph: StreamGraph, heads: dict[int, int], node_id: int) -> str:
    """``Source: a -> Map``, ``Map -> (Filter -> Sink: x, Sink: y)``."""
    name = graph.nodes[node_id].name
    chained = [
        output.node_id for output, _ in graph.outputs(node_id) if heads[output.node_id] == heads[node_id]
    ]
    if not chained:
        return name
    names = [_chain_name(graph, heads, output) for output in chained]
    return f"{name} -> {names[0]}" if len(names) == 1 else f"{name} -> ({', '.join(names)})"
