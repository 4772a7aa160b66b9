"""Windows as bytes: how windows of a class of the user's are known again in state and timers."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from io import BytesIO
from typing import Any, Generic, TypeVar

from yarnflow.errors import GraphError
from yarnflow.operators.windows.window import CountWindow, GlobalWindow, TimeWindow

T = TypeVar("T")

_TIME_WINDOW = struct.Struct(">qq")
_COUNT_WINDOW = struct.Struct(">q")


class TypeSerializer(ABC, Generic[T]):
    """Writes values of one type as bytes and reads them again.  Flink: ``TypeSerializer``."""

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Write a value at the stream's position."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Read a value at the stream's position."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self).__name__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Start and end, 8 bytes each, high byte first."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        stream.write(_TIME_WINDOW.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        return TimeWindow(*_TIME_WINDOW.unpack(stream.read(_TIME_WINDOW.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """The id in 8 bytes, high byte first."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        stream.write(_COUNT_WINDOW.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        return CountWindow(*_COUNT_WINDOW.unpack(stream.read(_COUNT_WINDOW.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """One byte, 0."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        stream.read(1)
        return GlobalWindow()


class WindowNamespaces:
    """Windows as namespaces of state and timers, and back.

    Windows of this room are tuples and numbers there: those are small, and compared and hashed
    without Python code.  Windows of other classes are the bytes their serializer makes, for a
    class that travels with the program is another class in another process.

    Parameters
    ----------
    serializer : TypeSerializer or None
        The assigner's.
    """

    def __init__(self, serializer: TypeSerializer[Any] | None) -> None:
        self._serializer = serializer

    def of(self, window: Any) -> Any:
        """The namespace of a window.

        Raises
        ------
        GraphError
            A window of a class that no serializer is given for.
        """
        kind = type(window)
        if kind is TimeWindow:
            return (window.start, window.end)
        if kind is CountWindow:
            return window.id
        if kind is GlobalWindow:
            return ()
        if self._serializer is None:
            raise GraphError(
                f"no serializer for windows of class {kind.__name__}; return one from "
                "get_window_serializer() of the window assigner"
            )
        stream = BytesIO()
        self._serializer.serialize(window, stream)
        return stream.getvalue()

    def window(self, namespace: Any) -> Any:
        """The window of a namespace."""
        kind = type(namespace)
        if kind is tuple:
            return TimeWindow(*namespace) if namespace else GlobalWindow()
        if kind is int:
            return CountWindow(namespace)
        if self._serializer is None:
            raise GraphError(
                "no serializer for the windows in state; return one from get_window_serializer() of the "
                "window assigner"
            )
        return self._serializer.deserialize(BytesIO(namespace))
