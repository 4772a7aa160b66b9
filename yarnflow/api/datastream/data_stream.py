"""Streams of elements, plain and keyed.  PyFlink: ``pyflink.datastream.data_stream``.

Decides nothing itself: every call records what was asked for and where, and gives the next stream;
meaning and errors come when the job is executed (:mod:`yarnflow.api.building`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, overload

from yarnflow.api.building import definitions, elements
from yarnflow.api.building.definitions import Aggregates, FieldAggregate, KeyDefinition
from yarnflow.api.building.elements import InputOf, KeyBy, SideTags
from yarnflow.api.building.kept_state import EVERY_KEY, kept_by_function
from yarnflow.api.building.processing_timers import function_may_register
from yarnflow.api.origin import call_origin
from yarnflow.api.streams.connected_streams import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
from yarnflow.api.streams.joined_streams import CoGroupedStreams, IntervalJoin, JoinedStreams
from yarnflow.api.streams.stream_base import (
    CloseableIterator,
    DataStreamSink,
    StreamBase,
    check_callable,
    check_kind,
)
from yarnflow.api.streams.windowed_stream import AllWindowedStream, WindowedStream
from yarnflow.errors import GraphError, UnsupportedGraph
from yarnflow.graph.closures import copied
from yarnflow.graph.compatibility import differs, same_and
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import ElementKind, PythonKind
from yarnflow.graph.stream_graph import Definition, Input, Transformation, located
from yarnflow.graph.type_info import PICKLED, TypeInformation
from yarnflow.operators.functions.elements import KeySelector, ReduceFunction
from yarnflow.operators.functions.process import KeyedProcessFunction
from yarnflow.operators.process.process_elements import KeyedProcessDefinition
from yarnflow.operators.process.reductions import AggregateDefinition, Aggregation, ReduceDefinition
from yarnflow.operators.state.descriptors import MapStateDescriptor
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.count_windows import CountSlidingWindowAssigner, CountTumblingWindowAssigner

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
    "WindowedStream",
]

_COUNT: Final = "count(*) AS count"
_BY_COLUMNS: Final = "of a stream keyed by columns, which PyFlink has not: "


class DataStream(StreamBase["DataStream"]):
    """A stream of elements.

    Functions get the elements as the function before emitted them.  On a stream of columns (files,
    expressions, functions whose types are DDL text or annotations) they get the bare value of a scalar
    stream, else a :class:`~yarnflow.api.Row`.
    """

    def _made(
        self,
        transformation: Transformation,
        strategy: ShipStrategy = ShipStrategy.FORWARD,
        pinned: bool = False,
    ) -> DataStream:
        return DataStream(self._pipeline, transformation, strategy, pinned)

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams[DataStream]: ...

    @overload
    def connect(self, ds: BroadcastStream[DataStream]) -> BroadcastConnectedStream[DataStream]: ...

    def connect(
        self, ds: DataStream | BroadcastStream[DataStream]
    ) -> ConnectedStreams[DataStream] | BroadcastConnectedStream[DataStream]:
        """Two streams for one function, which need not have one type."""
        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, ds)

    def join(self, other_stream: DataStream) -> JoinedStreams[DataStream]:
        """Pairs of elements of one key and window: ``.where(…).equal_to(…).window(…).apply(…)``."""
        check_kind(other_stream, "join", DataStream)
        return JoinedStreams(_unkeyed(self), _unkeyed(other_stream))

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams[DataStream]:
        """All elements of one key and window of both: ``.where(…).equal_to(…).window(…).apply(…)``."""
        check_kind(other_stream, "co_group", DataStream)
        return CoGroupedStreams(_unkeyed(self), _unkeyed(other_stream))

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> BroadcastStream[DataStream]: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream | BroadcastStream[DataStream]:
        """Hand every element to all subtasks; with descriptors, for :meth:`connect` of another stream."""
        shipped = self._shipped(ShipStrategy.BROADCAST)
        if broadcast_state_descriptor is None:
            return shipped
        descriptors = [broadcast_state_descriptor, *other_broadcast_state_descriptors]
        for descriptor in descriptors:
            check_kind(descriptor, "broadcast", MapStateDescriptor)
        return BroadcastStream(shipped, descriptors)

    @same_and("takes fields and expressions as text, too")
    def key_by(
        self,
        key_selector: str | Callable[[Any], Any] | KeySelector,
        *more: str | TypeInformation,
        key_type: object | None = None,
    ) -> KeyedStream:
        """Group the elements by one Python function, or by fields or expressions (native).

        Parameters
        ----------
        key_selector
            One function, or ``"origin", "upper(carrier) AS carrier"``.
        key_type : TypeInformation, str or type, optional
            Type of what the function returns.
        """
        return _keyed_stream(self, (key_selector, *more), key_type, call_origin())

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream[DataStream]:
        """Group all elements into windows, whatever their key; one subtask does it."""
        return AllWindowedStream(self, window_assigner)

    @differs("every job computes the stream anew")
    def cache(self) -> CachedDataStream:
        """Let later jobs of the program use the stream again."""
        return CachedDataStream(self._pipeline, self._transformation, self._strategy)


def _unkeyed(stream: DataStream) -> DataStream:
    return stream._origin_stream if isinstance(stream, KeyedStream) else stream


def _keyed_stream(
    stream: DataStream, keys: Sequence[Any], key_type: object | None, origin: str
) -> KeyedStream:
    """``key_by``: columns stay text; a function becomes an operator once the key is used."""
    if len(keys) == 2 and not isinstance(keys[0], str) and key_type is None:
        # PyFlink's second argument by position
        keys, key_type = keys[:1], keys[1]
    if all(isinstance(key, str) for key in keys):
        if key_type is not None:
            raise GraphError(f"{origin}: key_by(): key_type is for key functions; drop it")
        return KeyedStream(stream, KeyDefinition(tuple(keys)), None, KeyBy(columns=tuple(keys)), origin)
    if len(keys) != 1:
        raise GraphError(f"{origin}: key_by(): give field names or expressions, or exactly one function")
    if not callable(keys[0]):
        raise GraphError(f"{origin}: key_by(): {keys[0]!r} is neither an expression nor a function")
    with located(origin, "key_by"):
        kind = elements.declared_type(key_type) or PICKLED
    define = definitions.python(PythonKind.KEY, keys[0], origin, definitions.key_columns(key_type))
    return KeyedStream(stream, KeyDefinition(), define, KeyBy(copied(keys[0], origin), kind), origin)


def _not_of(what: str, stream: str) -> Any:
    """A setting that makes no sense on a stream that has no operator of its own."""

    def setting(self: Any, *_: object, **__: object) -> Any:
        raise UnsupportedGraph(
            f"{call_origin()}: {what} of a {stream} is not possible; set it on the operator before or after"
        )

    return setting


class KeyedStream(DataStream):
    """A stream grouped by key.

    ``reduce``, ``sum`` … of a stream keyed by a function emit for every element.  Keyed by columns, and
    in the forms that take expressions, they emit the new value of each key that a micro-batch touched.

    What has no keyed state (a function that is not opened with a context, a sink, a union) gets each element
    in the subtask of its key, as in Flink.  The exchange goes in one place only: before operators on columns
    (expressions, SQL, sinks of columns), whose results do not depend on where a record is.
    """

    AccumulateType = Aggregation

    def __init__(
        self,
        stream: DataStream,
        key: KeyDefinition,
        key_function: Definition | None,
        key_by: KeyBy,
        origin: str,
    ) -> None:
        super().__init__(stream._pipeline, stream._transformation, stream._strategy, stream._pinned)
        self._origin_stream = stream
        self._key = key
        self._key_function = key_function
        self._selection = key_by
        self._origin = origin
        self._keyed: DataStream | None = None
        self._partitioned: Transformation | None = None

    @property
    def _key_by(self) -> KeyBy:
        return self._selection

    def _input(self, strategy: ShipStrategy | None = None) -> Input:
        # a keyed operator has the key itself
        if strategy is not None or self._pipeline.schema(self._transformation).element_type is None:
            return super()._input(strategy)
        return self._input_of_function()

    def _input_of_function(self) -> Input:
        if self._partitioned is None:
            define = elements.partition_by_key(self._selection, self._origin)
            inputs = (self._origin_stream._input(),)
            made = Transformation("Key By", "key_by", self._origin, define, inputs)
            self._partitioned = self._pipeline.add(made)
        return Input(self._partitioned)

    def _columns(self) -> DataStream:
        """The stream with the key field on it: one operator for all uses of this key."""
        if self._key_function is None:
            return DataStream(self._pipeline, self._transformation, self._strategy)
        if self._keyed is None:
            keyed = Transformation(
                "Key By", "key_by", self._origin, self._key_function, (self._origin_stream._input(),)
            )
            self._keyed = DataStream(self._pipeline, self._pipeline.add(keyed))
        return self._keyed

    def _by_key(self, name: str, call: str, define: Definition) -> DataStream:
        stream = self._columns()
        return stream._next(name, call, define, (stream._input(ShipStrategy.HASH),))

    def _elements(
        self, name: str, call: str, define: Definition, tags: SideTags | None = None, parallel: bool = True
    ) -> DataStream:
        stream = self._next(name, call, define, (self._input(ShipStrategy.HASH),), tags)
        stream._transformation.parallel = parallel
        return stream

    def _aggregate(self, call: str, aggregates: Aggregates) -> DataStream:
        return self._by_key("Keyed Aggregation", call, definitions.running_aggregate(self._key, aggregates))

    # --- functions -----------------------------------------------------------------------

    def _one_by_one(
        self, kind: PythonKind, name: str, func: Any, output_type: object | None, key: KeyBy | None = None
    ) -> DataStream:
        # only what is opened with a context can have state, for which elements must go by their key
        keyed = self._key_by if elements.takes_context(func) else None
        return super()._one_by_one(kind, name, func, output_type, keyed)

    @same_and(_BY_COLUMNS + "emits per key and micro-batch")
    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine each key's elements into one of the same type, emitted for every element."""
        check_callable(func, "reduce")
        if self._key.columns:
            define = definitions.keyed_reduce(self._key, func, call_origin())
            return self._by_key("Keyed Reduce", "reduce", define)
        return self._reduce("reduce", ReduceDefinition(func), func)

    def _reduce(
        self, call: str, definition: ReduceDefinition | AggregateDefinition, func: Any, shown: str = ""
    ) -> DataStream:
        settings = self._pipeline.settings
        define = elements.element_operator(
            ElementKind.REDUCE,
            definition,
            func,
            call_origin(),
            elements.same_output,
            inputs=(InputOf(self._key_by),),
            stateful=True,
            settled=lambda: {"at_end": settings.batch},
            name=shown,
            keeps=EVERY_KEY,
        )
        return self._elements("Reduce", call, define)

    def _field(self, aggregation: Aggregation, position: int | str) -> DataStream:
        call = aggregation.value
        if type(position) is not int and not isinstance(position, str):
            said = f"field {position!r} is neither a position nor a name"
            raise GraphError(f"{call_origin()}: {call}(): {said}")
        native = aggregation in (Aggregation.SUM, Aggregation.MIN, Aggregation.MAX)
        if self._key.columns and native:
            return self._aggregate(call, FieldAggregate(call, position))
        return self._reduce(call, AggregateDefinition(aggregation, position), None, f"{call}({position!r})")

    @same_and(_BY_COLUMNS + "emits key and field, per key and micro-batch")
    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Running sum of a field."""
        return self._field(Aggregation.SUM, position_to_sum)

    @same_and(_BY_COLUMNS + "emits key and field, per key and micro-batch")
    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Running minimum of a field."""
        return self._field(Aggregation.MIN, position_to_min)

    @same_and(_BY_COLUMNS + "emits key and field, per key and micro-batch")
    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Running maximum of a field."""
        return self._field(Aggregation.MAX, position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The element with the smallest field so far."""
        return self._field(Aggregation.MIN_BY, position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The element with the largest field so far."""
        return self._field(Aggregation.MAX_BY, position_to_max_by)

    def process(  # type: ignore[override]
        self, func: KeyedProcessFunction, output_type: object | None = None
    ) -> DataStream:
        """Call a function with a context, state and timers for every element."""
        check_kind(func, "process", KeyedProcessFunction)
        tags = SideTags()
        define = elements.element_operator(
            ElementKind.KEYED_PROCESS,
            KeyedProcessDefinition(func),
            func,
            call_origin(),
            elements.declared_output(func, "process_element", output_type, iterable=True),
            inputs=(InputOf(self._key_by),),
            stateful=True,
            tags=tags,
            processing_timers=function_may_register(func),
            keeps=kept_by_function(func),
        )
        return self._elements("KEYED PROCESS", "process", define, tags)

    # --- expressions -------------------------------------------------------------------------

    def count(self) -> DataStream:
        """Running number of records; results: key fields and ``count``."""
        return self._aggregate("count", (_COUNT,))

    def aggregate(self, *aggregates: str) -> DataStream:
        """Running aggregates, for example ``"avg(delay) AS mean"``; results: key fields, aggregates."""
        return self._aggregate("aggregate", aggregates)

    # --- windows and keys -----------------------------------------------------------------------

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream[DataStream]:
        """Group each key's elements into windows."""
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[DataStream]:
        """Windows of so many elements of a key; with ``slide`` a new one begins after so many."""
        with located(call_origin(), "count_window"):
            assigner: WindowAssigner[Any, Any] = (
                CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size)
            )
        return WindowedStream(self, assigner)

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin[DataStream]:
        """Pairs of elements of one key that are near in event time: ``.between(…, …).process(…)``."""
        check_kind(other_stream, "interval_join", KeyedStream)
        return IntervalJoin(self, other_stream)

    @same_and("takes fields and expressions as text, too")
    def key_by(
        self,
        key_selector: str | Callable[[Any], Any] | KeySelector,
        *more: str | TypeInformation,
        key_type: object | None = None,
    ) -> KeyedStream:
        """Group the elements anew."""
        return _keyed_stream(self._origin_stream, (key_selector, *more), key_type, call_origin())

    shuffle: Any = _not_of("partitioning", "KeyedStream")
    rescale: Any = _not_of("partitioning", "KeyedStream")
    rebalance: Any = _not_of("partitioning", "KeyedStream")
    forward: Any = _not_of("partitioning", "KeyedStream")
    broadcast: Any = _not_of("partitioning", "KeyedStream")
    partition_custom: Any = _not_of("partitioning", "KeyedStream")
    set_parallelism: Any = _not_of("the parallelism", "KeyedStream")
    set_max_parallelism: Any = _not_of("the maximum parallelism", "KeyedStream")
    force_non_parallel: Any = _not_of("the parallelism", "KeyedStream")
    name: Any = _not_of("the name", "KeyedStream")
    get_name: Any = _not_of("the name", "KeyedStream")
    uid: Any = _not_of("the uid", "KeyedStream")
    set_uid_hash: Any = _not_of("the uid hash", "KeyedStream")
    set_buffer_timeout: Any = _not_of("the buffer timeout", "KeyedStream")
    start_new_chain: Any = _not_of("chaining", "KeyedStream")
    disable_chaining: Any = _not_of("chaining", "KeyedStream")
    slot_sharing_group: Any = _not_of("the slot sharing group", "KeyedStream")
    cache: Any = _not_of("caching", "KeyedStream")


class CachedDataStream(DataStream):
    """A stream that later jobs use again."""

    def invalidate(self) -> None:
        """Forget what was kept; nothing is."""

    set_parallelism: Any = _not_of("the parallelism", "CachedDataStream")
    set_max_parallelism: Any = _not_of("the maximum parallelism", "CachedDataStream")
    force_non_parallel: Any = _not_of("the parallelism", "CachedDataStream")
    name: Any = _not_of("the name", "CachedDataStream")
    get_name: Any = _not_of("the name", "CachedDataStream")
    uid: Any = _not_of("the uid", "CachedDataStream")
    set_uid_hash: Any = _not_of("the uid hash", "CachedDataStream")
    set_buffer_timeout: Any = _not_of("the buffer timeout", "CachedDataStream")
    start_new_chain: Any = _not_of("chaining", "CachedDataStream")
    disable_chaining: Any = _not_of("chaining", "CachedDataStream")
    slot_sharing_group: Any = _not_of("the slot sharing group", "CachedDataStream")
