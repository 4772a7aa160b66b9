"""DDL text and type hints → schemas."""

import dataclasses
import datetime
import decimal
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, Optional, TypedDict

import pytest

from yarnflow.errors import SchemaError
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.types import element_hint, parse_schema, parse_type, quote, to_schema, type_of_hint


class Pair(NamedTuple):
    word: str
    n: int


@dataclasses.dataclass
class Point:
    x: float
    tags: list[str]


class Movie(TypedDict):
    title: str
    year: int


def test_fields_with_odd_names_nullability_and_comments() -> None:
    schema = parse_schema(
        "a INT, b ARRAY<STRING>, c STRUCT<x: INT, Y STRING>, `odd ``name` STRING NOT NULL COMMENT 'x, y'"
    )
    assert schema == Schema(
        (
            Field("a", "int"),
            Field("b", "array<string>"),
            Field("c", "struct<x:int,Y:string>"),
            Field("odd `name", "string"),
        )
    )


@pytest.mark.parametrize(
    ("text", "ddl"),
    [
        ("LONG", "bigint"),
        ("Integer", "int"),
        ("decimal", "decimal(10,0)"),
        ("DECIMAL(12)", "decimal(12,0)"),
        ("numeric(12, 2)", "decimal(12,2)"),
        ("map<string, array<struct<`a b`: timestamp_ltz>>>", "map<string,array<struct<`a b`:timestamp>>>"),
        ("varchar(5)", "varchar(5)"),
    ],
)
def test_types_are_written_as_spark_writes_them(text: str, ddl: str) -> None:
    assert parse_type(text).ddl() == ddl
    assert parse_type(ddl).ddl() == ddl


def test_a_lone_type_is_a_scalar_stream_and_a_lone_struct_is_not() -> None:
    assert parse_schema("array<int>") == Schema((Field("value", "array<int>"),), scalar=True)
    assert parse_schema("struct<a: int>") == Schema((Field("a", "int"),))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty schema"),
        ("a INTT", "'INTT'"),
        ("a INT b STRING", "'b'"),
        ("a ARRAY<INT", "at the end"),
        ("a INT,", "a field name expected at the end"),
        ("a DECIMAL(x)", "'x'"),
        ("a INT(3)", "takes 0 numbers"),
        ("a INT, A STRING", "two fields are named 'A'"),
        ("__key INT", "reserved"),
        ("a MAP<INT>", "',' expected at '>'"),
        ("interval", "a type expected at 'interval'"),
    ],
)
def test_errors_name_the_part(text: str, part: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("hint", "ddl"),
    [
        (str, "string"),
        (int, "bigint"),
        (bool, "boolean"),
        (bytes, "binary"),
        (datetime.datetime, "timestamp"),
        (datetime.date, "date"),
        (decimal.Decimal, "decimal(38,18)"),
        (Optional[float], "double"),  # noqa: UP045
        (int | None, "bigint"),
        (Annotated[int, "n"], "bigint"),
        (list[tuple[str, int]], "array<struct<f0:string,f1:bigint>>"),
        (tuple[int, ...], "array<bigint>"),
        (Mapping[str, list[int]], "map<string,array<bigint>>"),
        (Pair, "struct<word:string,n:bigint>"),
        (Point, "struct<x:double,tags:array<string>>"),
        (Movie, "struct<title:string,year:bigint>"),
    ],
)
def test_hints(hint: object, ddl: str) -> None:
    assert type_of_hint(hint).ddl() == ddl


@pytest.mark.parametrize("hint", [object, Any, int | str, list, dict, complex, "int"])
def test_hints_that_stand_for_no_type(hint: object) -> None:
    with pytest.raises(SchemaError):
        type_of_hint(hint)


def test_to_schema_takes_whatever_a_program_writes() -> None:
    assert to_schema(Pair).names == ("word", "n")
    assert not to_schema(Pair).scalar
    assert to_schema(str).scalar
    assert to_schema("word STRING, n BIGINT") == to_schema(Pair)
    assert to_schema(tuple[str, int]).names == ("f0", "f1")


@pytest.mark.parametrize(
    ("hint", "element"),
    [
        (Iterable[int], int),
        (Iterator[Pair], Pair),
        (Generator[str, None, None], str),
        (list[str], str),
        (tuple[int, ...], int),
        (tuple[int, str], None),
        (dict[str, int], None),
        (int, None),
        (list, None),
    ],
)
def test_elements_of_iterables(hint: object, element: object) -> None:
    assert element_hint(hint) is element


def test_quote() -> None:
    assert [quote(n) for n in ("abc", "a b", "a`b", "1a")] == ["abc", "`a b`", "`a``b`", "`1a`"]


def test_names_are_found_in_any_case() -> None:
    schema = parse_schema("Year INT, x STRING")
    assert schema.find("YEAR") == Field("Year", "int")
    assert schema.find("nope") is None
    assert schema.without("year").names == ("x",)
