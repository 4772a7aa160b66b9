"""What the client says about expressions."""

import pytest

from yarnflow.errors import GraphError, InvalidExpression, SchemaError, UnknownField
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.sql import expressions as e
from yarnflow.graph.types import parse_schema

FLIGHTS = parse_schema(
    "year INT, dep_delay DOUBLE, Carrier STRING, st STRUCT<x: INT, Y: STRING>, arr ARRAY<STRING>, ts "
    "TIMESTAMP, "
    "`odd name` STRING, price DECIMAL(8,2)"
)
UNKNOWN = Schema(())


def test_select_names_and_types() -> None:
    schema = e.select_schema(
        ["YEAR", "st.x", "dep_delay * 2 AS x2", "`odd name`", "explode(arr) word", "price + 1 AS p", "arr"],
        FLIGHTS,
    )
    assert schema.fields == (
        Field("YEAR", "int"),
        Field("x", "int"),
        Field("x2", "double"),
        Field("odd name", "string"),
        Field("word", "string"),
        Field("p", None),  # Spark's decimal arithmetic is Spark's to know
        Field("arr", "array<string>"),
    )


def test_stars() -> None:
    assert e.select_schema(["*"], FLIGHTS).fields == FLIGHTS.fields
    assert e.select_schema(["* EXCEPT (year, CARRIER)"], FLIGHTS).names[0] == "dep_delay"
    assert e.select_schema(["st.*"], FLIGHTS).names == ("x", "Y")
    assert e.select_schema(["*", "1 AS one"], UNKNOWN) == UNKNOWN
    assert e.select_schema(["a", "b + 1 AS c"], UNKNOWN).names == ("a", "c")


def test_lambda_parameters_are_no_fields() -> None:
    assert e.select_schema(["transform(arr, x -> upper(x)) AS up"], FLIGHTS).names == ("up",)
    with pytest.raises(UnknownField, match="'y'"):
        e.select_schema(["transform(arr, x -> concat(x, y)) AS up"], FLIGHTS)


def test_unknown_field_suggests_and_lists() -> None:
    with pytest.raises(UnknownField) as caught:
        e.select_schema(["year", "dep_dealy"], FLIGHTS)
    assert str(caught.value).startswith(
        "no field 'dep_dealy' in the stream; did you mean 'dep_delay'? Fields: year, dep_delay, Carrier, "
    )


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ("year +", InvalidExpression, "not valid SQL near '+'"),
        ("year, ts", InvalidExpression, "2 expressions"),
        ("year FROM t", InvalidExpression, "more than one expression"),
        (" ", InvalidExpression, "empty"),
        ("(SELECT 1) AS x", InvalidExpression, "subquery"),
        ("year + 1", SchemaError, "write 'year + 1 AS name'"),
        ("sum(year) AS s", InvalidExpression, "key_by"),
        ("skewness(year) AS s", InvalidExpression, "key_by"),
        ("rank() OVER (ORDER BY year) AS r", InvalidExpression, "OVER"),
        ("st.z", UnknownField, "'z'"),
        ("year.x", UnknownField, "no struct"),
        ("nope.x", UnknownField, "'nope'"),
    ],
)
def test_select_refuses(text: str, error: type[GraphError], part: str) -> None:
    with pytest.raises(error) as caught:
        e.select_schema([text], FLIGHTS)
    assert part in str(caught.value)


def test_select_refuses_equal_names() -> None:
    with pytest.raises(SchemaError, match="two fields are named 'Year'"):
        e.select_schema(["year", "Year"], FLIGHTS)


def test_filter() -> None:
    e.check_filter("year > 1 AND carrier LIKE 'A%'", FLIGHTS)
    e.check_filter("anything > 1", UNKNOWN)
    for text, part in [
        ("year", "must be boolean"), ("year > 1 AS b", "no name"), ("max(year) > 1", "aggregate")
    ]:
        with pytest.raises(InvalidExpression, match=part):
            e.check_filter(text, FLIGHTS)


def test_event_time() -> None:
    e.check_event_time("ts", FLIGHTS)
    e.check_event_time("make_timestamp(year, 1, 1, 0, 0, 0)", FLIGHTS)
    with pytest.raises(InvalidExpression, match=r"CAST\(Carrier AS TIMESTAMP\)"):
        e.check_event_time("Carrier", FLIGHTS)


def test_keys_keep_the_users_text() -> None:
    assert e.key_fields(["carrier", "upper(Carrier) AS up"], FLIGHTS) == (
        Field("carrier", "string"),
        Field("up", "string"),
    )
    assert e.without_alias("upper( Carrier )  AS up") == "upper( Carrier )"
    assert e.without_alias("year+1 y") == "year+1"
    assert e.without_alias("carrier") == "carrier"
    with pytest.raises(InvalidExpression):
        e.key_fields(["*"], FLIGHTS)
    with pytest.raises(SchemaError, match="needs a name"):
        e.key_fields(["upper(carrier)"], FLIGHTS)


def test_aggregates() -> None:
    made = e.aggregate_fields(
        [
            "count(*) n",
            "avg(dep_delay) AS mean",
            "sum(year) FILTER (WHERE dep_delay > 0) AS late",
            "carrier || max(year) AS c",
        ],
        FLIGHTS,
        ["carrier"],
    )
    assert made == (
        Field("n", "bigint"), Field("mean", "double"), Field("late", "bigint"), Field("c", "string")
    )


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ("year AS y", InvalidExpression, "no aggregate"),
        (
            "sum(year) + dep_delay AS z",
            InvalidExpression,
            "'dep_delay' is neither aggregated nor part of the key",
        ),
        ("sum(avg(year)) AS z", InvalidExpression, "inside an aggregate"),
        ("count(*)", SchemaError, "AS name"),
        ("sum(yaer) AS s", UnknownField, "did you mean 'year'"),
    ],
)
def test_aggregates_refuse(text: str, error: type[GraphError], part: str) -> None:
    with pytest.raises(error) as caught:
        e.aggregate_fields([text], FLIGHTS, ["carrier"])
    assert part in str(caught.value)


def test_field_aggregate_quotes() -> None:
    assert e.field_aggregate("sum", "odd name", FLIGHTS) == "sum(`odd name`) AS `odd name`"
    with pytest.raises(UnknownField):
        e.field_aggregate("sum", "nope", FLIGHTS)
