"""Streams of records: plain, keyed, windowed, and their ends.

Decides nothing itself: every call records what was asked for and where, and gives the next
stream; meaning and errors come when the job is executed (:mod:`yarnflow.api.definitions`).
PyFlink counterparts: ``DataStream``, ``KeyedStream``, ``WindowedStream``, ``DataStreamSink``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from yarnflow.api import definitions
from yarnflow.api.connectors import PrintSink, Sink
from yarnflow.api.definitions import Aggregates, FieldAggregate, KeyDefinition
from yarnflow.api.origin import call_origin, definition_origin
from yarnflow.api.watermark import WatermarkStrategy
from yarnflow.api.windows import WindowAssigner
from yarnflow.errors import GraphError
from yarnflow.graph.functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import ForeachBatchSink, PythonKind
from yarnflow.graph.stream_graph import (
    UPPER_BOUND_MAX_PARALLELISM,
    ChainingStrategy,
    Definition,
    Input,
    Transformation,
)

_Self = TypeVar("_Self", bound="_Settings")


class Pipeline:
    """The transformations of a program since its last ``execute``, in order of their calls."""

    def __init__(self) -> None:
        self.transformations: list[Transformation] = []

    def add(self, transformation: Transformation) -> Transformation:
        self.transformations.append(transformation)
        return transformation


class _Settings:
    """Setters that streams and sinks share; they change the last operator and give ``self``."""

    _transformation: Transformation

    def name(self: _Self, name: str) -> _Self:
        """Name the operator for plans, logs and the dashboard."""
        self._transformation.name = name
        return self

    def uid(self: _Self, uid: str) -> _Self:
        """Give the operator an identity that stays when the program changes around it."""
        self._transformation.uid = uid
        return self

    def set_parallelism(self: _Self, parallelism: int) -> _Self:
        """Set the operator's number of subtasks."""
        self._transformation.parallelism = check_parallelism(parallelism)
        return self

    def set_max_parallelism(self: _Self, max_parallelism: int) -> _Self:
        """Set the most subtasks the operator may ever have, 1 to 32768."""
        self._transformation.max_parallelism = check_max_parallelism(max_parallelism)
        return self

    def start_new_chain(self: _Self) -> _Self:
        """Do not run the operator in its input's task."""
        self._transformation.chaining = ChainingStrategy.HEAD
        return self

    def disable_chaining(self: _Self) -> _Self:
        """Run the operator in a task of its own."""
        self._transformation.chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self: _Self, slot_sharing_group: str) -> _Self:
        """Share slots with the operators of this group only."""
        self._transformation.slot_sharing_group = slot_sharing_group
        return self


class DataStreamSink(_Settings):
    """The end of a stream."""

    def __init__(self, transformation: Transformation) -> None:
        self._transformation = transformation


class DataStream(_Settings):
    """A stream of records.

    Functions get the bare value of a scalar stream, else a :class:`~yarnflow.api.Row`.  What
    they return is told by ``output_type`` (DDL text or a Python type) or their annotation.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        transformation: Transformation,
        strategy: ShipStrategy = ShipStrategy.FORWARD,
    ) -> None:
        self._pipeline = pipeline
        self._transformation = transformation
        self._strategy = strategy

    def _then(
        self, name: str, call: str, define: Definition, strategy: ShipStrategy | None = None
    ) -> Transformation:
        """Record an operator that reads this stream."""
        inputs = (Input(self._transformation, strategy or self._strategy),)
        return self._pipeline.add(Transformation(name, call, call_origin(), define, inputs))

    def _next(self, name: str, call: str, define: Definition) -> DataStream:
        return DataStream(self._pipeline, self._then(name, call, define))

    # --- one record at a time ------------------------------------------------------------

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: object | None = None) -> DataStream:
        """Replace every record by what ``func`` makes of it."""
        define = definitions.python(PythonKind.MAP, func, call_origin(), output_type)
        return self._next("Map", "map", define)

    def flat_map(
        self, func: Callable[[Any], Iterable[Any]] | FlatMapFunction, output_type: object | None = None
    ) -> DataStream:
        """Replace every record by any number of records; annotate ``Iterable[T]``."""
        define = definitions.python(PythonKind.FLAT_MAP, func, call_origin(), output_type)
        return self._next("Flat Map", "flat_map", define)

    def filter(self, func: str | Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Keep the records for which an expression (native) or a Python function is true."""
        if isinstance(func, str):
            return self._next("Filter", "filter", definitions.filter_expression(func))
        return self._next("Filter", "filter", definitions.python(PythonKind.FILTER, func, call_origin()))

    def select(self, *expressions: str) -> DataStream:
        """Project to Spark SQL expressions; anything but a plain field needs ``AS name``."""
        return self._next("Select", "select", definitions.select(expressions))

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        """Give every record its event time, which all windows after it go by."""
        return self._assign(watermark_strategy, "assign_timestamps_and_watermarks")

    def _assign(self, strategy: WatermarkStrategy, call: str) -> DataStream:
        assigner, late_ms = strategy.timestamp_assigner, strategy.out_of_orderness_ms
        if late_ms is None:
            return self
        if assigner is None:
            raise GraphError(
                f"{call_origin()}: {call}(): the sources of Spark give records no event time; "
                "add .with_timestamp_assigner('field') to the strategy"
            )
        if isinstance(assigner, str):
            define = definitions.assign_timestamps(assigner, late_ms)
            return self._next("Timestamps/Watermarks", call, define)
        origin = definition_origin(assigner, call_origin())
        function = definitions.timestamp_function(assigner)
        timed = self._next("Timestamps", call, definitions.python(PythonKind.TIMESTAMP, function, origin))
        return timed._next("Timestamps/Watermarks", call, definitions.assign_timestamps("", late_ms))

    # --- many streams and partitions --------------------------------------------------------

    def union(self, *streams: DataStream) -> DataStream:
        """All records of this and other streams of the same fields."""
        inputs = tuple(Input(stream._transformation, stream._strategy) for stream in (self, *streams))
        transformation = Transformation("Union", "union", call_origin(), definitions.union(), inputs)
        return DataStream(self._pipeline, self._pipeline.add(transformation))

    def rebalance(self) -> DataStream:
        """Spread the records evenly over the subtasks of the next operator."""
        return DataStream(self._pipeline, self._transformation, ShipStrategy.REBALANCE)

    def key_by(
        self, *keys: str | Callable[[Any], Any] | KeySelector, key_type: object | None = None
    ) -> KeyedStream:
        """Group the records by fields or expressions (native), or by one Python function.

        Parameters
        ----------
        *keys
            ``"origin", "upper(carrier) AS carrier"``, or one function.
        key_type : str or type, optional
            Type of what the function returns, where it is not annotated.
        """
        return _keyed_stream(self, keys, key_type, call_origin())

    # --- ends -------------------------------------------------------------------------------

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the records to a sink."""
        return self._end(sink, "sink_to")

    def print(self, sink_identifier: str = "") -> DataStreamSink:
        """Print the records on the driver's standard output, each after ``sink_identifier``."""
        return self._end(PrintSink(sink_identifier), "print")

    def foreach_batch(self, func: Callable[[Any, int], None]) -> DataStreamSink:
        """Call ``func(dataframe, batch_id)`` in the driver for every micro-batch."""
        origin = definition_origin(func, call_origin())

        def make(_: object) -> ForeachBatchSink:
            from yarnflow.graph.closures import make_closure

            return ForeachBatchSink(make_closure(func, origin))

        return DataStreamSink(self._then("Sink: Foreach Batch", "foreach_batch", definitions.sink(make)))

    def _end(self, sink: Sink, call: str) -> DataStreamSink:
        return DataStreamSink(self._then(f"Sink: {sink.name}", call, definitions.sink(sink.operator)))


def _keyed_stream(
    stream: DataStream, keys: Sequence[Any], key_type: object | None, origin: str
) -> KeyedStream:
    """``key_by``: columns stay text; a function becomes an operator once the key is used."""
    if keys and all(isinstance(key, str) for key in keys):
        if key_type is not None:
            raise GraphError(f"{origin}: key_by(): key_type is for key functions; drop it")
        return KeyedStream(stream, KeyDefinition(tuple(keys)), None, origin)
    if len(keys) != 1:
        raise GraphError(f"{origin}: key_by(): give field names or expressions, or exactly one function")
    if not callable(keys[0]):
        raise GraphError(f"{origin}: key_by(): {keys[0]!r} is neither an expression nor a function")
    define = definitions.python(PythonKind.KEY, keys[0], origin, key_type)
    return KeyedStream(stream, KeyDefinition(), define, origin)


_COUNT: Final = "count(*) AS count"


class KeyedStream(DataStream):
    """A stream grouped by key.

    Without a window aggregates run: every micro-batch emits the new value of each key it
    touched.  As a plain stream it is the stream it was made of.
    """

    def __init__(
        self, stream: DataStream, key: KeyDefinition, key_function: Definition | None, origin: str
    ) -> None:
        super().__init__(stream._pipeline, stream._transformation, stream._strategy)
        self._key = key
        self._key_function = key_function
        self._origin = origin
        self._keyed: DataStream | None = None

    def _input(self) -> DataStream:
        """The stream with the key field on it: one operator for all uses of this key."""
        if self._key_function is None:
            return DataStream(self._pipeline, self._transformation, self._strategy)
        if self._keyed is None:
            inputs = (Input(self._transformation, self._strategy),)
            keyed = Transformation("Key By", "key_by", self._origin, self._key_function, inputs)
            self._keyed = DataStream(self._pipeline, self._pipeline.add(keyed))
        return self._keyed

    def _by_key(self, name: str, call: str, define: Definition) -> DataStream:
        transformation = self._input()._then(name, call, define, ShipStrategy.HASH)
        return DataStream(self._pipeline, transformation)

    def _aggregate(self, call: str, aggregates: Aggregates) -> DataStream:
        return self._by_key("Keyed Aggregation", call, definitions.running_aggregate(self._key, aggregates))

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine each key's records into one of the same fields, updated for ever."""
        return self._by_key(
            "Keyed Reduce", "reduce", definitions.keyed_reduce(self._key, func, call_origin())
        )

    def sum(self, field: str) -> DataStream:
        """Running sum of a field; results: key fields and the field."""
        return self._aggregate("sum", FieldAggregate("sum", field))

    def min(self, field: str) -> DataStream:
        """Running minimum of a field; results: key fields and the field."""
        return self._aggregate("min", FieldAggregate("min", field))

    def max(self, field: str) -> DataStream:
        """Running maximum of a field; results: key fields and the field."""
        return self._aggregate("max", FieldAggregate("max", field))

    def count(self) -> DataStream:
        """Running number of records; results: key fields and ``count``."""
        return self._aggregate("count", (_COUNT,))

    def aggregate(self, *aggregates: str) -> DataStream:
        """Running aggregates, for example ``"avg(delay) AS mean"``; results: key fields, aggregates."""
        return self._aggregate("aggregate", aggregates)

    def window(self, assigner: WindowAssigner) -> WindowedStream:
        """Group each key's records into windows of event time."""
        return WindowedStream(self, assigner)


class WindowedStream:
    """A keyed stream in windows of event time; each emits once, when the watermark passes its end."""

    def __init__(self, keyed: KeyedStream, assigner: WindowAssigner) -> None:
        self._stream = keyed
        self._window = assigner.window

    def _aggregate(self, call: str, aggregates: Aggregates) -> DataStream:
        define = definitions.window_aggregate(self._stream._key, self._window, aggregates)
        return self._stream._by_key("Window", call, define)

    def aggregate(self, *aggregates: str) -> DataStream:
        """Built-in aggregates; results: key fields, window_start, window_end, aggregates."""
        return self._aggregate("aggregate", aggregates)

    def sum(self, field: str) -> DataStream:
        """Sum of a field, under its name."""
        return self._aggregate("sum", FieldAggregate("sum", field))

    def min(self, field: str) -> DataStream:
        """Minimum of a field, under its name."""
        return self._aggregate("min", FieldAggregate("min", field))

    def max(self, field: str) -> DataStream:
        """Maximum of a field, under its name."""
        return self._aggregate("max", FieldAggregate("max", field))

    def count(self) -> DataStream:
        """Number of records, as ``count``."""
        return self._aggregate("count", (_COUNT,))

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine a window's records into one of the same fields."""
        define = definitions.window_reduce(self._stream._key, self._window, func, call_origin())
        return self._stream._by_key("Window Reduce", "reduce", define)

    def process(
        self,
        func: (
            Callable[[Any, ProcessWindowFunction.Context, Iterable[Any]], Iterable[Any]]
            | ProcessWindowFunction
        ),
        output_type: object | None = None,
    ) -> DataStream:
        """Call ``func(key, context, elements)`` once per key and window; it returns records."""
        return self._process("process", func, output_type)

    def apply(
        self, func: Callable[[Any, Any, Iterable[Any]], Iterable[Any]], output_type: object | None = None
    ) -> DataStream:
        """As :meth:`process`, with the window itself in place of the context."""
        return self._process("apply", func, output_type)

    def _process(self, call: str, func: Any, output_type: object | None) -> DataStream:
        define = definitions.window_process(
            self._stream._key, self._window, func, call_origin(), output_type, apply=call == "apply"
        )
        return self._stream._by_key("Window Process", call, define)


def check_parallelism(parallelism: int) -> int:
    """A parallelism of 1 or more.  Raises GraphError."""
    if type(parallelism) is not int or parallelism < 1:
        raise GraphError(f"{call_origin()}: parallelism {parallelism!r} must be a whole number, 1 or more")
    return parallelism


def check_max_parallelism(max_parallelism: int) -> int:
    """A maximum parallelism within Flink's bounds.  Raises GraphError."""
    if type(max_parallelism) is not int or not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        raise GraphError(
            f"{call_origin()}: maximum parallelism {max_parallelism!r} must be from 1 to "
            f"{UPPER_BOUND_MAX_PARALLELISM}"
        )
    return max_parallelism
