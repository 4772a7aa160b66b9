"""Values against their types."""

import datetime
import decimal
from dataclasses import dataclass
from typing import Any

import pytest

from yarnflow.errors import ElementMismatch
from yarnflow.graph.type_info import ExternalTypeInfo, LocalTimeTypeInfo, TimeType, TypeInfo, Types
from yarnflow.operators.instant import Instant
from yarnflow.operators.row import Row, RowKind
from yarnflow.operators.types.coerce import chunk_coercer

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
NOON = datetime.datetime(2020, 1, 2, 12, 0, 0, 123_456)
UTC = datetime.UTC


@dataclass
class Person:
    name: str
    age: int


@dataclass
class Whole:
    """As numpy's integers are."""

    number: int

    def __index__(self) -> int:
        return self.number


def coerced(kind: TypeInfo, *values: Any) -> list[Any]:
    return chunk_coercer(kind, "Map")(list(values))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Types.STRING(), "a", "a"),
        (Types.INT(), True, 1),
        (Types.INT(), Whole(7), 7),
        (Types.LONG(), -(2**63), -(2**63)),
        (Types.BIG_INT(), 2**80, 2**80),
        (Types.BOOLEAN(), 1, True),
        (Types.DOUBLE(), 3, 3.0),
        (Types.DOUBLE(), decimal.Decimal("0.5"), 0.5),
        (Types.FLOAT(), 0.1, 0.10000000149011612),
        (Types.BIG_DEC(), 3, decimal.Decimal(3)),
        (Types.BIG_DEC(), 0.1, decimal.Decimal("0.1")),
        (Types.INSTANT(), Instant(1, 2), Instant(1, 2)),
        (Types.SQL_DATE(), NOON, datetime.date(2020, 1, 2)),
        (Types.SQL_TIME(), NOON.time(), datetime.time(12, 0, 0, 123_000)),
        (Types.SQL_TIMESTAMP(), NOON, NOON.replace(microsecond=123_000)),
        (Types.SQL_TIMESTAMP(), NOON.replace(tzinfo=UTC), NOON.replace(microsecond=123_000)),
        (LocalTimeTypeInfo(TimeType.LOCAL_DATE_TIME), NOON.replace(tzinfo=UTC), NOON),
        (LocalTimeTypeInfo(TimeType.LOCAL_TIME), NOON.time(), NOON.time()),
        (LocalTimeTypeInfo(TimeType.LOCAL_DATE), NOON.date(), NOON.date()),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"ab"), b"ab"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), [1, -1], b"\x01\xff"),
        (Types.PRIMITIVE_ARRAY(Types.DOUBLE()), (1, 2), [1.0, 2.0]),
        (Types.BASIC_ARRAY(Types.INT()), [1, None], [1, None]),
        (Types.LIST(Types.DOUBLE()), [1, None], [1.0, None]),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), {"a": 1, "b": None}, {"a": 1.0, "b": None}),
        (Types.TUPLE([Types.STRING(), Types.DOUBLE()]), ["a", 1], ("a", 1.0)),
        (Types.TUPLE([Types.STRING()]), Row("a"), ("a",)),
        (PERSON, ("a", 1), Row(name="a", age=1)),
        (PERSON, ["a", None], Row(name="a", age=None)),
        (PERSON, {"age": 1}, Row(name=None, age=1)),
        (PERSON, Person("a", 1), Row(name="a", age=1)),
        (PERSON, Row(age=1, name="a"), Row(name="a", age=1)),
        (PERSON, Row("a", 1), Row(name="a", age=1)),
        (PERSON, Row.of_kind(RowKind.DELETE, "a", 1), Row.of_kind(RowKind.DELETE, name="a", age=1)),
        (Types.ROW([Types.INT()]), Row(x=1), Row(f0=1)),
        (Types.ROW([PERSON]), (("a", 1),), Row(f0=Row(name="a", age=1))),
        (Types.PICKLED_BYTE_ARRAY(), object, object),
        (ExternalTypeInfo(Types.DOUBLE()), 1, 1.0),
    ],
)  # fmt: skip
def test_values_that_fit(kind: TypeInfo, value: Any, expected: Any) -> None:
    (found,) = coerced(kind, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "kind, values",
    [
        (Types.INT(), [1, 2**31 - 1]),
        (Types.STRING(), ["a", ""]),
        (Types.DOUBLE(), [1.0]),
        (Types.PICKLED_BYTE_ARRAY(), [object()]),
        (Types.TUPLE([Types.STRING(), Types.INT()]), [("a", 1), (None, 2), ("b", None)]),
        (Types.TUPLE([Types.TUPLE([Types.DOUBLE()]), Types.INT()]), [((1.0,), 1), (None, 2)]),
    ],
)
def test_a_chunk_that_fits_is_handed_on_as_it_is(kind: TypeInfo, values: list[Any]) -> None:
    assert chunk_coercer(kind, "Map")(values) is values


def test_an_element_of_text_may_be_none() -> None:
    assert coerced(Types.STRING(), None, "a") == [None, "a"]


def test_one_element_that_needs_a_change_is_changed_in_a_chunk_of_others_that_fit() -> None:
    pair = Types.TUPLE([Types.INT(), Types.DOUBLE()])
    for other, expected in (((True, 1.0), (1, 1.0)), ((1, 2), (1, 2.0)), ([3, 1.0], (3, 1.0))):
        found = coerced(pair, (1, 1.0), other)
        assert found == [(1, 1.0), expected]
        assert [type(value) for value in found[1]] == [int, float]


def test_no_element_fits_any_type() -> None:
    for kind in (Types.INT(), Types.STRING(), PERSON):
        assert coerced(kind) == []


@pytest.mark.parametrize(
    ("kind", "value", "field", "wanted", "came"),
    [
        (Types.INT(), 2**31, "", "a whole number of 32 bits", "2147483648 (int)"),
        (Types.BYTE(), 128, "", "a whole number of 8 bits", "128 (int)"),
        (Types.INT(), 1.0, "", "a whole number of 32 bits", "1.0 (float)"),
        (Types.STRING(), 1, "", "text", "1 (int)"),
        (Types.DOUBLE(), "1", "", "a number", "'1' (str)"),
        (Types.FLOAT(), 1e300, "", "a number of 32 bits", "1e+300 (float)"),
        (Types.BOOLEAN(), "yes", "", "True or False", "'yes' (str)"),
        (Types.BIG_DEC(), "1", "", "a Decimal", "'1' (str)"),
        (Types.INSTANT(), NOON, "", "an Instant", "(datetime)"),
        (Types.SQL_DATE(), "2020", "", "a date", "'2020' (str)"),
        (Types.SQL_TIME(), NOON, "", "a time", "(datetime)"),
        (Types.SQL_TIMESTAMP(), NOON.date(), "", "a datetime", "(date)"),
        (Types.LIST(Types.INT()), "abc", "", "a list", "'abc' (str)"),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [1, None], "[1]", "32 bits", "None (NoneType)"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), "ab", "", "bytes", "'ab' (str)"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": "b"}, "['a']", "32 bits", "'b' (str)"),
        (Types.MAP(Types.STRING(), Types.INT()), [1], "", "a dict", "[1] (list)"),
        (Types.TUPLE([Types.INT()]), (1, 2), "", "a tuple of 1 values", "(1, 2) (tuple)"),
        (Types.TUPLE([Types.INT(), Types.INT()]), (1, "b"), "[1]", "32 bits", "'b' (str)"),
        (PERSON, ("a", "b"), "age", "32 bits", "'b' (str)"),
        (PERSON, ("a",), "", "a Row of 2 values", "('a',) (tuple)"),
        (PERSON, Row(name="a", years=1), "", "a Row of name, age", "(Row)"),
        (PERSON, 7, "", "a Row of name, age", "7 (int)"),
        (Types.ROW_NAMED(["p"], [Types.LIST(PERSON)]), ([("a", "b")],), "p[0].age", "32 bits", "'b' (str)"),
    ],
)
def test_values_that_do_not_fit(kind: TypeInfo, value: Any, field: str, wanted: str, came: str) -> None:
    with pytest.raises(ElementMismatch) as caught:
        coerced(kind, value)
    said = str(caught.value)
    assert said.startswith(f"operator 'Map' declares {kind!r} and emitted ")
    assert wanted in said and came in said
    assert (f", field {field}," in said) == bool(field)


def test_the_first_element_that_does_not_fit_is_named() -> None:
    with pytest.raises(ElementMismatch, match=r"emitted 'bad' but"):
        coerced(Types.INT(), 1, "bad", "worse")
    with pytest.raises(ElementMismatch, match=r"emitted '" + "x" * 56 + r"\.\.\. but"):
        coerced(Types.INT(), "x" * 1_000)
