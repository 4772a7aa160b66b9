"""What streams of all kinds record: operators of one element, exchanges, sinks.

``S`` is the stream that comes out of an operator; this module knows no class for it, since those
classes are made of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, Generic, NoReturn, TypeVar

from yarnflow.api.building import definitions, elements
from yarnflow.api.building.elements import KeyBy, SideTags
from yarnflow.api.building.lookups import INNER, On, lookup_join
from yarnflow.api.building.pipeline import (
    Pipeline,
    check_buffer_timeout,
    check_max_parallelism,
    check_parallelism,
)
from yarnflow.api.building.timestamps import timestamp_definitions
from yarnflow.api.common.execution_config import ExecutionConfig
from yarnflow.api.common.serialization import SerializationSchema
from yarnflow.api.common.watermark_strategy import WatermarkStrategy
from yarnflow.api.datastream.connectors.base import PrintSink, Sink
from yarnflow.api.datastream.connectors.jdbc import JdbcLookup
from yarnflow.api.datastream.connectors.simple import SocketSink
from yarnflow.api.datastream.slot_sharing_group import SlotSharingGroup
from yarnflow.api.lengths import DurationLike, to_ms
from yarnflow.api.origin import call_origin, definition_origin
from yarnflow.errors import GraphError, UnsupportedGraph
from yarnflow.graph.closures import NotInFunctions
from yarnflow.graph.compatibility import differs, same_and
from yarnflow.graph.connectors.sinks import ForeachBatchSink
from yarnflow.graph.element_schema import type_of_schema
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import ElementKind, PythonKind
from yarnflow.graph.stream_graph import ChainingStrategy, Definition, Input, Transformation, located
from yarnflow.graph.type_info import RowTypeInfo, TypeInfo
from yarnflow.operators.functions.broadcast import KeyedBroadcastProcessFunction
from yarnflow.operators.functions.elements import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
)
from yarnflow.operators.functions.lookup import AsyncLookupFunction, LookupFunction
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.process import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from yarnflow.operators.process.process_elements import ProcessDefinition

#: classes of functions that have keys, state and timers
_OF_KEYED_STREAMS: Final = (
    KeyedProcessFunction, KeyedCoProcessFunction, KeyedBroadcastProcessFunction
)  # fmt: skip

S = TypeVar("S")
_Self = TypeVar("_Self", bound="Settings")


class Settings:
    """Setters that streams and sinks share; they change the last operator and give ``self``."""

    _transformation: Transformation

    def __reduce__(self) -> NoReturn:
        raise NotInFunctions(
            f"a {type(self).__name__} cannot be used inside a function, which gets elements and not streams; "
            "bring two streams together by union(), connect() or a broadcast()"
        )

    @property
    def _operator(self) -> Transformation:
        """The operator that is changed."""
        return self._transformation

    def name(self: _Self, name: str) -> _Self:
        """Name the operator for plans, logs and the dashboard."""
        self._operator.name = name
        return self

    def uid(self: _Self, uid: str) -> _Self:
        """Give the operator an identity that stays when the program changes around it."""
        self._operator.uid = uid
        return self

    def set_uid_hash(self: _Self, uid_hash: str) -> _Self:
        """Give the operator the identity itself: 32 hexadecimal digits."""
        if len(uid_hash) != 32 or set(uid_hash) - set("0123456789abcdef"):
            raise GraphError(f"{call_origin()}: uid hash {uid_hash!r} must be 32 hexadecimal digits")
        self._operator.uid_hash = uid_hash
        return self

    def set_description(self: _Self, description: str) -> _Self:
        """Describe the operator in plans."""
        self._operator.description = description
        return self

    def set_parallelism(self: _Self, parallelism: int) -> _Self:
        """Set the operator's number of subtasks; -1 = as the environment says."""
        default = parallelism == ExecutionConfig.PARALLELISM_DEFAULT and self._operator.parallel
        self._operator.parallelism = None if default else check_parallelism(parallelism)
        return self

    def set_max_parallelism(self: _Self, max_parallelism: int) -> _Self:
        """Set the most subtasks the operator may ever have, 1 to 32768."""
        self._operator.max_parallelism = check_max_parallelism(max_parallelism)
        return self

    def start_new_chain(self: _Self) -> _Self:
        """Do not run the operator in its input's task."""
        self._operator.chaining = ChainingStrategy.HEAD
        return self

    def disable_chaining(self: _Self) -> _Self:
        """Run the operator in a task of its own."""
        self._operator.chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self: _Self, slot_sharing_group: str | SlotSharingGroup) -> _Self:
        """Share slots with the operators of this group only."""
        group = slot_sharing_group
        self._operator.slot_sharing_group = group if isinstance(group, str) else group.get_name()
        return self


class DataStreamSink(Settings):
    """The end of a stream."""

    def __init__(self, transformation: Transformation) -> None:
        self._transformation = transformation


#: before the names of sources in plans
_SOURCE_PREFIX: Final = "Source: "

_Stream = TypeVar("_Stream", bound="StreamBase[Any]")


class StreamBase(Settings, Generic[S]):
    """A stream of elements.

    Functions get the elements as the function before emitted them.  On a stream of columns (files,
    expressions, functions whose types are DDL text or annotations) they get the bare value of a scalar
    stream, else a :class:`~yarnflow.api.Row`.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        transformation: Transformation,
        strategy: ShipStrategy = ShipStrategy.FORWARD,
        pinned: bool = False,
    ) -> None:
        self._pipeline = pipeline
        self._transformation = transformation
        self._strategy = strategy
        self._pinned = pinned

    def _made(
        self,
        transformation: Transformation,
        strategy: ShipStrategy = ShipStrategy.FORWARD,
        pinned: bool = False,
    ) -> S:
        """The stream behind a transformation."""
        raise NotImplementedError

    @property
    def _operator(self) -> Transformation:
        if self._strategy is not ShipStrategy.FORWARD or self._pinned:
            raise UnsupportedGraph(
                f"{call_origin()}: this stream is an exchange, which has no name, uid or parallelism; "
                "set it on the operator before or after"
            )
        return self._transformation

    @property
    def _key_by(self) -> KeyBy | None:
        """How the stream is keyed, for functions."""
        return None

    def _input(self, strategy: ShipStrategy | None = None) -> Input:
        """This stream as an input of an operator."""
        return Input(self._transformation, strategy or self._strategy, self._pinned and strategy is None)

    def _input_of_function(self) -> Input:
        """Return this stream as the input of a function on elements without keyed state."""
        return self._input()

    def _then(
        self,
        name: str,
        call: str,
        define: Definition,
        inputs: Sequence[Input] = (),
        tags: SideTags | None = None,
    ) -> Transformation:
        """Record an operator that reads this stream, and others."""
        made = Transformation(name, call, call_origin(), define, tuple(inputs) or (self._input(),))
        return self._pipeline.add(made, tags)

    def _next(
        self,
        name: str,
        call: str,
        define: Definition,
        inputs: Sequence[Input] = (),
        tags: SideTags | None = None,
    ) -> S:
        return self._made(self._then(name, call, define, inputs, tags))

    def _shipped(self, strategy: ShipStrategy, pinned: bool = False) -> S:
        return self._made(self._transformation, strategy, pinned)

    # --- what it is ---------------------------------------------------------------------

    def get_name(self) -> str:
        """Name of the operator the stream comes from."""
        operator = self._operator
        return operator.name if operator.inputs else operator.name.removeprefix(_SOURCE_PREFIX)

    def get_type(self) -> TypeInfo:
        """What functions on this stream get."""
        kind = type_of_schema(self._pipeline.schema(self._transformation))
        if isinstance(kind, RowTypeInfo):
            # Flink, which PyFlink asks, names all fields
            return replace(kind, field_names=tuple(kind.get_field_names()))
        return kind

    def get_execution_environment(self) -> Any:
        """The environment the stream belongs to."""
        return self._pipeline.environment

    def get_execution_config(self) -> ExecutionConfig:
        """The settings of that environment."""
        return ExecutionConfig(self._pipeline.settings)

    def force_non_parallel(self: _Stream) -> _Stream:
        """The operator always has one subtask."""
        operator = self._operator
        operator.parallelism, operator.max_parallelism, operator.parallel = 1, 1, False
        return self

    @same_and("kept; no result depends on it: elements travel in micro-batches")
    def set_buffer_timeout(self: _Stream, timeout_millis: int) -> _Stream:
        """How long an element may wait for others before it is sent; -1 = until there are enough of them."""
        check_buffer_timeout(timeout_millis)
        return self

    # --- one element at a time ------------------------------------------------------------

    def _one_by_one(
        self, kind: PythonKind, name: str, func: Any, output_type: object | None, key: KeyBy | None = None
    ) -> S:
        call = kind.value.lower()
        check_callable(func, call)
        define = elements.one_by_one(kind, func, call_origin(), output_type, key)
        way = self._input_of_function() if key is None else self._input(ShipStrategy.HASH)
        return self._next(name, call, define, (way,))

    @differs("on a stream of columns DDL text, a Python type or an annotation makes columns")
    def map(
        self, func: Callable[[Any], Any] | MapFunction, output_type: object | None = None
    ) -> S:
        """Replace every element by what ``func`` makes of it.

        Parameters
        ----------
        output_type : TypeInformation, str or type, optional
            Without one, or with one of Types, the stream goes on as Python objects.  DDL text or a Python
            type (or an annotation of ``func``) on a stream of columns makes columns again.
        """
        return self._one_by_one(PythonKind.MAP, "Map", func, output_type)

    @differs("on a stream of columns DDL text, a Python type or an annotation makes columns")
    def flat_map(
        self, func: Callable[[Any], Iterable[Any]] | FlatMapFunction, output_type: object | None = None
    ) -> S:
        """Replace every element by any number of elements; types as for :meth:`map`."""
        return self._one_by_one(PythonKind.FLAT_MAP, "FlatMap", func, output_type)

    @same_and("takes an expression as text, too")
    def filter(self, func: str | Callable[[Any], bool] | FilterFunction) -> S:
        """Keep the elements for which an expression (native) or a Python function is true."""
        if isinstance(func, str):
            return self._next("Filter", "filter", definitions.filter_expression(func))
        return self._one_by_one(PythonKind.FILTER, "Filter", func, None)

    def process(self, func: ProcessFunction, output_type: object | None = None) -> S:
        """Call a function with a context for every element; it gives any number of elements."""
        check_kind(func, "process", ProcessFunction)
        tags = SideTags()
        define = elements.element_operator(
            ElementKind.PROCESS,
            ProcessDefinition(func),
            func,
            call_origin(),
            elements.declared_output(func, "process_element", output_type, iterable=True),
            tags=tags,
        )
        return self._next("PROCESS", "process", define, tags=tags)

    def select(self, *expressions: str) -> S:
        """Project to Spark SQL expressions; anything but a plain field needs ``AS name``."""
        return self._next("Select", "select", definitions.select(expressions))

    def drop_duplicates(self, *fields: str, within: DurationLike | None = None) -> S:
        """Keep the first record of each combination of fields, of all fields without any (native).

        With event time a combination is forgotten when the watermark has passed its first record by the
        stream's out-of-orderness, or by ``within``, which also is how late a record may then be.  Without
        event time combinations are kept for ever.
        """
        within_ms = None if within is None else to_ms(within, "within", at_least_ms=1)
        define = definitions.drop_duplicates(fields, within_ms)
        return self._next("Drop Duplicates", "drop_duplicates", define)

    def lookup_join(
        self,
        lookup: JdbcLookup | LookupFunction | AsyncLookupFunction,
        on: On,
        how: str = INNER,
        output_type: object | None = None,
        options: Mapping[str, object] | None = None,
    ) -> S:
        """Add to each record the columns of the rows that an outside table has for its key at that time.

        Flink SQL: ``JOIN table FOR SYSTEM_TIME AS OF o.proc_time``.  All different keys of an Arrow batch are
        asked for at once.  NULL is equal to nothing.  Each record keeps its event time.

        Parameters
        ----------
        lookup : JdbcLookup, LookupFunction or AsyncLookupFunction
            What is asked.
        on : str, list or mapping
            The key: fields that the table's columns are called like, or ``{"field": "column"}``.
        how : str
            ``inner``, or ``left``: records without a row stay, with NULLs.
        output_type : str or type, optional
            Of a function: the columns it finds, as ``"name STRING, city STRING"``; else its annotation says
            it, as ``Iterable[Customer]``.
        options : mapping, optional
            Flink's: ``lookup.cache`` (``NONE`` or ``PARTIAL``), ``lookup.partial-cache.max-rows`` (100000 in
            each worker), ``lookup.partial-cache.expire-after-write``,
            ``lookup.partial-cache.expire-after-access``, ``lookup.partial-cache.cache-missing-key`` (true),
            ``lookup.max-retries`` (3); of an AsyncLookupFunction, too,
            ``table.exec.async-lookup.buffer-capacity`` (100) and ``table.exec.async-lookup.timeout`` (3 min,
            for each key).

        Raises
        ------
        GraphError
            What the call is given is wrong, or a column would be there twice.
        """
        origin = call_origin()
        described = lookup._described if isinstance(lookup, JdbcLookup) else lookup
        with located(origin, "lookup_join"):
            define = lookup_join(described, on, how, output_type, options, origin)
        return self._next("Lookup Join", "lookup_join", define)

    def project(self, *field_indexes: int) -> S:
        """Keep some fields of tuples, by their positions from 0."""
        return self._next("Projection", "project", elements.project(field_indexes, call_origin()))

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> S:
        """Give every element its event time, which all windows after it go by."""
        return self._assign(watermark_strategy, "assign_timestamps_and_watermarks")

    def _assign(self, strategy: WatermarkStrategy, call: str) -> S:
        schema = self._pipeline.schema(self._transformation)
        stream: Any = self
        for name, define in timestamp_definitions(strategy, call, call_origin(), schema):
            stream = stream._next(name, call, define)
        # a keyed stream becomes a plain one also where there is no operator
        plain = stream is self
        made: S = self._made(self._transformation, self._strategy, self._pinned) if plain else stream
        return made

    def get_side_output(self, output_tag: OutputTag) -> S:
        """What the operator of this stream emits under a tag."""
        check_kind(output_tag, "get_side_output", OutputTag)
        name, operator, kind = f"Side Output {output_tag.tag_id}", self._transformation, None
        source, of_source = self._pipeline.source_sides.get(operator, (operator, {}))
        if output_tag.tag_id in of_source:
            operator, kind = source, of_source[output_tag.tag_id]
        tags = self._pipeline.side_tags.get(operator)
        with located(call_origin(), "get_side_output"):
            if tags is not None:
                tags.add(output_tag)
        define = elements.side_output(output_tag, kind)
        return self._next(name, "get_side_output", define, (Input(operator),))

    # --- many streams and partitions --------------------------------------------------------

    def union(self, *streams: StreamBase[S]) -> S:
        """All elements of this and other streams of the same type."""
        inputs = [stream._input() for stream in (self, *streams)]
        return self._next("Union", "union", definitions.union(), inputs)

    def rebalance(self) -> S:
        """Spread the elements evenly over the subtasks of the next operator."""
        return self._shipped(ShipStrategy.REBALANCE)

    def rescale(self) -> S:
        """Spread the elements evenly over the subtasks of the next operator that are nearby."""
        return self._shipped(ShipStrategy.RESCALE)

    def shuffle(self) -> S:
        """Spread the elements at random over the subtasks of the next operator."""
        return self._shipped(ShipStrategy.SHUFFLE)

    def forward(self) -> S:
        """Hand the elements to the same subtask of the next operator; both have one parallelism."""
        return self._shipped(ShipStrategy.FORWARD, pinned=True)

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int] | Partitioner,
        key_selector: Callable[[Any], Any] | KeySelector,
    ) -> S:
        """Hand every element to the subtask that ``partitioner(key, subtasks)`` names."""
        check_callable(partitioner, "partition_custom")
        check_callable(key_selector, "partition_custom")
        define = elements.partition_custom(partitioner, key_selector, call_origin())
        inputs = (self._input(ShipStrategy.CUSTOM),)
        return self._next("Custom Partitioning", "partition_custom", define, inputs)

    # --- ends -------------------------------------------------------------------------------

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the elements to a sink."""
        return self._end(sink, "sink_to")

    def add_sink(self, sink_func: Sink) -> DataStreamSink:
        """PyFlink's older name of :meth:`sink_to`."""
        return self._end(sink_func, "add_sink")

    @differs("lines of a stream of columns do not show the subtask's number")
    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the elements on the driver's standard output.

        A line begins with ``sink_identifier`` and, if the sink has several subtasks, the number of its own
        from 1: ``label> ``, ``2> ``, ``label:2> ``.
        """
        return self._end(PrintSink(sink_identifier or ""), "print")

    def write_to_socket(
        self, host: str, port: int, serialization_schema: SerializationSchema
    ) -> DataStreamSink:
        """Write the elements as lines to a TCP server; for trying out.  Java's Flink has it, PyFlink has not.

        Parameters
        ----------
        host : str
        port : int
        serialization_schema : SerializationSchema
            How elements become lines, which are ended by a line feed.
        """
        return self._end(SocketSink(host, port, serialization_schema), "write_to_socket")

    def foreach_batch(self, func: Callable[[Any, int], None]) -> DataStreamSink:
        """Call ``func(dataframe, batch_id)`` in the driver for every micro-batch."""
        origin = definition_origin(func, call_origin())

        def make(_: object) -> ForeachBatchSink:
            from yarnflow.graph.closures import make_closure

            return ForeachBatchSink(make_closure(func, origin))

        return DataStreamSink(
            self._then("Sink: Foreach Batch", "foreach_batch", definitions.column_sink(make))
        )

    def _end(self, sink: Sink, call: str) -> DataStreamSink:
        if not isinstance(sink, Sink):
            raise GraphError(
                f"{call_origin()}: {call}(): {sink!r} is no sink; wrap a DataSource of pyspark in "
                "PythonSink(…), or call foreach_batch(f)"
            )
        return DataStreamSink(self._then(f"Sink: {sink.name}", call, definitions.sink(sink.operator)))

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Execute the program and read the elements of this stream while the job runs.

        Each element comes once, also when drivers or masters fail meanwhile.

        Parameters
        ----------
        job_execution_name : str, optional
            Name of the job.
        limit : int, optional
            Cancel the job when there are so many elements.

        Returns
        -------
        CloseableIterator or list
            A list of at most ``limit`` elements where there is a limit.

        Raises
        ------
        GraphError
            The limit is below 1, or the job cannot run as it is.
        UserCodeError, JobFailed, JobCanceled
            The job did not finish; an iterator raises it.
        DuplicateJob
            A job of the same key runs already, and another program reads its elements.
        """
        if limit is not None and (type(limit) is not int or limit < 1):
            raise GraphError(
                f"{call_origin()}: execute_and_collect(): limit {limit!r} must be a whole number, 1 or more"
            )
        self._then("Sink: Collect", "execute_and_collect", definitions.collect_sink(limit))
        found = CloseableIterator(self._pipeline.environment._execute_and_collect(job_execution_name))
        if limit is None:
            return found
        with found:
            # no further element is asked for: there might never be one
            return list(islice(found, limit))


class CloseableIterator:
    """Elements of a job as they come; closing it cancels the job if it has not ended.

    A program that ends leaves no open one behind: its jobs are canceled then.
    """

    def __init__(self, elements: Iterator[Any], close: Callable[[], object] | None = None) -> None:
        self._elements = iter(elements)
        self._close = close if close is not None else getattr(elements, "close", None)

    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    def next(self) -> Any:
        """The next element.  Raises StopIteration at the end."""
        return next(self._elements)

    def close(self) -> None:
        """Cancel the job if it has not ended, and wait until it has."""
        if self._close is not None:
            self._close()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_callable(func: Any, call: str, *also: type) -> None:
    if not callable(func) and not isinstance(func, also):
        said = f"{func!r} is neither a function nor a function class's object"
        raise GraphError(f"{call_origin()}: {call}(): {said}")


def check_kind(func: Any, call: str, *kinds: type) -> None:
    if not isinstance(func, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        shown = func.__name__ if isinstance(func, type) else type(func).__name__
        hint = f"; make an object of it: {shown}()" if isinstance(func, type) else ""
        if isinstance(func, _OF_KEYED_STREAMS) and not issubclass(kinds[0], _OF_KEYED_STREAMS):
            hint = "; it works on keyed streams: call key_by(…) before it"
        raise GraphError(f"{call_origin()}: {call}(): a {wanted} is needed, not {shown}{hint}")
