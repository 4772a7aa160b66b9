"""What print() writes.  Expected texts of numbers and times are those of a Java runtime (25)."""

import datetime
import decimal
from typing import Any

import pytest

from yarnflow.graph.type_info import ExternalTypeInfo, LocalTimeTypeInfo, TimeType, TypeInfo, Types
from yarnflow.operators.instant import Instant
from yarnflow.operators.row import Row, RowKind
from yarnflow.operators.types.text import java_double, java_float, print_prefix, printer

PERSON = Types.ROW_NAMED(["name", "ok"], [Types.STRING(), Types.BOOLEAN()])


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (0.1, "0.1"), (1e7, "1.0E7"), (9999999.5, "9999999.5"),
        (12345678.9, "1.23456789E7"), (0.001, "0.001"), (0.00012, "1.2E-4"), (1e300, "1.0E300"),
        (5e-324, "4.9E-324"), (123456.0, "123456.0"), (1e22, "1.0E22"), (100.0, "100.0"), (2e-3, "0.002"),
        (33.333333333333336, "33.333333333333336"), (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (float("nan"), "NaN"), (float("-inf"), "-Infinity"), (-12.5, "-12.5"),
    ],
)  # fmt: skip
def test_doubles(number: float, text: str) -> None:
    assert java_double(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (0.1, "0.1"), (0.10000000149011612, "0.1"), (1e7, "1.0E7"), (1.2345679, "1.2345679"),
        (3.4028235e38, "3.4028235E38"), (1.4e-45, "1.4E-45"), (16777216.0, "1.6777216E7"),
        (33.333332, "33.333332"), (float("inf"), "Infinity"),
    ],
)  # fmt: skip
def test_floats(number: float, text: str) -> None:
    assert java_float(number) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Types.STRING(), "a b", "a b"),
        (Types.INT(), -7, "-7"),
        (Types.BOOLEAN(), True, "true"),
        (Types.DOUBLE(), 1.5, "1.5"),
        (Types.BIG_DEC(), decimal.Decimal("1E+3"), "1E+3"),
        (Types.INSTANT(), Instant(1, 120_000_000), "1970-01-01T00:00:01.120Z"),
        (Types.INSTANT(), Instant(60, 1), "1970-01-01T00:01:00.000000001Z"),
        (Types.INSTANT(), Instant(-1, 1_000), "1969-12-31T23:59:59.000001Z"),
        (Types.SQL_DATE(), datetime.date(2020, 1, 2), "2020-01-02"),
        (Types.SQL_TIME(), datetime.time(1, 2, 3, 4_000), "01:02:03"),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 1, 1, 2, 3, 120_000), "2020-01-01 01:02:03.12"),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 1), "2020-01-01 00:00:00.0"),
        (LocalTimeTypeInfo(TimeType.LOCAL_DATE_TIME), datetime.datetime(2020, 1, 2, 3), "2020-01-02T03:00"),
        (LocalTimeTypeInfo(TimeType.LOCAL_TIME), datetime.time(1, 2, 0, 1), "01:02:00.000001"),
        (LocalTimeTypeInfo(TimeType.LOCAL_DATE), datetime.date(2020, 1, 2), "2020-01-02"),
        (Types.LIST(Types.BOOLEAN()), [True, None], "[true, null]"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x01\xff", "[1, -1]"),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), {"a": 1.0, "b": None}, "{a=1.0, b=null}"),
        (Types.TUPLE([Types.STRING(), Types.BOOLEAN()]), ("a", True), "(a,true)"),
        (Types.TUPLE([Types.STRING(), PERSON]), (None, Row(name="a", ok=True)), "(null,+I[a, true])"),
        # PyFlink makes text of rows before Java sees them: Python's, and no space after the comma
        (PERSON, Row(name="a", ok=True), "+I[a,True]"),
        (PERSON, Row.of_kind(RowKind.DELETE, None, False), "-D[None,False]"),
        (ExternalTypeInfo(PERSON), Row(name="a", ok=True), "+I[a,True]"),
        (Types.PICKLED_BYTE_ARRAY(), ("a", True, 1e7), "('a', True, 10000000.0)"),
        (Types.PICKLED_BYTE_ARRAY(), "a", "a"),
        (Types.PICKLED_BYTE_ARRAY(), None, "None"),
        (Types.STRING(), None, "null"),
    ],
)
def test_each_type(kind: TypeInfo, value: Any, text: str) -> None:
    assert printer(kind)(value) == text


@pytest.mark.parametrize(
    ("identifier", "subtasks", "prefix"),
    [("", 1, ""), ("copy", 1, "copy> "), ("", 2, "2> "), ("copy", 2, "copy:2> ")],
)
def test_what_lines_begin_with(identifier: str, subtasks: int, prefix: str) -> None:
    assert print_prefix(identifier, subtasks - 1, subtasks) == prefix
