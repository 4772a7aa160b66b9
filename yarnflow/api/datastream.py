"""Streams of records.

Decides nothing itself: every call records what was asked for and where, and gives the next
stream; meaning and errors come when the job is executed (:mod:`yarnflow.api.definitions`).
PyFlink counterparts: ``DataStream``, ``DataStreamSink``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from yarnflow.api import definitions
from yarnflow.api.connectors import PrintSink, Sink
from yarnflow.api.origin import call_origin, definition_origin
from yarnflow.api.watermark import WatermarkStrategy
from yarnflow.errors import GraphError
from yarnflow.graph.functions import FilterFunction, FlatMapFunction, KeySelector, MapFunction
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import ForeachBatchSink, PythonKind
from yarnflow.graph.stream_graph import (
    UPPER_BOUND_MAX_PARALLELISM,
    ChainingStrategy,
    Definition,
    Input,
    Transformation,
)

if TYPE_CHECKING:
    from yarnflow.api.environment import StreamExecutionEnvironment
    from yarnflow.api.keyed import KeyedStream

_Self = TypeVar("_Self", bound="_Settings")


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
        environment: StreamExecutionEnvironment,
        transformation: Transformation,
        strategy: ShipStrategy = ShipStrategy.FORWARD,
    ) -> None:
        self._environment = environment
        self._transformation = transformation
        self._strategy = strategy

    def _then(
        self, name: str, call: str, define: Definition, strategy: ShipStrategy | None = None
    ) -> Transformation:
        """Record an operator that reads this stream."""
        inputs = (Input(self._transformation, strategy or self._strategy),)
        return self._environment._add(Transformation(name, call, call_origin(), define, inputs))

    def _next(self, name: str, call: str, define: Definition) -> DataStream:
        return DataStream(self._environment, self._then(name, call, define))

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
        return DataStream(self._environment, self._environment._add(transformation))

    def rebalance(self) -> DataStream:
        """Spread the records evenly over the subtasks of the next operator."""
        return DataStream(self._environment, self._transformation, ShipStrategy.REBALANCE)

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
        from yarnflow.api.keyed import keyed_stream

        return keyed_stream(self, keys, key_type, call_origin())

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


def check_parallelism(parallelism: int) -> int:
    """A parallelism of 1 or more.  Raises GraphError."""
    if type(parallelism) is not int or parallelism < 1:
        raise GraphError(f"{call_origin()}: parallelism {parallelism!r} must be a whole number, 1 or more")
    return parallelism


def check_max_parallelism(max_parallelism: int) -> int:
    """A maximum parallelism within Flink's bounds.  Raises GraphError."""
    if type(max_parallelism) is not int or not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        raise GraphError(
            f"{call_origin()}: maximum parallelism {max_parallelism!r} must be from 1 to {UPPER_BOUND_MAX_PARALLELISM}"
        )
    return max_parallelism
