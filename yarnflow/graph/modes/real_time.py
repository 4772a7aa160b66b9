"""Which jobs can run in real time: every record on its way at once, without micro-batches.

What stands in the way is named with operator and line.  Flink knows no other way to run a stream; Spark's
real-time mode takes columns from Kafka to Kafka, and running aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from yarnflow.errors import UnsupportedGraph
from yarnflow.graph.connectors.kafka import KafkaDelivery, KafkaSink, KafkaSource
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.connectors.sinks import PrintSink
from yarnflow.graph.job_graph import JobGraph, ShipStrategy, StreamNode
from yarnflow.graph.operators import (
    AssignTimestamps,
    FilterExpression,
    Operator,
    RunningAggregate,
    SelectOperator,
    Sink,
    Source,
    UnionOperator,
    WindowAggregate,
    WindowProcess,
)
from yarnflow.graph.type_info import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    ListTypeInfo,
    ObjectArrayTypeInfo,
    RowTypeInfo,
    TypeInfo,
)

#: ``pipeline.execution-mode``
MICRO_BATCH: Final = "micro-batch"
REAL_TIME: Final = "real-time"
AUTO: Final = "auto"

#: of JSON, those that Spark's expressions read and write as the formats in Python do
_BASIC: Final = (
    *(BasicType.STRING, BasicType.BOOLEAN, BasicType.BYTE, BasicType.SHORT),
    *(BasicType.INT, BasicType.LONG, BasicType.DOUBLE),
)
_FORMATS: Final = (MessageFormatKind.STRING, MessageFormatKind.BYTES, MessageFormatKind.JSON)
#: Spark's options for the size of micro-batches
_BATCH_OPTIONS: Final = ("max", "min")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a job cannot run in real time."""

    node: StreamNode
    #: goes on with the operator's name
    reason: str

    def __str__(self) -> str:
        return f"{self.node.origin}: '{self.node.name}' {self.reason}"


def obstacles(graph: JobGraph) -> tuple[Obstacle, ...]:
    """All that stands in the way, in the order of the program; nothing = it can run in real time."""
    found: list[Obstacle] = []
    sinks = 0
    for node in graph.nodes:
        found += (Obstacle(node, reason) for reason in _reasons(node.operator))
        if ShipStrategy.REBALANCE in node.strategies:
            found.append(Obstacle(node, "gets its records evenly from all subtasks"))
        if isinstance(node.operator, Sink):
            sinks += 1
            if sinks == 2:
                found.append(Obstacle(node, "is a second sink"))
    return tuple(found)


def stages(graph: JobGraph) -> int:
    """How many of a job's tasks run at the same time in one slot."""
    return len(graph.vertices)


def chosen_mode(graph: JobGraph, mode: str) -> str:
    """MICRO_BATCH or REAL_TIME, of an option's value.

    Raises
    ------
    UnsupportedGraph
        It is to run in real time, and cannot; the message names what is in the way.
    """
    if mode == MICRO_BATCH:
        return MICRO_BATCH
    found = obstacles(graph)
    if found and mode == REAL_TIME:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UnsupportedGraph(
            f"{found[0]}, which real-time mode does not have{more}; change it, or set "
            "pipeline.execution-mode to micro-batch or auto"
        )
    return MICRO_BATCH if found else REAL_TIME


def _reasons(operator: Operator) -> Iterator[str]:
    match operator:
        case KafkaSource():
            yield from _of_source(operator)
        case KafkaSink():
            yield from _of_sink(operator)
        case SelectOperator() | FilterExpression() | UnionOperator() | RunningAggregate() | PrintSink():
            pass
        case AssignTimestamps(expression=expression) if expression:
            pass
        case WindowAggregate() | WindowProcess():
            yield "gives its results when a window ends"
        case _ if isinstance(operator, Source):
            yield "is a source other than Kafka"
        case _ if isinstance(operator, Sink):
            yield "is a sink other than Kafka and print"
        case _:
            yield "is no expression of columns"


def _of_source(source: KafkaSource) -> Iterator[str]:
    if source.bounded:
        yield "ends by itself"
    if source.format is not None:
        yield from _of_format(source.format, "reads")
    if source.malformed:
        yield "has a side output for messages that are malformed"
    for option in source.options:
        if option.lower().startswith(_BATCH_OPTIONS):
            yield f"has the option {option}"


def _of_sink(sink: KafkaSink) -> Iterator[str]:
    if sink.delivery is KafkaDelivery.EXACTLY_ONCE:
        yield "writes exactly once"
    if not sink.topic:
        yield "chooses its topics by a function"
    yield from _of_format(sink.value, "writes")
    if sink.key is not None:
        yield from _of_format(sink.key, "writes")


def _of_format(form: MessageFormat, does: str) -> Iterator[str]:
    if form.kind not in _FORMATS:
        yield f"{does} {form.kind.value} messages"
    elif form.options.get("charset", "UTF-8").upper() not in ("UTF-8", "UTF8"):
        yield f"{does} messages that are not UTF-8"
    elif form.options.get("fail_on_missing_field"):
        yield f"{does} messages none of whose fields may be missing (fail_on_missing_field)"
    elif form.kind is MessageFormatKind.JSON and not _is_plain(form.element_type):
        yield f"{does} JSON messages of {form.element_type!r}"


def _is_plain(kind: TypeInfo) -> bool:
    match kind:
        case BasicTypeInfo(basic):
            return basic in _BASIC
        case RowTypeInfo():
            return all(map(_is_plain, kind.field_types))
        case ListTypeInfo():
            return _is_plain(kind.elem_type)
        case ObjectArrayTypeInfo() | BasicArrayTypeInfo():
            return _is_plain(kind.element_type)
    return False
