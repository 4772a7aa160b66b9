"""What an operator does, as plain values: the contract between the API and ``spark``.

Each class is one kind of operator of a :class:`~yarnflow.graph.stream_graph.StreamNode`.
Expressions are Spark SQL text.  User functions are cloudpickle payloads that nothing but a
driver or a Python worker ever loads.  Durations are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from yarnflow.graph.closures import Closure
from yarnflow.graph.connectors.elasticsearch import ElasticsearchSink
from yarnflow.graph.connectors.kafka import KafkaSink, KafkaSource
from yarnflow.graph.connectors.lookups import Lookup, LookupOptions
from yarnflow.graph.connectors.python import PythonSink, PythonSource
from yarnflow.graph.connectors.rabbitmq import RabbitMqSink, RabbitMqSource
from yarnflow.graph.connectors.redis import RedisSink
from yarnflow.graph.connectors.sinks import (
    CollectSink,
    DiscardSink,
    FileSink,
    ForeachBatchSink,
    JdbcSink,
    PrintSink,
    SocketSink,
)
from yarnflow.graph.connectors.sources import (
    CollectionSource,
    FileSource,
    RateSource,
    SequenceSource,
    SocketSource,
)
from yarnflow.graph.type_info import TypeInfo


@dataclass(frozen=True, slots=True)
class SqlOperator:
    """A Spark SQL query over its inputs, each a view of the given name (may have none)."""

    query: str
    #: view name of input i
    views: tuple[str, ...] = ()
    #: Spark keeps state for it
    stateful: bool = False
    #: its results are new values of earlier ones: each batch gives those of the groups it touched
    changes: bool = False
    #: parts of it whose state is never dropped, for people
    keeps: tuple[str, ...] = ()


# --- one record at a time -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectOperator:
    """Projection by expressions; compiled to native columns."""

    expressions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilterExpression:
    """Filter by one boolean expression; compiled to a native column."""

    expression: str


class PythonKind(Enum):
    """What a Python function returns for one record."""

    #: one record
    MAP = "MAP"
    #: an iterable of records
    FLAT_MAP = "FLAT_MAP"
    #: whether to keep the record
    FILTER = "FILTER"
    #: the record's key; output = input fields + the field ``__key``
    KEY = "KEY"
    #: event time in ms since the epoch; output = input fields + ``__event_time``
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class PythonOperator:
    """A Python function over single records; neighbours in a chain share one Arrow round trip."""

    kind: PythonKind
    closure: Closure
    #: which fields of a record it reads; None = maybe all
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class AssignTimestamps:
    """Event time and how far out of order it may be.  Flink: ``WatermarkStrategy``.

    The event time travels as the hidden field ``__event_time`` through every later operator.
    """

    #: expression of type timestamp; empty when a PythonOperator(TIMESTAMP) before set it
    expression: str
    out_of_orderness_ms: int
    #: how long the stream is silent until functions on elements that read others, too, wait for it no more;
    #: windows of columns have one watermark for all that reaches them
    idle_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class UnionOperator:
    """All records of all inputs, which have the same schema."""


@dataclass(frozen=True, slots=True)
class DropDuplicates:
    """The first record of each combination of fields.  Spark: ``dropDuplicatesWithinWatermark``."""

    fields: tuple[str, ...]
    #: of event time, in which records with the same fields are found for sure; 0 = the stream's lateness.
    #: None = the stream has no event time: for ever
    within_ms: int | None = None


@dataclass(frozen=True, slots=True)
class LookupJoin:
    """Each record with the rows of an outside table that have its key, as they are when it comes.

    Output: the record's fields, then the table's.  Flink: ``StreamPhysicalLookupJoin``.
    """

    lookup: Lookup
    #: field of the record, column of the table
    keys: tuple[tuple[str, str], ...]
    #: records without a row stay, with NULLs
    left: bool = False
    options: LookupOptions = LookupOptions()


# --- keyed --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Key:
    """How a keyed stream is keyed: expressions with their output names."""

    #: SQL expressions; ``__key`` after a PythonOperator(KEY)
    expressions: tuple[str, ...]
    #: names of the key fields in results
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunningAggregate:
    """Built-in aggregates per key, updated with each micro-batch.  Output: key fields, aggregates."""

    key: Key
    #: ``sum(x) AS total``
    aggregates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyedReduce:
    """A Python function over (accumulator, record) per key.  Output: the input's schema."""

    key: Key
    closure: Closure


class WindowKind(Enum):
    """Event-time window assigners."""

    TUMBLING = "TUMBLING"
    SLIDING = "SLIDING"
    SESSION = "SESSION"


@dataclass(frozen=True, slots=True)
class Window:
    """A window assigner.  Flink: ``TumblingEventTimeWindows`` and its siblings."""

    kind: WindowKind
    #: TUMBLING, SLIDING
    size_ms: int = 0
    #: SLIDING
    slide_ms: int = 0
    #: TUMBLING, SLIDING
    offset_ms: int = 0
    #: SESSION
    gap_ms: int = 0


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """Built-in aggregates per key and window.  Output: key fields, window_start, window_end, aggregates."""

    key: Key
    window: Window
    aggregates: tuple[str, ...]


class WindowFunctionKind(Enum):
    """How a Python window function is called."""

    #: ``f(a, b) -> record``; output: the input's schema
    REDUCE = "REDUCE"
    #: ``process(key, context, elements) -> iterable of records``
    PROCESS = "PROCESS"


@dataclass(frozen=True, slots=True)
class WindowProcess:
    """A Python function over all records of a key and window."""

    key: Key
    window: Window
    kind: WindowFunctionKind
    closure: Closure


# --- elements -----------------------------------------------------------------


class ElementKind(Enum):
    """What an operator on elements does, for plans and messages; its closure has the rest."""

    MAP = "MAP"
    FLAT_MAP = "FLAT_MAP"
    FILTER = "FILTER"
    PROCESS = "PROCESS"
    KEYED_PROCESS = "KEYED_PROCESS"
    REDUCE = "REDUCE"
    WINDOW = "WINDOW"
    CO_MAP = "CO_MAP"
    CO_FLAT_MAP = "CO_FLAT_MAP"
    CO_PROCESS = "CO_PROCESS"
    KEYED_CO_PROCESS = "KEYED_CO_PROCESS"
    BROADCAST_PROCESS = "BROADCAST_PROCESS"
    KEYED_BROADCAST_PROCESS = "KEYED_BROADCAST_PROCESS"
    INTERVAL_JOIN = "INTERVAL_JOIN"
    ASYNC = "ASYNC"
    #: event time and watermarks by Python
    TIMESTAMPS = "TIMESTAMPS"


@dataclass(frozen=True, slots=True)
class ElementInput:
    """How the elements of one input reach an operator."""

    #: key selector of a keyed input: a callable, or an object whose ``build()`` gives one; None: not keyed
    selector: Closure | None = None
    #: every key group, or subtask, gets every element
    broadcast: bool = False


@dataclass(frozen=True, slots=True)
class ElementOperator:
    """An operator on Python objects with Flink's semantics of time, state and order.

    Its output is the stream of elements its node's schema describes.  Inputs may be columns: functions
    then get the bare value of a scalar stream, else a row.
    """

    kind: ElementKind
    #: pickled :class:`~yarnflow.operators.process.operator.OperatorDefinition`
    closure: Closure
    inputs: tuple[ElementInput, ...] = (ElementInput(),)
    #: has keyed state, broadcast state or timers
    stateful: bool = False
    #: id and type of the side outputs that the program reads or that take late elements
    side_outputs: tuple[tuple[str, TypeInfo | None], ...] = ()
    #: may have processing-time timers, which a clock has to make due while no elements come
    processing_timers: bool = False
    #: TIMESTAMPS: without elements for so long, nobody waits for this stream; None = for ever
    idle_after_ms: int | None = None
    #: what its state holds for ever, for people; empty = as far as can be told nothing
    keeps: str = ""


@dataclass(frozen=True, slots=True)
class SideOutput:
    """The elements an operator gave to a side output; its only input is that operator.

    Flink: ``getSideOutput``.
    """

    tag_id: str


@dataclass(frozen=True, slots=True)
class PartitionByKey:
    """Elements on their way to the subtasks of their keys, where no keyed state is; passes them on unchanged.

    Flink: ``KeyGroupStreamPartitioner``.
    """

    #: ``f(element) -> key``
    selector: Closure


@dataclass(frozen=True, slots=True)
class PartitionCustom:
    """Elements on their way to the subtasks that a partitioner names; passes them on as they are.

    Flink: ``partitionCustom``.
    """

    #: ``f(key, number of subtasks) -> subtask``
    partitioner: Closure
    #: ``f(element) -> key``
    selector: Closure | None = None


Source = (
    CollectionSource
    | SequenceSource
    | FileSource
    | SocketSource
    | RateSource
    | KafkaSource
    | RabbitMqSource
    | PythonSource
)
Sink = (
    PrintSink
    | FileSink
    | KafkaSink
    | RabbitMqSink
    | RedisSink
    | ElasticsearchSink
    | SocketSink
    | JdbcSink
    | PythonSink
    | ForeachBatchSink
    | CollectSink
    | DiscardSink
)
Operator = (
    Source
    | SqlOperator
    | SelectOperator
    | FilterExpression
    | PythonOperator
    | AssignTimestamps
    | UnionOperator
    | DropDuplicates
    | LookupJoin
    | RunningAggregate
    | KeyedReduce
    | WindowAggregate
    | WindowProcess
    | ElementOperator
    | SideOutput
    | PartitionCustom
    | PartitionByKey
    | Sink
)
