"""Windows by themselves: their ends, what touches what, how they are stored."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO

import pytest

from yarnflow.errors import GraphError
from yarnflow.operators.elements import MAX_WATERMARK_MS
from yarnflow.operators.windows.serializers import (
    CountWindowSerializer,
    GlobalWindowSerializer,
    TimeWindowSerializer,
    TypeSerializer,
    WindowNamespaces,
)
from yarnflow.operators.windows.window import CountWindow, GlobalWindow, MergeCallback, TimeWindow, Window


class Merges(MergeCallback[TimeWindow]):
    def __init__(self) -> None:
        self.found: list[tuple[list[TimeWindow], TimeWindow]] = []

    def merge(self, to_be_merged: Iterable[TimeWindow], merge_result: TimeWindow) -> None:
        self.found.append((sorted(to_be_merged), merge_result))


class Named(Window):
    """A window of a user's, known by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def max_timestamp(self) -> int:
        return 7


class NamedSerializer(TypeSerializer[Named]):
    def serialize(self, element: Named, stream: BytesIO) -> None:
        stream.write(element.name.encode())

    def deserialize(self, stream: BytesIO) -> Named:
        return Named(stream.read().decode())


def test_the_last_millisecond_of_a_window() -> None:
    assert TimeWindow(5, 10).max_timestamp() == 9
    assert CountWindow(3).max_timestamp() == GlobalWindow.get().max_timestamp() == MAX_WATERMARK_MS


@pytest.mark.parametrize(
    "timestamp, offset, size, start",
    [(7, 0, 5, 5), (5, 0, 5, 5), (4, 0, 5, 0), (-1, 0, 5, -5), (7, 3, 5, 3), (7, -1, 5, 4), (-7, 2, 5, -8)],
)
def test_the_start_of_a_window_is_a_multiple_of_its_size(
    timestamp: int, offset: int, size: int, start: int
) -> None:
    assert TimeWindow.get_window_start_with_offset(timestamp, offset, size) == start


def test_windows_that_touch_intersect() -> None:
    assert TimeWindow(0, 5).intersects(TimeWindow(5, 10))
    assert not TimeWindow(0, 5).intersects(TimeWindow(6, 10))
    assert TimeWindow(0, 5).cover(TimeWindow(3, 10)) == TimeWindow(0, 10)


def test_groups_of_windows_that_touch_are_merged() -> None:
    merges = Merges()
    intervals = (20, 30), (0, 10), (8, 12), (50, 60), (28, 40)
    TimeWindow.merge_windows([TimeWindow(*interval) for interval in intervals], merges)
    assert merges.found == [
        ([TimeWindow(0, 10), TimeWindow(8, 12)], TimeWindow(0, 12)),
        ([TimeWindow(20, 30), TimeWindow(28, 40)], TimeWindow(20, 40)),
    ]


def test_windows_of_one_interval_are_no_merge() -> None:
    merges = Merges()
    TimeWindow.merge_windows([TimeWindow(0, 10), TimeWindow(0, 10)], merges)
    assert merges.found == []


def test_windows_are_ordered_by_start_then_end() -> None:
    assert TimeWindow(0, 5) < TimeWindow(0, 6) < TimeWindow(1, 2)
    assert TimeWindow(0, 5) <= TimeWindow(0, 5)
    with pytest.raises(TypeError):
        assert TimeWindow(0, 5) < CountWindow(1)


def test_windows_of_one_place_are_equal() -> None:
    assert len({TimeWindow(0, 5), TimeWindow(0, 5), TimeWindow(0, 6)}) == 2
    assert len({CountWindow(0), CountWindow(0), CountWindow(1)}) == 2
    assert len({GlobalWindow(), GlobalWindow.get()}) == 1
    assert len({TimeWindow(0, 0), CountWindow(0), GlobalWindow()}) == 3


def test_windows_print_as_pyflinks() -> None:
    assert repr(TimeWindow(0, 5)) == "TimeWindow(start=0, end=5)"
    assert repr(CountWindow(2)) == "CountWindow(id=2)"
    assert repr(GlobalWindow()) == "GlobalWindow"


@pytest.mark.parametrize(
    "serializer, window, length",
    [
        (TimeWindowSerializer(), TimeWindow(-5, 2**40), 16),
        (CountWindowSerializer(), CountWindow(7), 8),
        (GlobalWindowSerializer(), GlobalWindow(), 1),
    ],
)
def test_windows_survive_their_serializers(
    serializer: TypeSerializer[Window], window: Window, length: int
) -> None:
    stream = BytesIO()
    serializer.serialize(window, stream)
    assert len(stream.getvalue()) == length
    stream.seek(0)
    assert serializer.deserialize(stream) == window
    assert serializer == type(serializer)() and repr(serializer) == f"{type(serializer).__name__}()"


@pytest.mark.parametrize(
    "window, namespace", [(TimeWindow(1, 2), (1, 2)), (CountWindow(7), 7), (GlobalWindow(), ())]
)
def test_known_windows_are_small_namespaces(window: Window, namespace: object) -> None:
    namespaces = WindowNamespaces(None)
    assert namespaces.of(window) == namespace
    assert namespaces.window(namespace) == window


def test_other_windows_are_stored_by_their_serializer() -> None:
    namespaces = WindowNamespaces(NamedSerializer())
    assert namespaces.of(Named("north")) == b"north"
    assert namespaces.window(b"north").name == "north"


def test_other_windows_need_a_serializer() -> None:
    with pytest.raises(GraphError, match="no serializer for windows of class Named.*get_window_serializer"):
        WindowNamespaces(None).of(Named("north"))
