"""What others may have written is read without running it."""

from __future__ import annotations

import datetime
import decimal
import enum
import os
import pickle
import uuid
import zoneinfo
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.graph.rows import row_class
from yarnflow.operators.instant import Instant
from yarnflow.operators.row import Row
from yarnflow.operators.state.cells import CellChanges, TableChanges
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import Changes
from yarnflow.operators.windows.window import CountWindow, GlobalWindow, TimeWindow
from yarnflow.spark.state.plain_pickle import Foreign, foreign_names, loads_plain

UTC = datetime.UTC


@dataclass(frozen=True)
class Money:
    cents: int


class Color(enum.Enum):
    RED = 1


class Basket(dict[str, int]):
    pass


class Attack:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True], (1, "x"): {frozenset({b"y"})}},
        [datetime.datetime(2026, 1, 2, 3, tzinfo=UTC), datetime.date(2026, 1, 2), datetime.timedelta(1)],
        datetime.datetime(2026, 1, 2, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        [decimal.Decimal("1.50"), uuid.UUID(int=7), 1j, bytearray(b"z"), range(3), ...],
        [Row(a=1, b="x"), Row(1, "x"), row_class(("a", "b"))(1, "x")],
        [TimeWindow(0, 5), CountWindow(3), GlobalWindow(), Instant(1, 2), StateKind.MAP],
    ],
    ids=["language", "times", "zone", "numbers", "rows", "windows"],
)
def test_plain_values_are_themselves(value: Any) -> None:
    data = pickle.dumps(value, 5)
    # windows of the two ways are of two classes, which look the same
    assert repr(loads_plain(data)) == repr(value)
    assert foreign_names(data) == set()


def test_the_containers_of_state_are_plain() -> None:
    changes = Changes({("op", "sum"): TableChanges(StateKind.VALUE, False, CellChanges({1: Row(2)}), None)})
    found = loads_plain(pickle.dumps(changes, 5))
    assert isinstance(found, Changes)
    plain = found.tables["op", "sum"].plain
    assert plain is not None and plain.put == {1: Row(2)}


def test_objects_of_the_program_are_only_named() -> None:
    data = pickle.dumps([Money(5), {Money(5): 1, Money(6): 2}, Color.RED, Basket(a=1)], 5)
    money, by_money, color, basket = loads_plain(data)
    assert repr(money) == f"<object of {__name__}.Money>"
    assert repr(color) == f"<object of {__name__}.Color>"
    assert repr(basket) == f"<object of {__name__}.Basket>"
    assert len(by_money) == 2, "keys that differ stay apart"
    assert by_money[money] == 1, "and equal ones are found again"
    assert foreign_names(data) == {f"{__name__}.{name}" for name in ("Money", "Color", "Basket")}


def test_classes_that_come_with_their_objects_are_named_as_well() -> None:
    class Local:
        pass

    @dataclass(frozen=True)
    class LocalKey:
        n: int

    class LocalColor(enum.Enum):
        BLUE = 1

    data = cloudpickle.dumps([Local(), LocalKey(1), LocalColor.BLUE])
    assert [repr(found) for found in loads_plain(data)] == [
        f"<object of {__name__}.{name}>" for name in ("Local", "LocalKey", "LocalColor")
    ]
    named = {f"{__name__}.{name}" for name in ("Local", "LocalKey", "LocalColor")}
    assert named <= foreign_names(data)
    assert not any(name.startswith("cloudpickle") for name in foreign_names(data))


def test_nothing_runs(tmp_path: Path) -> None:
    data = pickle.dumps(Attack(tmp_path / "made"), 5)
    assert isinstance(loads_plain(data), Foreign)
    assert foreign_names(data) == {f"{os.mkdir.__module__}.mkdir"}
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "data",
    [
        # getattr of anything but a time zone
        b"\x80\x04cbuiltins\ngetattr\ncbuiltins\nstr\n\x8c\x06format\x86R.",
        # attributes of a class or a function set by BUILD
        b"\x80\x04cyarnflow.operators.windows.window\nTimeWindow\nN}\x8c\x05cover\x8c\x01xs\x86b.",
        b"\x80\x04cyarnflow.operators.row\n_restore\nN}\x8c\x05cover\x8c\x01xs\x86b.",
        b"no pickle",
        b"",
    ],
)
def test_what_no_state_holds_is_refused_or_named(data: bytes) -> None:
    try:
        names = foreign_names(data)
    except pickle.UnpicklingError:
        return
    assert names == {"builtins.getattr"}


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        loads_plain(b"\x80\x04" + data)
    except pickle.UnpicklingError:
        pass
