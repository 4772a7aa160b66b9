"""Elements as commands of Redis and as documents of Elasticsearch."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from yarnflow.errors import ElementMismatch
from yarnflow.graph.closures import make_closure
from yarnflow.graph.connectors.elasticsearch import ElasticsearchServer, ElasticsearchSink
from yarnflow.graph.connectors.redis import RedisCommand, RedisServer, RedisSink
from yarnflow.graph.schema import Field, Schema
from yarnflow.operators.row import Row
from yarnflow.spark.connectors.rows_of_columns import _RowsOfColumns
from yarnflow.spark.messages.sink_rows import row_ddl, row_maker


class Pair:
    def get_key_from_data(self, data: Any) -> Any:
        return data[0]

    def get_value_from_data(self, data: Any) -> Any:
        return data[1]


def arguments(command: RedisCommand, element: Any, additional: str = "", ttl_s: int = 0) -> list[bytes]:
    sink = RedisSink(RedisServer("h"), command, make_closure(Pair(), "job.py:1"), additional, ttl_s)
    (found,) = row_maker(sink).batch([element], None).column("arguments").to_pylist()
    return list(found)


def test_commands() -> None:
    assert arguments(RedisCommand.SET, ("k", b"\xff")) == [b"SET", b"k", b"\xff"]
    assert arguments(RedisCommand.SETEX, ("k", 5), ttl_s=9) == [b"SETEX", b"k", b"9", b"5"]
    assert arguments(RedisCommand.INCRBY, ("ü", -5)) == [b"INCRBY", "ü".encode(), b"-5"]
    assert arguments(RedisCommand.HSET, ("f", 0.5), "hash") == [b"HSET", b"hash", b"f", b"0.5"]
    assert arguments(RedisCommand.ZADD, ("m", 2), "set") == [b"ZADD", b"set", b"2", b"m"]
    assert arguments(RedisCommand.ZREM, ("m", None), "set") == [b"ZREM", b"set", b"m"]


@pytest.mark.parametrize("element, what", [(("k", None), "value"), ((True, 1), "key"), (("k", [1]), "value")])
def test_what_redis_does_not_take(element: Any, what: str) -> None:
    with pytest.raises(ElementMismatch, match=f"get_{what}_from_data"):
        arguments(RedisCommand.SET, element)


def elasticsearch_sink(**settings: Any) -> ElasticsearchSink:
    return ElasticsearchSink(ElasticsearchServer(("http://h:9200",)), **{"index": "i", **settings})


def document(element: Any, **sink: Any) -> tuple[Any, ...]:
    (row,) = row_maker(elasticsearch_sink(**sink)).batch([element], None).to_pylist()
    return row["index"], row["id"], json.loads(row["source"])


def test_documents() -> None:
    assert document({"a": "ü", "n": None}) == ("i", None, {"a": "ü", "n": None})
    assert document({"a": 7}, key_field="a") == ("i", "7", {"a": 7})
    assert document(Row(to="x", n=1), index="to", dynamic_index=True) == ("x", None, {"to": "x", "n": 1})
    values = {
        "at": dt.datetime(2024, 2, 29, 1, 2, 3), "d": dt.date(2024, 2, 29), "c": Decimal("1.50"),
        "b": b"\xff", "r": Row(x=[Row(y=1)]),
    }  # fmt: skip
    assert document(values)[2] == {
        "at": "2024-02-29T01:02:03", "d": "2024-02-29", "c": "1.50", "b": "/w==", "r": {"x": [{"y": 1}]}
    }  # fmt: skip


def test_documents_of_columns() -> None:
    """Rows within rows, lists and maps are objects as well."""
    point = pa.struct([("x", pa.int32())])
    columns = {
        "id": pa.array(["a", "b"]),
        "place": pa.array([{"x": 1}, None], point),
        "way": pa.array([[{"x": 2}, {"x": 3}], []], pa.list_(point)),
        "named": pa.array([[("m", {"x": 4})], None], pa.map_(pa.string(), point)),
    }
    made = _RowsOfColumns(elasticsearch_sink(key_field="id"), Schema(tuple(map(Field, columns))))
    (found,) = made([pa.RecordBatch.from_pydict(columns)])
    assert [(row["id"], json.loads(row["source"])) for row in found.to_pylist()] == [
        ("a", {"id": "a", "place": {"x": 1}, "way": [{"x": 2}, {"x": 3}], "named": {"m": {"x": 4}}}),
        ("b", {"id": "b", "place": None, "way": [], "named": None}),
    ]


@pytest.mark.parametrize(
    "element, sink, said",
    [
        ("text", {}, "'text' is no document"),
        ({"a": 1}, {"key_field": "id"}, "has no field 'id'"),
        ({"a": 1}, {"index": "to", "dynamic_index": True}, "has no field 'to'"),
        ({"a": float("nan")}, {}, "is no JSON document"),
        ({"a": object()}, {}, "object has no form in JSON"),
        (Row("a"), {}, "is no JSON document: a row without field names"),
        ({"a": [Row("b")]}, {}, "is no JSON document: a row without field names"),
    ],
)
def test_what_is_no_document(element: Any, sink: dict[str, Any], said: str) -> None:
    with pytest.raises(ElementMismatch, match=said):
        document(element, **sink)


def test_columns_of_rows_are_those_they_have() -> None:
    sink = elasticsearch_sink()
    names = [part.split()[0] for part in row_ddl(sink).split(", ")]
    assert row_maker(sink).batch([], None).schema.names == names
