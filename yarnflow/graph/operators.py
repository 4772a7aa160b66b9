"""What an operator does, as plain values: the contract between the API and ``spark``.

Each class is one kind of operator of a :class:`~yarnflow.graph.stream_graph.StreamNode`.
Expressions are Spark SQL text.  User functions are cloudpickle payloads that nothing but a
driver or a Python worker ever loads.  Durations are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, get_args

from yarnflow.graph.schema import Schema
from yarnflow.graph.type_info import TypeInfo


@dataclass(frozen=True, slots=True)
class Closure:
    """A user function on its way to the workers."""

    #: cloudpickle bytes of a callable or of an instance of a function class
    payload: bytes = field(repr=False)
    #: qualified name, for plans and messages
    name: str
    #: ``file:line`` of its definition or use
    origin: str


# --- sources ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CollectionSource:
    """Rows known on the client; bounded.  Flink: ``from_collection``."""

    schema: Schema
    #: Arrow IPC stream of all rows: columns in schema order; of elements (``schema.element_type``) the one
    #: binary column ``value``, each element pickled
    arrow_ipc: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SequenceSource:
    """Whole numbers from ``first`` to ``last``, both included; bounded.  Flink: ``NumberSequenceSource``."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files of a directory, bounded or watched for new ones.  Flink: ``FileSource``."""

    path: str
    #: ``text``, ``csv``, ``json`` or ``parquet``
    format: str
    schema: Schema
    #: reader options as Spark names them
    options: dict[str, str] = field(default_factory=dict)
    #: read what is there at the start and end; else watch the directory for ever
    bounded: bool = True
    #: files taken into one micro-batch; 0 = no limit
    max_files_per_trigger: int = 0


@dataclass(frozen=True, slots=True)
class SocketSource:
    """Lines of a TCP connection (host and port of a server).  Flink: ``socketTextStream``."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class RateSource:
    """``timestamp, value`` rows at a steady rate.  Flink: ``DataGeneratorSource``; Spark: ``rate``."""

    rows_per_second: int
    #: stop after this many rows; None = for ever
    count: int | None = None


@dataclass(frozen=True, slots=True)
class SqlOperator:
    """A Spark SQL query over its inputs, each a view of the given name (may have none)."""

    query: str
    #: view name of input i
    views: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True)
class SideOutput:
    """The elements an operator gave to a side output; its only input is that operator.

    Flink: ``getSideOutput``.
    """

    tag_id: str


@dataclass(frozen=True, slots=True)
class PartitionCustom:
    """Elements on their way to the subtasks that a partitioner names; passes them on as they are.

    Flink: ``partitionCustom``.
    """

    #: ``f(key, number of subtasks) -> subtask``
    partitioner: Closure
    #: ``f(element) -> key``
    selector: Closure | None = None


# --- sinks --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrintSink:
    """Records on the driver's standard output, as Flink prints them.  At-least-once."""

    identifier: str = ""


@dataclass(frozen=True, slots=True)
class FileSink:
    """Files named by batch; a batch done again replaces its own files.  Exactly-once."""

    path: str
    #: ``csv``, ``json`` or ``parquet``; ``text`` = the text of each element on a line
    format: str
    options: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeachBatchSink:
    """``f(dataframe, batch_id)`` in the driver; exactly-once if ``f`` is idempotent by batch id."""

    closure: Closure


@dataclass(frozen=True, slots=True)
class CollectSink:
    """Elements that the program itself reads.  Flink: ``executeAndCollect``."""

    #: end after so many elements; None = all
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DiscardSink:
    """Drops what functions nobody reads give; they run all the same.  Flink: ``DiscardingSink``."""


Source = CollectionSource | SequenceSource | FileSource | SocketSource | RateSource
Sink = PrintSink | FileSink | ForeachBatchSink | CollectSink | DiscardSink
Operator = (
    Source
    | SqlOperator
    | SelectOperator
    | FilterExpression
    | PythonOperator
    | AssignTimestamps
    | UnionOperator
    | RunningAggregate
    | KeyedReduce
    | WindowAggregate
    | WindowProcess
    | ElementOperator
    | SideOutput
    | PartitionCustom
    | Sink
)


#: classes of operators where records end
SINKS: Final[tuple[type, ...]] = get_args(Sink)


def is_bounded(source: object) -> bool:
    """Whether a source ends by itself."""
    if isinstance(source, FileSource):
        return source.bounded
    if isinstance(source, RateSource):
        return source.count is not None
    return isinstance(source, (CollectionSource, SequenceSource))


def is_read_at_once(source: object) -> bool:
    """Whether a bounded source is read wholly in the first micro-batch."""
    if isinstance(source, FileSource):
        return source.bounded and not source.max_files_per_trigger
    return isinstance(source, (CollectionSource, SequenceSource))
