"""PyFlink's Row."""

import copy
import pickle
from typing import Any

import pytest

from yarnflow.errors import UnsupportedCall
from yarnflow.operators.row import Row, RowKind, make_row


def test_named_rows() -> None:
    row = Row(name="Alice", age=11)
    assert (row["name"], row.age, row[0], row[-1], row[:]) == ("Alice", 11, "Alice", 11, ["Alice", 11])
    assert "name" in row and "Alice" not in row
    assert repr(row) == "Row(name='Alice', age=11)"
    assert (len(row), list(row)) == (2, ["Alice", 11])


def test_positional_rows() -> None:
    row = Row("Alice", 11)
    assert repr(row) == "<Row('Alice', 11)>"
    assert "Alice" in row and "name" not in row
    with pytest.raises(TypeError, match="set_field_names"):
        row.as_dict()
    with pytest.raises(KeyError):
        row["name"]
    row.set_field_names(["name", "age"])
    assert row.as_dict() == {"name": "Alice", "age": 11}


def test_rows_of_names_make_rows() -> None:
    person = Row("name", "age")
    assert person("Alice", 11) == Row(name="Alice", age=11)
    assert "name" in person
    with pytest.raises(ValueError, match="2 fields, got 3 values"):
        person("Alice", 11, True)


def test_either_names_or_positions() -> None:
    with pytest.raises(ValueError, match="either positional or named"):
        Row(1, name=2)


def test_rows_change() -> None:
    row = Row(a=1, b=2)
    row["a"], row[1] = 10, 20
    assert row == Row(a=10, b=20)
    with pytest.raises(AttributeError):
        row.c = 3  # type: ignore[attr-defined]
    for name in ("missing", "_private"):
        with pytest.raises(AttributeError, match=name):
            getattr(row, name)
    with pytest.raises(ValueError, match="missing"):
        row["missing"] = 1
    with pytest.raises(KeyError):
        Row(1)["a"] = 2


def test_equality() -> None:
    assert Row(a=1, b=2) == Row(b=2, a=1) != Row(a=1, c=2)
    assert Row(1, 2) == Row(1, 2) != Row(2, 1)
    assert Row(1) != Row(a=1) and Row(1) != (1,)
    assert Row.of_kind(RowKind.DELETE, 1) != Row(1)
    assert hash(Row(1, 2)) == hash(Row(a=1, b=2)) == hash((1, 2))
    assert len({Row(1), Row(1), Row(2)}) == 2


def test_kinds() -> None:
    row = Row.of_kind(RowKind.UPDATE_BEFORE, a=1)
    assert row.get_row_kind() is RowKind.UPDATE_BEFORE
    row.set_row_kind(RowKind.UPDATE_AFTER)
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
    assert [kind.value for kind in RowKind] == [0, 1, 2, 3]
    assert row.get_row_kind() is RowKind.UPDATE_AFTER
    with pytest.raises(UnsupportedCall):
        RowKind.INSERT.to_j_row_kind()


def test_dicts_within() -> None:
    row = Row(key=1, value=Row(a=2), more=[Row(b=3)], table={"x": Row(c=4)})
    assert row.as_dict()["value"] == Row(a=2)
    assert row.as_dict(True) == {"key": 1, "value": {"a": 2}, "more": [{"b": 3}], "table": {"x": {"c": 4}}}


def test_fields_by_names() -> None:
    row = Row(a=1, b=2)
    assert row.get_fields_by_names(["a", "b"]) == [1, 2]
    assert row.get_fields_by_names(["b"]) == [2]
    assert Row(1, 2).get_fields_by_names(["x", "y"]) == [1, 2]
    with pytest.raises(KeyError, match="no field c in a row of a, b"):
        row.get_fields_by_names(["c"])


@pytest.mark.parametrize("row", [Row(1, "x"), Row(a=1, b=[Row(2)]), Row.of_kind(RowKind.DELETE, a=1), Row()])
def test_pickles_and_copies(row: Row) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(row, protocol)) == row
    assert copy.deepcopy(row) == row == copy.copy(row)


def test_a_block_has_its_names_once() -> None:
    names = ("a_long_name_of_a_field", "another_long_name_of_a_field")
    rows: list[Any] = [make_row(names, [number, number]) for number in range(1_000)]
    block = pickle.dumps(rows, 5)
    assert block.count(b"a_long_name") == 1
    assert len(block) < 20_000
    loaded = pickle.loads(block)
    assert loaded == rows and loaded[0]._fields is loaded[999]._fields
