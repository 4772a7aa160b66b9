"""Functions of a program in the forms in which operators call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from yarnflow.operators.windows.window import TimeWindow


@dataclass(frozen=True, slots=True)
class ColumnWindowContext:
    """What a window function on columns knows: its window."""

    time_window: TimeWindow

    def window(self) -> TimeWindow:
        """The window."""
        return self.time_window


def window_context(start_ms: int, end_ms: int) -> ColumnWindowContext:
    """The context a runtime passes to a window function on columns."""
    return ColumnWindowContext(TimeWindow(start_ms, end_ms))


@dataclass(frozen=True, slots=True)
class ApplyAdapter:
    """``apply``'s ``f(key, window, elements)`` in the form of ``process``."""

    #: a WindowFunction, or a function of the same arguments
    function: Any

    def __call__(self, key: Any, context: ColumnWindowContext, elements: Iterable[Any]) -> Iterable[Any]:
        apply = getattr(self.function, "apply", self.function)
        found: Iterable[Any] = apply(key, context.window(), elements)
        return found


@dataclass(frozen=True, slots=True)
class TimestampAdapter:
    """PyFlink's ``f(value, record_timestamp)`` as a function of the value alone."""

    function: Callable[..., int]

    def __call__(self, value: Any) -> int:
        return self.function(value, -1)


@dataclass(frozen=True, slots=True)
class FieldKey:
    """A key selector that reads fields: the value of one, a tuple of several."""

    names: tuple[str, ...]
    #: the stream holds bare values
    scalar: bool = False

    def __call__(self, value: Any) -> Any:
        if self.scalar:
            return value
        if len(self.names) == 1:
            return value[self.names[0]]
        return tuple(value[name] for name in self.names)


@dataclass(frozen=True, slots=True)
class ProjectFields:
    """Some fields of a tuple, as a tuple."""

    positions: tuple[int, ...]

    def __call__(self, value: Any) -> tuple[Any, ...]:
        return tuple(value[position] for position in self.positions)


@dataclass(frozen=True, slots=True)
class TimeOfValue:
    """An assigner of the value alone, in the form that is told the present time, too."""

    function: Callable[[Any], int]

    def __call__(self, value: Any, record_timestamp: int) -> int:
        return self.function(value)
