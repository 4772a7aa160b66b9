"""The job graph: operators chained into vertices, ready to run.

Flink counterparts: ``StreamNode``, ``JobVertex``, ``JobEdge``, ``JobGraph``.  Pure values; JSON
by :mod:`yarnflow.graph.codec`, made from a ``StreamGraph`` by :mod:`yarnflow.graph.generation.chaining`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.messages import ProgramKind
from yarnflow.graph.connectors.sinks import CollectSink, ForeachBatchSink
from yarnflow.graph.operators import Operator
from yarnflow.graph.schema import Schema


class ShipStrategy(Enum):
    """How records travel along an edge.  Flink: its stream partitioners."""

    FORWARD = "FORWARD"
    #: evenly, to all subtasks
    REBALANCE = "REBALANCE"
    #: evenly, to the subtasks nearby
    RESCALE = "RESCALE"
    #: at random
    SHUFFLE = "SHUFFLE"
    #: by key
    HASH = "HASH"
    #: to the first subtask
    GLOBAL = "GLOBAL"
    #: to every subtask
    BROADCAST = "BROADCAST"
    #: to the subtask that a partitioner names: the edge into a PartitionCustom
    CUSTOM = "CUSTOM"


@dataclass(frozen=True, slots=True)
class StreamNode:
    """One operator of the program."""

    node_id: int
    name: str
    #: 32 hex digits, from the uid or from the position in the graph; stable across submits
    operator_hash: str
    operator: Operator
    #: node ids of the inputs, in order
    inputs: tuple[int, ...]
    output_schema: Schema
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    uid: str = ""
    #: ``file:line`` of the call in the user's program
    origin: str = ""
    #: what the program says of the operator; empty = nothing
    description: str = ""
    #: how the elements of each input arrive, in order
    strategies: tuple[ShipStrategy, ...] = ()


@dataclass(frozen=True, slots=True)
class JobVertex:
    """Operators that run in one task."""

    vertex_id: VertexId
    name: str
    #: node ids, upstream first
    chain: tuple[int, ...]
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str


@dataclass(frozen=True, slots=True)
class JobEdge:
    """Records from one vertex to another."""

    source: VertexId
    target: VertexId
    ship_strategy: ShipStrategy


#: beginnings of names in :attr:`JobGraph.files`: for the search path of the workers …
PYTHON_FILES: Final = "python/"
#: … and to be unpacked by them: then the directory's name and that of the archive
ARCHIVES: Final = "archives/"


@dataclass(frozen=True, slots=True)
class JobGraph:
    """A whole job."""

    job_id: JobId
    name: str
    kind: ProgramKind
    nodes: tuple[StreamNode, ...] = ()
    vertices: tuple[JobVertex, ...] = ()
    edges: tuple[JobEdge, ...] = ()
    #: options set in the program, key → text
    configuration: dict[str, str] = field(default_factory=dict)
    #: what functions read by ``get_job_parameter``
    job_parameters: dict[str, str] = field(default_factory=dict)
    #: name → content of what the workers need beside the functions; travels beside the graph, not in it
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    #: it runs as a batch: all of its input at once, and results are last results
    batch: bool = False

    @property
    def collects(self) -> bool:
        """The program reads elements of the job itself."""
        return any(isinstance(node.operator, CollectSink) for node in self.nodes)

    @property
    def runs_code_in_driver(self) -> bool:
        """Whether code of the user's runs in the driver's process, which would remember what it did."""
        is_script = self.kind is ProgramKind.SCRIPT
        return is_script or any(isinstance(node.operator, ForeachBatchSink) for node in self.nodes)

    @property
    def connectors(self) -> tuple[str, ...]:
        """What operators of the graph name in a class attribute ``connector``: it may need packages.

        See :func:`yarnflow.core.jars.connectors.connector_packages`.
        """
        names = (getattr(node.operator, "connector", "") for node in self.nodes)
        return tuple(sorted(set(filter(None, names))))

    def required_slots(self) -> int:
        """Slots the job wants: the largest parallelism of each sharing group, summed."""
        widest: dict[str, int] = {}
        for vertex in self.vertices:
            group = vertex.slot_sharing_group
            widest[group] = max(widest.get(group, 0), vertex.parallelism)
        return sum(widest.values())
