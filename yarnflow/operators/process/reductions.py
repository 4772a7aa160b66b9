"""Rolling reductions of a keyed stream: each element gives the result so far of its key.

Flink counterpart: ``KeyedStream.reduce``, ``sum``, ``min``, ``max``, ``minBy``, ``maxBy``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from yarnflow.operators.elements import MAX_WATERMARK_MS, Chunk, Output
from yarnflow.operators.functions.base import method_of
from yarnflow.operators.process.contexts import state_of
from yarnflow.operators.process.elementwise import FunctionOperator
from yarnflow.operators.process.operator import Operator, OperatorContext
from yarnflow.operators.process.snapshots import appender
from yarnflow.operators.process.user_code import noted
from yarnflow.operators.state.keyed import NO_KEY
from yarnflow.operators.state.kinds import StateKind

_STATE: Final = "_reduce_state"
_NOTHING: Final = object()

Reduce = Callable[[Any, Any], Any]


class Aggregation(Enum):
    """What is done with one field."""

    SUM = "sum"
    #: the first element's other fields stay
    MIN = "min"
    MAX = "max"
    #: the whole element with the least or greatest field; the first of equal ones
    MIN_BY = "min_by"
    MAX_BY = "max_by"


@dataclass(frozen=True, slots=True)
class ReduceDefinition:
    """``reduce``: a ReduceFunction or function of two values.

    ``at_end``: emit one result per key when all input has come, as Flink does in batch mode.
    """

    function: Any
    at_end: bool = False

    def build(self) -> Operator:
        return ReduceOperator(self.function, self.at_end)


@dataclass(frozen=True, slots=True)
class AggregateDefinition:
    """``sum``, ``min``, ``max``, ``min_by``, ``max_by``.

    Parameters
    ----------
    aggregation : Aggregation
    position : int or str
        Field of tuples, lists and rows by position or name; 0 for elements that are plain values.
    at_end : bool
        As in :class:`ReduceDefinition`.
    """

    aggregation: Aggregation
    position: int | str = 0
    at_end: bool = False

    def build(self) -> Operator:
        return ReduceOperator(FieldReduce(self.aggregation, self.position), self.at_end)


class ReduceOperator(FunctionOperator):
    """Keeps one value per key and emits it after each element; the first one as it is."""

    def __init__(self, function: Any, at_end: bool) -> None:
        super().__init__(function)
        self._at_end = at_end

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.keyed, self._timers = state_of(context)
        self._table = self.keyed.table(_STATE, StateKind.REDUCING)
        self._reduce: Reduce = method_of(self.function, "reduce")

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        get, put, reduce, keyed = self._table.get, self._table.put, self._reduce, self.keyed
        assert chunk.keys is not None
        # keys often come again within a chunk: the table is written once for each
        results: list[Any] = []
        append, latest, value = appender(results, self.fixed_results), dict[Any, Any](), None
        try:
            for key, value in zip(chunk.keys, chunk.values, strict=True):
                before = latest.get(key, _NOTHING)
                if before is _NOTHING:
                    before = get(key, None, _NOTHING)
                if before is not _NOTHING:
                    keyed.current_key = key
                    value = reduce(before, value)
                latest[key] = value
                append(value)
        except Exception as error:
            raise noted(error, self.name, "element", chunk.values[len(results)])
        keyed.current_key = NO_KEY
        for key, value in latest.items():
            put(key, value)
        if self._at_end:
            for key in latest:
                self._timers.register_event_time(MAX_WATERMARK_MS, key)
        else:
            output.emit(Chunk(results, chunk.timestamps))

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        output.emit(Chunk([self._table.get(key)], [timestamp_ms]))
        self._table.remove(key)


class FieldReduce:
    """The function of two elements behind ``sum`` and its kin; leaves its arguments as they are.

    Raises
    ------
    TypeError
        By the call: a field other than 0 of elements that have no fields.
    """

    def __init__(self, aggregation: Aggregation, position: int | str) -> None:
        if isinstance(position, bool) or not isinstance(position, (int, str)):
            raise TypeError(
                f"{aggregation.value} needs the position or the name of a field, "
                f"not a {type(position).__name__}"
            )
        self.aggregation = aggregation
        self.position = position
        self._combine = _PLAIN[aggregation]
        by_whole = aggregation in (Aggregation.MIN_BY, Aggregation.MAX_BY)
        #: position of the field to replace in plain tuples, the usual elements; None = not by this way
        self._in_tuples = position if isinstance(position, int) and position >= 0 and not by_whole else None

    def __call__(self, before: Any, value: Any) -> Any:
        at = self._in_tuples
        if at is not None and type(value) is tuple and type(before) is tuple:
            return (*before[:at], self._combine(before[at], value[at]), *before[at + 1 :])
        if not _has_fields(value):
            if self.position != 0:
                raise TypeError(
                    f"{self.aggregation.value}({self.position!r}) on a {type(value).__name__}, which has no "
                    "fields: only field 0, the value itself, can be named"
                )
            return self._combine(before, value)
        position = _position(value, self.position)
        old, new = before[position], value[position]
        if self.aggregation is Aggregation.MIN_BY:
            return value if new < old else before
        if self.aggregation is Aggregation.MAX_BY:
            return value if new > old else before
        return _with_field(before, position, self._combine(old, new))


_PLAIN: Final[dict[Aggregation, Reduce]] = {
    Aggregation.SUM: lambda before, value: before + value,
    Aggregation.MIN: lambda before, value: value if value < before else before,
    Aggregation.MAX: lambda before, value: value if value > before else before,
    Aggregation.MIN_BY: lambda before, value: value if value < before else before,
    Aggregation.MAX_BY: lambda before, value: value if value > before else before,
}


def _has_fields(value: Any) -> bool:
    """Tuples, lists, and rows of any kind: a row that is no tuple tells its fields."""
    return isinstance(value, (tuple, list)) or hasattr(value, "_fields")


def _position(value: Any, position: int | str) -> Any:
    if isinstance(position, int) or not isinstance(value, tuple):
        return position
    names = getattr(value, "_fields", ())
    if position not in names:
        known = ", ".join(names) or "no names"
        raise TypeError(f"no field '{position}' in a {type(value).__name__} of {known}")
    return names.index(position)


def _with_field(record: Any, position: Any, field: Any) -> Any:
    """A record of the same kind with one field replaced."""
    if isinstance(record, tuple):
        values = list(record)
        values[position] = field
        make = getattr(type(record), "_make", tuple)
        return make(values)
    changed = copy(record)
    changed[position] = field
    return changed
