"""What is emitted stays as it was, whatever the function does with the object later."""

import io
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from yarnflow.graph.type_info import TypeInfo, Types
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.process.snapshots import appender, extender, is_fixed, snapshot
from yarnflow.operators.row import Row

Pair = namedtuple("Pair", "key value")  # noqa: PYI024  programs have such, too


class Colour(Enum):
    RED = 1


@dataclass
class Plain:
    name: str
    parts: Any = None


@dataclass(slots=True)
class Slotted:
    parts: list[int]


class Owned:
    """Has a way of its own to be copied."""

    def __init__(self) -> None:
        self.copies = 0

    def __deepcopy__(self, memo: object) -> "Owned":
        made = Owned()
        made.copies = self.copies + 1
        return made


@pytest.mark.parametrize(
    "value",
    [None, 1, "a", 2.5, Decimal(1), (1, "a"), Pair("a", 1), frozenset({1}), Colour.RED, OutputTag("a"), int],
)
def test_what_cannot_change_stays_the_same_object(value: object) -> None:
    assert snapshot(value) is value


@pytest.mark.parametrize(
    "value",
    [
        [1],
        [[1], 2],
        {"a": 1},
        {"a": {"b": [1]}},
        (1, [2]),
        Row(a=1, b=[2]),
        Plain("a"),
        Plain("a", [1]),
        Slotted([1]),
        Pair("a", [1]),
        bytearray(b"a"),
    ],
)
def test_what_can_change_is_copied_with_what_is_in_it(value: Any) -> None:
    made = snapshot(value)
    assert made == value
    assert made is not value
    assert type(made) is type(value)


def test_copies_share_nothing_that_can_change() -> None:
    inner = [1]
    row, plain, pair = Row(a=inner), Plain("a", inner), ("a", {"b": inner})
    copies = [snapshot(value) for value in (row, plain, pair)]
    inner.append(2)
    row["a"] = None
    plain.name = "b"
    assert copies == [Row(a=[1]), Plain("a", [1]), ("a", {"b": [1]})]


def test_a_class_says_itself_how_it_is_copied() -> None:
    assert snapshot([Owned()])[0].copies == 1


def test_what_cannot_be_copied_goes_on_as_it_is() -> None:
    file = io.TextIOWrapper(io.BytesIO())
    assert snapshot(("name", file))[1] is file


def test_a_list_that_holds_itself_goes_on_as_it_is() -> None:
    value: list[Any] = [1]
    value.append(value)
    assert snapshot(value) is value


def test_objects_that_refer_to_each_other_are_copied_together() -> None:
    parent = Plain("parent")
    parent.parts = [Plain("child", parent)]
    made = snapshot(parent)
    assert made is not parent
    assert made.parts[0].parts is made


@pytest.mark.parametrize("fixed", [True, False])
def test_results_are_taken_when_they_come(fixed: bool) -> None:
    results: list[Any] = []
    state = {"sum": 0}

    def emit() -> Any:
        for number in (1, 2):
            state["sum"] += number
            yield state

    extender(results, fixed)(emit())
    appender(results, fixed)(state)
    state["sum"] = 9
    # of a type that cannot change nothing is copied: the program said that it is one
    assert [result["sum"] for result in results] == ([9, 9, 9] if fixed else [1, 3, 3])


@pytest.mark.parametrize(
    ("kind", "fixed"),
    [
        (Types.STRING(), True),
        (Types.TUPLE([Types.LONG(), Types.TUPLE([Types.SQL_TIMESTAMP()])]), True),
        (Types.TUPLE([Types.LONG(), Types.LIST(Types.LONG())]), False),
        (Types.ROW([Types.LONG()]), False),
        (Types.PICKLED_BYTE_ARRAY(), False),
        (None, False),
    ],
)
def test_types_of_what_cannot_change(kind: TypeInfo | None, fixed: bool) -> None:
    assert is_fixed(kind) is fixed
