"""Rows as user functions see them."""

import dataclasses
import pickle
from typing import Any

import pytest

from yarnflow.graph.rows import Row, input_records, record_reader, row_class
from yarnflow.graph.schema import Field, Schema

WORDS = Schema((Field("word", "string"), Field("count", "bigint")))
SCALAR = Schema((Field("value", "string"),), scalar=True)


def test_access() -> None:
    row: Any = row_class(("word", "count", "odd name", "_hidden"))("a", 1, True, None)
    assert (row.word, row.count, row["odd name"]) == ("a", 1, True)
    assert (row[0], row[-1], row[1:3]) == ("a", None, (1, True))
    assert row.as_dict() == {"word": "a", "count": 1, "odd name": True, "_hidden": None}
    assert list(row) == ["a", 1, True, None]
    assert row == ("a", 1, True, None)
    assert repr(Row(word="a", n=1)) == "Row(word='a', n=1)"
    assert repr(Row("a", 1)) == "Row('a', 1)"


def test_wrong_names_are_told() -> None:
    row = Row(word="a", n=1)
    with pytest.raises(KeyError, match="no field 'x'; fields: word, n"):
        row["x"]
    with pytest.raises(AttributeError, match="no field 'x'"):
        row.x
    with pytest.raises(TypeError):
        Row(1, n=2)
    with pytest.raises(TypeError):
        row_class(("a", "b"))(1)


def test_classes_are_made_once_and_rows_pickle() -> None:
    assert row_class(("a", "b")) is row_class(("a", "b"))
    row = Row(word="a", n=1)
    copy = pickle.loads(pickle.dumps(row))
    assert copy == row and type(copy) is type(row) and copy.n == 1
    assert pickle.loads(pickle.dumps(Row("a", 1))) == Row("a", 1)


@dataclasses.dataclass
class Word:
    word: str
    count: int


@pytest.mark.parametrize(
    "record",
    [
        ("a", 1),
        ["a", 1],
        Row("a", 1),
        Row(word="a", count=1),
        Row(count=1, word="a"),
        {"count": 1, "word": "a"},
        Word("a", 1),
    ],
)
def test_every_form_of_record(record: object) -> None:
    assert record_reader(WORDS)(record) == ("a", 1)


def test_a_scalar_stream_takes_anything_and_mappings_may_lack_fields() -> None:
    assert record_reader(SCALAR)(("a", 1)) == (("a", 1),)
    assert record_reader(WORDS)({"word": "a"}) == ("a", None)


@pytest.mark.parametrize("record", ["ab", None, 1, ("a",), {"wrod": "a"}, Row(a=1, b=2), Word])
def test_records_that_do_not_fit(record: object) -> None:
    with pytest.raises(TypeError, match="fields are word, count"):
        record_reader(WORDS)(record)


def test_input_records() -> None:
    assert list(input_records([["a", "b"]], SCALAR)) == ["a", "b"]
    rows: list[Any] = list(input_records([["a", "b"], [1, 2]], WORDS))
    assert [(type(row).__mro__[1], row.count) for row in rows] == [(Row, 1), (Row, 2)]
