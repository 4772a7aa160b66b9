"""Keyed and windowed streams.

Decides nothing itself; see :mod:`yarnflow.api.datastream`.  PyFlink counterparts:
``KeyedStream``, ``WindowedStream``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from yarnflow.api import definitions
from yarnflow.api.datastream import DataStream
from yarnflow.api.definitions import Aggregates, FieldAggregate, KeyDefinition
from yarnflow.api.origin import call_origin
from yarnflow.api.windows import WindowAssigner
from yarnflow.errors import GraphError
from yarnflow.graph.functions import ProcessWindowFunction, ReduceFunction
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import PythonKind
from yarnflow.graph.stream_graph import Definition, Input, Transformation

_COUNT = "count(*) AS count"


def keyed_stream(stream: DataStream, keys: Sequence[Any], key_type: object | None, origin: str) -> KeyedStream:
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


class KeyedStream(DataStream):
    """A stream grouped by key.

    Without a window aggregates run: every micro-batch emits the new value of each key it
    touched.  As a plain stream it is the stream it was made of.
    """

    def __init__(
        self, stream: DataStream, key: KeyDefinition, key_function: Definition | None, origin: str
    ) -> None:
        super().__init__(stream._environment, stream._transformation, stream._strategy)
        self._key = key
        self._key_function = key_function
        self._origin = origin
        self._keyed: DataStream | None = None

    def _input(self) -> DataStream:
        """The stream with the key field on it: one operator for all uses of this key."""
        if self._key_function is None:
            return DataStream(self._environment, self._transformation, self._strategy)
        if self._keyed is None:
            inputs = (Input(self._transformation, self._strategy),)
            keyed = Transformation("Key By", "key_by", self._origin, self._key_function, inputs)
            self._keyed = DataStream(self._environment, self._environment._add(keyed))
        return self._keyed

    def _by_key(self, name: str, call: str, define: Definition) -> DataStream:
        transformation = self._input()._then(name, call, define, ShipStrategy.HASH)
        return DataStream(self._environment, transformation)

    def _aggregate(self, call: str, aggregates: Aggregates) -> DataStream:
        return self._by_key("Keyed Aggregation", call, definitions.running_aggregate(self._key, aggregates))

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine each key's records into one of the same fields, updated for ever."""
        return self._by_key("Keyed Reduce", "reduce", definitions.keyed_reduce(self._key, func, call_origin()))

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
        func: Callable[[Any, ProcessWindowFunction.Context, Iterable[Any]], Iterable[Any]] | ProcessWindowFunction,
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

