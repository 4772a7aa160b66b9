"""Windows that no time ends: of so many elements, or of all."""

from __future__ import annotations

from typing import Any, TypeVar

from yarnflow.errors import GraphError
from yarnflow.operators.state.descriptors import ValueStateDescriptor
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TypeSerializer,
)
from yarnflow.operators.windows.trigger import Trigger
from yarnflow.operators.windows.triggers import CountTrigger, NeverTrigger
from yarnflow.operators.windows.window import CountWindow, GlobalWindow

T = TypeVar("T")


class CountedWindows(WindowAssigner[T, CountWindow]):
    """What count windows have in common: elements of a key are numbered in state."""

    #: name of the state with the number of elements of a key so far
    state_name: str

    def __init__(self, window_size: int, window_slide: int) -> None:
        if window_size <= 0 or window_slide <= 0:
            raise GraphError(
                f"{type(self).__name__}: needs a size and a slide of at least 1 element; "
                f"size {window_size}, slide {window_slide}"
            )
        self.window_size = window_size
        self.window_slide = window_slide
        self._count = ValueStateDescriptor(self.state_name, None)

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        count = context.get_runtime_context().get_state(self._count)
        number = count.value() or 0
        count.update(number + 1)
        last = number // self.window_slide
        first = max(0, (number - self.window_size) // self.window_slide + 1)
        return [CountWindow(id) for id in range(last, first - 1, -1)]

    def get_default_trigger(self, env: Any) -> Trigger[T, CountWindow]:
        return CountTrigger(self.window_size)

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        return False


class CountTumblingWindowAssigner(CountedWindows[T]):
    """Windows of so many elements of a key that do not overlap.  Flink: PyFlink's of the same name.

    Parameters
    ----------
    window_size : int
        Number of elements.
    """

    state_name = "tumble-count-assigner"

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size, window_size)

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner[Any]:
        """Windows of ``window_size`` elements."""
        return CountTumblingWindowAssigner(window_size)

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


class CountSlidingWindowAssigner(CountedWindows[T]):
    """Windows of so many elements of a key; a new one starts after so many elements.

    Flink: PyFlink's of the same name.

    Parameters
    ----------
    window_size, window_slide : int
        Numbers of elements: in a window, and from the start of a window to that of the next.
    """

    state_name = "slide-count-assigner"

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner[Any]:
        """Windows of ``window_size`` elements, one every ``window_slide`` elements."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self.window_slide})"


class GlobalWindows(WindowAssigner[T, GlobalWindow]):
    """One window for all elements of a key; needs a trigger to be of use.  Flink: of the same name."""

    @staticmethod
    def create() -> GlobalWindows[Any]:
        """The assigner."""
        return GlobalWindows()

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[GlobalWindow]:
        return [GlobalWindow()]

    def get_default_trigger(self, env: Any) -> Trigger[T, GlobalWindow]:
        return NeverTrigger()

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"
