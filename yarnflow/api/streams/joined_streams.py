"""Joins of two streams: by windows, and by an interval of event time.

The names are those of Java Flink's DataStream API; PyFlink has none of this.  ``S`` is the stream that comes
out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from yarnflow.api.building import definitions, elements
from yarnflow.api.building.elements import InputOf, KeyBy, SideTags
from yarnflow.api.building.processing_timers import windows_may_register
from yarnflow.api.common.time import Duration, Time
from yarnflow.api.lengths import DurationLike, to_ms
from yarnflow.api.origin import call_origin
from yarnflow.api.streams.stream_base import StreamBase, check_callable, check_kind
from yarnflow.errors import GraphError, UnsupportedGraph
from yarnflow.graph.closures import copied, function_name
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import ElementKind
from yarnflow.graph.stream_graph import located
from yarnflow.graph.type_info import PICKLED, TypeInfo
from yarnflow.operators.functions.elements import KeySelector
from yarnflow.operators.functions.joins import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.joins.interval_join import IntervalJoinDefinition
from yarnflow.operators.joins.windows import CoGroupDefinition, CoGroupWindow, JoinWindow
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.operator.definition import WindowDefinition
from yarnflow.operators.windows.trigger import Trigger

S = TypeVar("S")
_NO_LENGTH: Final = "a number of milliseconds or a length of time such as Duration.of_minutes(5) is needed"
_LEFT, _RIGHT = "left", "right"


def _key(selector: Any, key_type: object | None, call: str) -> KeyBy:
    """A field by its name, or a function."""
    if isinstance(selector, str):
        if key_type is not None:
            raise GraphError(f"{call_origin()}: {call}(): key_type is for key functions; drop it")
        return KeyBy(columns=(selector,))
    check_callable(selector, call, KeySelector)
    with located(call_origin(), call):
        kind: TypeInfo = elements.declared_type(key_type) or PICKLED
    return KeyBy(copied(selector, call_origin()), kind)


class JoinedStreams(Generic[S]):
    """Two streams of which pairs of elements of one key and window become results.

    ``a.join(b).where(key_of_a).equal_to(key_of_b).window(assigner).apply(function)``.
    """

    def __init__(self, stream1: StreamBase[S], stream2: StreamBase[S], _pairs: bool = True) -> None:
        self._streams = (stream1, stream2)
        self._pairs = _pairs

    def where(
        self, key_selector: str | Callable[[Any], Any] | KeySelector, key_type: object | None = None
    ) -> JoinedWhere[S]:
        """The key of the first stream: a function, or a field of a stream of columns."""
        return JoinedWhere(self._streams, self._pairs, _key(key_selector, key_type, "where"))


class CoGroupedStreams(JoinedStreams[S]):
    """Two streams of which all elements of one key and window become results together.

    ``a.co_group(b).where(key_of_a).equal_to(key_of_b).window(assigner).apply(function)``.
    """

    def __init__(self, stream1: StreamBase[S], stream2: StreamBase[S]) -> None:
        super().__init__(stream1, stream2, False)


class JoinedWhere(Generic[S]):
    """Joined streams whose first has a key."""

    def __init__(self, streams: tuple[StreamBase[S], StreamBase[S]], pairs: bool, first: KeyBy) -> None:
        self._streams = streams
        self._pairs = pairs
        self._first = first

    def equal_to(
        self, key_selector: str | Callable[[Any], Any] | KeySelector, key_type: object | None = None
    ) -> JoinedEqualTo[S]:
        """The key of the second stream, which is compared with the first's."""
        second = _key(key_selector, key_type, "equal_to")
        return JoinedEqualTo(self._streams, self._pairs, (self._first, second))


class JoinedEqualTo(Generic[S]):
    """Joined streams that both have keys."""

    def __init__(
        self, streams: tuple[StreamBase[S], StreamBase[S]], pairs: bool, keys: tuple[KeyBy, KeyBy]
    ) -> None:
        self._streams = streams
        self._pairs = pairs
        self._keys = keys

    def window(self, assigner: WindowAssigner[Any, Any]) -> JoinedWindows[S]:
        """The windows in which elements meet."""
        check_kind(assigner, "window", WindowAssigner)
        return JoinedWindows(self._streams, self._pairs, self._keys, assigner)


class JoinedWindows(Generic[S]):
    """Joined streams in windows.

    Assigners, triggers and gap extractors see ``(0, element)`` of the first stream and ``(1, element)`` of
    the second.
    """

    def __init__(
        self,
        streams: tuple[StreamBase[S], StreamBase[S]],
        pairs: bool,
        keys: tuple[KeyBy, KeyBy],
        assigner: WindowAssigner[Any, Any],
    ) -> None:
        self._streams = streams
        self._pairs = pairs
        self._keys = keys
        self._assigner = assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._lateness_ms = 0

    def trigger(self, trigger: Trigger[Any, Any]) -> JoinedWindows[S]:
        """Say when windows are evaluated."""
        check_kind(trigger, "trigger", Trigger)
        self._trigger = trigger
        return self

    def allowed_lateness(self, time_ms: int) -> JoinedWindows[S]:
        """Keep windows of event time for so many ms, 0 or more, after the watermark passed their end."""
        if type(time_ms) is not int:
            said = f"a lateness of {time_ms!r} must be a whole number of ms"
            raise GraphError(f"{call_origin()}: allowed_lateness(): {said}")
        self._lateness_ms = time_ms
        return self

    def apply(
        self,
        function: JoinFunction | FlatJoinFunction | CoGroupFunction | Callable[[Any, Any], Any],
        output_type: object | None = None,
    ) -> S:
        """Call a function for each pair of a window, or with all elements of both sides.

        Parameters
        ----------
        function
            Of ``join``: a JoinFunction or ``f(first, second)``, which give one element, or a
            FlatJoinFunction. Of ``co_group``: a CoGroupFunction or ``f(first, second)`` of two lists, which
            give any number.
        """
        if self._pairs:
            check_callable(function, "apply", JoinFunction, FlatJoinFunction)
            method, flat = "join", isinstance(function, FlatJoinFunction)
        else:
            check_callable(function, "apply", CoGroupFunction)
            method, flat = "co_group", True
        wrapped = (JoinWindow if self._pairs else CoGroupWindow)(function)
        origin, tags = call_origin(), SideTags()
        with located(origin, "apply"):
            windows = WindowDefinition(self._assigner, wrapped, None, self._trigger, self._lateness_ms)
        define = elements.element_operator(
            ElementKind.WINDOW,
            CoGroupDefinition(windows),
            function,
            origin,
            elements.declared_output(function, method, output_type, iterable=flat),
            inputs=tuple(map(InputOf, self._keys)),
            stateful=True,
            tags=tags,
            name=f"{'Join' if self._pairs else 'CoGroup'}({self._assigner}, {function_name(function)})",
            processing_timers=windows_may_register(windows),
        )
        inputs = [stream._input(ShipStrategy.HASH) for stream in self._streams]
        name = "Window Join" if self._pairs else "Window CoGroup"
        return self._streams[0]._next(name, "apply", define, inputs, tags)


class IntervalJoin(Generic[S]):
    """Two keyed streams that are joined by an interval of event time."""

    def __init__(self, stream1: StreamBase[S], stream2: StreamBase[S]) -> None:
        self._streams = (stream1, stream2)

    def in_event_time(self) -> IntervalJoin[S]:
        """Go by event time, as interval joins do anyway."""
        return self

    def in_processing_time(self) -> IntervalJoin[S]:
        """Refused, as Flink does: interval joins go by event time."""
        raise UnsupportedGraph(
            f"{call_origin()}: in_processing_time(): interval joins go by event time; drop the call"
        )

    def between(self, lower_bound: DurationLike | int, upper_bound: DurationLike | int) -> IntervalJoined[S]:
        """The right elements that belong to a left one: from ``lower_bound`` to ``upper_bound`` after it.

        Both bounds are included, in ms where they are numbers; negative ones are before it.
        """
        lower_ms, upper_ms = (_bound_ms(bound) for bound in (lower_bound, upper_bound))
        return IntervalJoined(self._streams, lower_ms, upper_ms)


def _bound_ms(bound: DurationLike | int) -> int:
    if isinstance(bound, bool) or bound is None:
        raise GraphError(f"{call_origin()}: between(): {bound!r}: {_NO_LENGTH}")
    if isinstance(bound, int):
        return bound
    if isinstance(bound, (Duration, Time)):
        return bound.to_milliseconds()
    return to_ms(bound, "a bound of between()", at_least_ms=-(2**62))


class IntervalJoined(Generic[S]):
    """Two keyed streams and the interval in which their elements meet."""

    def __init__(
        self, streams: tuple[StreamBase[S], StreamBase[S]], lower_ms: int, upper_ms: int
    ) -> None:
        self._streams = streams
        self._lower_ms = lower_ms
        self._upper_ms = upper_ms
        self._late: list[OutputTag | None] = [None, None]

    def lower_bound_exclusive(self) -> IntervalJoined[S]:
        """Elements exactly at the lower bound do not belong to each other."""
        self._lower_ms += 1
        return self

    def upper_bound_exclusive(self) -> IntervalJoined[S]:
        """Elements exactly at the upper bound do not belong to each other."""
        self._upper_ms -= 1
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined[S]:
        """Hand left elements that come too late to a side output."""
        check_kind(output_tag, "side_output_left_late_data", OutputTag)
        self._late[0] = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined[S]:
        """Hand right elements that come too late to a side output."""
        check_kind(output_tag, "side_output_right_late_data", OutputTag)
        self._late[1] = output_tag
        return self

    def process(self, func: ProcessJoinFunction, output_type: object | None = None) -> S:
        """Call a function for each pair; what it gives has the later time of the two."""
        check_kind(func, "process", ProcessJoinFunction)
        self._check()
        tags = SideTags()
        for tag in self._late:
            if tag is not None:
                tags.add(tag)
        late = {tag.tag_id for tag in self._late if tag is not None}
        left, right = (None if tag is None else tag.tag_id for tag in self._late)
        first, second = self._streams
        define = elements.element_operator(
            ElementKind.INTERVAL_JOIN,
            IntervalJoinDefinition(func, self._lower_ms, self._upper_ms, (left, right)),
            func,
            call_origin(),
            elements.declared_output(func, "process_element", output_type, iterable=True),
            inputs=(InputOf(first._key_by), InputOf(second._key_by)),
            stateful=True,
            tags=tags,
            # late outputs are the operator's own, not among the function's results
            settled=lambda: {"side_outputs": bool(tags.tags.keys() - late)},
        )
        inputs = [stream._input(ShipStrategy.HASH) for stream in self._streams]
        return first._next("Interval Join", "process", define, inputs, tags)

    def select(self, *expressions: str) -> S:
        """Expressions over each pair of streams of columns, keyed by fields (native).

        Fields are called ``left.name`` and ``right.name``; event time of the result is the one column among
        them that is event time.
        """
        self._check()
        if any(self._late):
            raise GraphError(f"{call_origin()}: select(): side outputs of late data need process(…)")
        keys = []
        for stream in self._streams:
            key = stream._key_by
            if key is None or not key.columns:
                raise UnsupportedGraph(
                    f"{call_origin()}: select(): a stream is keyed by a function; key_by() fields, or "
                    "call process(…)"
                )
            keys.append(key.columns)
        if len(keys[0]) != len(keys[1]):
            raise GraphError(
                f"{call_origin()}: select(): the keys have {len(keys[0])} and {len(keys[1])} fields; give "
                "as many"
            )
        define = definitions.interval_join(expressions, (keys[0], keys[1]), self._lower_ms, self._upper_ms)
        first, second = self._streams
        inputs = (first._input(ShipStrategy.FORWARD), second._input(ShipStrategy.FORWARD))
        return first._next("Interval Join", "select", define, inputs)

    def _check(self) -> None:
        if self._lower_ms > self._upper_ms:
            raise GraphError(
                f"{call_origin()}: between(): no time is from {self._lower_ms} to {self._upper_ms} ms "
                "after another"
            )
