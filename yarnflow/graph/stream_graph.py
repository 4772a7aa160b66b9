"""The program as the user wrote it: transformations, and the graph of operators they make.

Decides, when a job is executed, what every call of the program means: its operator, its
output fields, its parallelism and slot sharing group.  Errors name the line of the call.
Never looks at the whole (:mod:`yarnflow.graph.generation.validation`) nor chains
(:mod:`yarnflow.graph.generation.chaining`).  Flink counterparts: ``Transformation``,
``StreamGraphGenerator``, ``StreamGraph``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from yarnflow.errors import GraphError, ParallelismTooHigh, UnsupportedGraph
from yarnflow.graph.connectors.sinks import DiscardSink
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import (
    AssignTimestamps,
    DropDuplicates,
    ElementOperator,
    FilterExpression,
    KeyedReduce,
    LookupJoin,
    Operator,
    PartitionByKey,
    PartitionCustom,
    PythonKind,
    PythonOperator,
    SelectOperator,
    SideOutput,
    Sink,
    SqlOperator,
    UnionOperator,
    WindowAggregate,
    WindowProcess,
)
from yarnflow.graph.schema import Schema

DEFAULT_SLOT_SHARING_GROUP: Final = "default"
#: Flink's bounds of the number of key groups
LOWER_BOUND_MAX_PARALLELISM: Final = 128
UPPER_BOUND_MAX_PARALLELISM: Final = 32768

#: operators that call functions of the program, which may do more than give results
_FUNCTIONS: Final = (PythonOperator, ElementOperator, KeyedReduce, WindowProcess)
#: what a call means, given the fields of its inputs; may raise any GraphError without its line
Definition = Callable[[tuple[Schema, ...]], tuple[Operator, Schema]]


class ChainingStrategy(Enum):
    """Whether an operator may run in the task of its neighbours.  Flink: the same."""

    #: with its input and its outputs
    ALWAYS = "ALWAYS"
    #: with its outputs only
    HEAD = "HEAD"
    NEVER = "NEVER"


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a transformation and how its records arrive."""

    source: Transformation
    #: FORWARD becomes REBALANCE where the parallelism differs
    strategy: ShipStrategy = ShipStrategy.FORWARD
    #: FORWARD was asked for, so another parallelism is an error
    pinned: bool = False


@dataclass(eq=False, slots=True)
class Transformation:
    """One call of the program; setters of the API change it until the job is executed."""

    name: str
    #: name of the API call, for messages
    call: str
    #: ``file:line`` of the call
    origin: str
    define: Definition
    inputs: tuple[Input, ...] = ()
    #: None = the environment's
    parallelism: int | None = None
    #: None = the environment's
    max_parallelism: int | None = None
    #: more than one subtask is possible
    parallel: bool = True
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    #: None = inherit
    slot_sharing_group: str | None = None
    uid: str = ""
    #: replaces the name in plans; empty = the operator describes itself
    description: str = ""
    #: 32 hex digits that identify the operator in a state; empty = from uid or place
    uid_hash: str = ""

    def resolved(self, inputs: tuple[Schema, ...]) -> tuple[Operator, Schema]:
        """The operator and what comes out of it, given the fields of its inputs; raises as ``define``."""
        operator, schema = self.define(inputs)
        return operator, replace(schema, event_time=event_time_behind(operator, schema, inputs))


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """What holds for all operators of a job."""

    job_name: str = "yarnflow job"
    parallelism: int = 1
    #: -1 = derived from each operator's parallelism
    max_parallelism: int = -1
    chaining: bool = True
    #: options set in the program, key → text
    configuration: Mapping[str, str] = field(default_factory=dict)
    #: what functions read by ``get_job_parameter``
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    #: operators need no uid
    auto_uids: bool = True
    #: what the workers need beside the functions: name → content
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operator, resolved."""

    node_id: int
    name: str
    call: str
    origin: str
    operator: Operator
    schema: Schema
    #: node id and strategy of each input, in order
    inputs: tuple[tuple[int, ShipStrategy], ...]
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    chaining: ChainingStrategy
    uid: str
    description: str = ""
    uid_hash: str = ""


class StreamGraph:
    """Operators in topological order; grows by :meth:`add`."""

    def __init__(self, settings: GraphSettings) -> None:
        self.settings = settings
        self.nodes: dict[int, GraphNode] = {}
        self._ids: dict[Transformation, int] = {}

    def add(self, transformation: Transformation) -> int:
        """Resolve one transformation whose inputs were added before; gives its node id.

        Raises
        ------
        GraphError
            Of the class that fits, its message beginning with the line of the call.
        """
        with located(transformation.origin, transformation.call):
            inputs = tuple(self.nodes[self._ids[i.source]] for i in transformation.inputs)
            operator, schema = transformation.resolved(tuple(node.schema for node in inputs))
            # what only passes elements on runs where they are
            passes_on = isinstance(operator, (SideOutput, PartitionCustom, PartitionByKey))
            parallelism = inputs[0].parallelism if passes_on else self._parallelism(transformation)
            node_id = len(self.nodes) + 1
            self.nodes[node_id] = GraphNode(
                node_id,
                transformation.name,
                transformation.call,
                transformation.origin,
                operator,
                schema,
                tuple(
                    (node.node_id, _ship(i, node, parallelism))
                    for i, node in zip(transformation.inputs, inputs, strict=True)
                ),
                parallelism,
                self._max_parallelism(transformation, parallelism),
                transformation.slot_sharing_group or _inherited_group(inputs),
                transformation.chaining,
                transformation.uid,
                transformation.description,
                transformation.uid_hash,
            )
        self._ids[transformation] = node_id
        return node_id

    def discard_results(self) -> None:
        """Give functions that nobody reads a sink that drops their results: what else they do counts."""
        read = {input_id for node in self.nodes.values() for input_id, _ in node.inputs}
        for transformation, node_id in list(self._ids.items()):
            node = self.nodes[node_id]
            if node_id not in read and isinstance(node.operator, _FUNCTIONS):
                name, parallel = f"Sink: Discard {node.name}", transformation.parallel
                sink = Transformation(
                    name, node.call, node.origin, _discard, (Input(transformation),), node.parallelism,
                    node.max_parallelism, parallel,
                )  # fmt: skip
                self.add(sink)

    def outputs(self, node_id: int) -> Iterator[tuple[GraphNode, ShipStrategy]]:
        """The nodes that read a node, with the strategy of that edge."""
        for node in self.nodes.values():
            for input_id, strategy in node.inputs:
                if input_id == node_id:
                    yield node, strategy

    def _parallelism(self, transformation: Transformation) -> int:
        if not transformation.parallel:
            if transformation.parallelism not in (None, 1):
                raise UnsupportedGraph(
                    f"'{transformation.name}' always has one subtask; drop "
                    f"set_parallelism({transformation.parallelism})"
                )
            return 1
        return transformation.parallelism or self.settings.parallelism

    def _max_parallelism(self, transformation: Transformation, parallelism: int) -> int:
        limit = transformation.max_parallelism or self.settings.max_parallelism
        if limit == -1:
            limit = default_max_parallelism(parallelism)
        if parallelism > limit:
            raise ParallelismTooHigh(
                f"parallelism {parallelism} of '{transformation.name}' is above its maximum {limit}; "
                "lower it or raise set_max_parallelism(…)"
            )
        return limit


@contextmanager
def located(origin: str, call: str) -> Iterator[None]:
    """Put the line and the name of the call before the message of a graph error."""
    try:
        yield
    except GraphError as exc:
        raise type(exc)(f"{origin}: {call}(): {exc.message}") from exc.__cause__


def event_time_behind(operator: Operator, output: Schema, inputs: Sequence[Schema]) -> str | None:
    """The column of views with the event time of an operator's results; None = they have none.

    Event time travels as a hidden column.  Queries see it under the name of the field that it was assigned
    from, as long as the stream has that field, else as ``event_time``.  Flink counterpart: rowtime
    attributes.
    """
    before = inputs[0].event_time if inputs else None
    match operator:
        case AssignTimestamps(expression=expression):
            field = output.find(expression)
            # of a type that only Spark knows: the driver looks at it
            stands = field is not None and field.type in (None, "timestamp")
            return field.name if field is not None and stands else output.free_time_name
        case SqlOperator():
            return output.event_time
        case WindowAggregate() | WindowProcess():
            return output.free_time_name
        case UnionOperator():
            times = {schema.event_time for schema in inputs}
            if None in times:
                return None
            return before if len(times) == 1 else output.free_time_name
        case FilterExpression() | DropDuplicates() | PythonOperator(kind=PythonKind.FILTER | PythonKind.KEY):
            return before
        case LookupJoin() if before is not None:
            # the fields of records stay; a column of the table may have the name that was free
            return before if inputs[0].find(before) is not None else output.free_time_name
        case PythonOperator() if before is not None:
            return output.free_time_name
        case SelectOperator() if before is not None:
            return output.event_time or output.free_time_name
    return None


def _discard(inputs: tuple[Schema, ...]) -> tuple[Operator, Schema]:
    return DiscardSink(), inputs[0]


def default_max_parallelism(parallelism: int) -> int:
    """Flink's rule: one and a half times the parallelism, a power of two, 128 to 32768."""
    wanted = parallelism + parallelism // 2
    power = 1 << max(0, wanted - 1).bit_length()
    return min(max(power, LOWER_BOUND_MAX_PARALLELISM), UPPER_BOUND_MAX_PARALLELISM)


def is_sink(operator: Operator) -> bool:
    """Whether records end here."""
    return isinstance(operator, Sink)


def _ship(asked: Input, upstream: GraphNode, parallelism: int) -> ShipStrategy:
    if asked.strategy is not ShipStrategy.FORWARD or upstream.parallelism == parallelism:
        return asked.strategy
    if isinstance(upstream.operator, (PartitionCustom, PartitionByKey)):
        # the partitioner, or the key, has said where to, for any number of subtasks
        return ShipStrategy.FORWARD
    if asked.pinned:
        raise UnsupportedGraph(
            f"forward() needs one parallelism on both sides, and there are {upstream.parallelism} and "
            f"{parallelism} subtasks; use rebalance() or set_parallelism(…)"
        )
    return ShipStrategy.REBALANCE


def _inherited_group(inputs: tuple[GraphNode, ...]) -> str:
    groups = {node.slot_sharing_group for node in inputs}
    return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_SHARING_GROUP
