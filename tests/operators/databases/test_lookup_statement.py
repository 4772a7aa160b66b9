"""Statements for many keys, and whose rows come back."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from yarnflow.graph.types import parse_type
from yarnflow.operators.databases.column_values import from_database
from yarnflow.operators.databases.jdbc_url import DatabaseKind
from yarnflow.operators.databases.lookup_statement import Key, divided, pieces, select_by_keys


def test_one_column_is_compared_with_a_list() -> None:
    found = select_by_keys(DatabaseKind.POSTGRESQL, "shop.people", ["id"], ["name", "user"], 3, "%s")
    assert found == 'SELECT "id", "name", "user" FROM shop.people WHERE "id" IN (%s, %s, %s)'


def test_several_columns() -> None:
    found = select_by_keys(DatabaseKind.MYSQL, "t", ["a", "b`"], ["c"], 2, "%s")
    one = "(`a` = %s AND `b``` = %s)"
    assert found == f"SELECT `a`, `b```, `c` FROM t WHERE {one} OR {one}"


def test_a_query_in_place_of_a_table() -> None:
    query = "(SELECT id, name FROM p WHERE name LIKE 'a%') AS p"
    assert "LIKE 'a%%'" in select_by_keys(DatabaseKind.POSTGRESQL, query, ["id"], ["name"], 1, "%s")
    assert "LIKE 'a%'" in select_by_keys(DatabaseKind.SQLITE, query, ["id"], ["name"], 1, "?")
    found = select_by_keys(DatabaseKind.MYSQL, "t", ["a%"], ["b%"], 1, "%s")
    assert found == "SELECT `a%%`, `b%%` FROM t WHERE `a%%` IN (%s)"


def asked(keys: Sequence[Key], most: int = 500) -> list[list[Key]]:
    return [list(piece.values()) for piece in pieces(keys, most)]


def test_pieces_of_some_hundred_keys() -> None:
    keys = [(number,) for number in range(7)]
    assert asked(keys, 3) == [keys[:3], keys[3:6], keys[6:]]
    assert asked([]) == []


def test_texts_that_a_database_could_take_for_equal_are_asked_for_one_after_the_other() -> None:
    keys: list[Key] = [("Ann",), ("bob",), ("ann",), ("Ánn ",), ("carl",)]
    assert asked(keys) == [[("Ann",), ("bob",), ("carl",)], [("ann",)], [("Ánn ",)]]


def test_rows_are_divided_by_their_keys() -> None:
    (piece,) = pieces([("Ann", 1), ("bob", 2), ("nobody", 3)])
    rows = [("bob", Decimal(2), "x"), ("ANN  ", 1, "y"), ("bob", 2, "z")]
    assert divided(piece, rows) == {
        ("Ann", 1): [("y",)], ("bob", 2): [("x",), ("z",)], ("nobody", 3): []
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "came"),
    [
        ("0f8fad5b-d9cb-469f-a165-70867728950e", uuid.UUID("0F8FAD5B-D9CB-469F-A165-70867728950E")),
        (b"ab", memoryview(b"ab")),
        (dt.datetime(2024, 1, 2, 3), dt.datetime(2024, 1, 2, 4, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
        (1.5, Decimal("1.5")),
        ("straße", "STRASSE"),
    ],
)
def test_keys_in_another_form(key: Any, came: Any) -> None:
    (piece,) = pieces([(key,)])
    assert divided(piece, [(came, "x")]) == {(key,): [("x",)]}


def test_a_key_that_nobody_asked_for() -> None:
    (piece,) = pieces([("5",)])
    assert divided(piece, [(5, "x")]) is None


NOON = dt.datetime(2024, 1, 2, 12)


@pytest.mark.parametrize(
    ("kind", "came", "value"),
    [
        ("int", Decimal("5"), 5),
        ("int", Decimal("5.5"), Decimal("5.5")),
        ("double", Decimal("0.1"), 0.1),
        ("decimal(5,2)", 0.1, Decimal("0.1")),
        ("boolean", 1, True),
        ("boolean", b"\x00", False),
        ("boolean", 7, 7),
        ("string", uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        ("string", {"ä": [1]}, '{"ä": [1]}'),
        ("string", 5, "5"),
        ("binary", memoryview(b"x"), b"x"),
        ("date", NOON, NOON.date()),
        ("timestamp", NOON.replace(tzinfo=dt.timezone(dt.timedelta(hours=2))), NOON.replace(hour=10)),
        ("timestamp", NOON.date(), NOON.replace(hour=0)),
        ("array<int>", [1], [1]),
        ("int", None, None),
    ],
)
def test_values_of_databases_as_declared_types(kind: str, came: Any, value: Any) -> None:
    found = from_database(parse_type(kind))(came)
    assert found == value and type(found) is type(value)
