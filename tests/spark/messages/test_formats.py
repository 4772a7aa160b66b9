"""Messages as elements and back, by blocks and one by one."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import pickle
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from yarnflow.api.common import ByteArraySchema, SimpleStringSchema, Types
from yarnflow.api.common.serialization import RowFieldExtractorSchema
from yarnflow.api.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from yarnflow.api.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from yarnflow.errors import ElementMismatch, MalformedMessage, SchemaError
from yarnflow.graph.connectors.messages import MALFORMED_MESSAGE, MessageFormat
from yarnflow.graph.type_info import TypeInfo
from yarnflow.operators.elements import Chunk, SourceChunk
from yarnflow.operators.row import Row
from yarnflow.operators.types.coerce import chunk_coercer
from yarnflow.spark.messages.reading import MessageChunks, message_reader
from yarnflow.spark.messages.writing import message_writer

CLICK = Types.ROW_NAMED(["user", "n", "share"], [Types.STRING(), Types.INT(), Types.DOUBLE()])


def batch(*messages: bytes | None, first_offset: int = 7) -> pa.RecordBatch:
    count = len(messages)
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(messages, pa.binary()),
            "topic": ["clicks"] * count,
            "partition": pa.array([1] * count, pa.int32()),
            "offset": pa.array(range(first_offset, first_offset + count), pa.int64()),
            "timestamp": pa.array([1_000_000 * n for n in range(count)], pa.timestamp("us", tz="UTC")),
        }
    )


def json_format(kind: Any = CLICK, strict: bool = False, ignore: bool = False) -> MessageFormat:
    builder = JsonRowDeserializationSchema.builder().type_info(kind)
    if strict:
        builder.fail_on_missing_field()
    if ignore:
        builder.ignore_parse_errors()
    return builder.build()._read()


def csv_format(kind: Any = CLICK, **settings: Any) -> MessageFormat:
    builder = CsvRowDeserializationSchema.Builder(kind)
    for name, value in settings.items():
        getattr(builder, f"set_{name}")(value)
    return builder.build()._read()


def read(form: MessageFormat, *messages: bytes | None) -> list[Any]:
    return MessageChunks(form)(batch(*messages)).values


def test_a_block_of_json_is_read_at_once_and_has_the_messages_times() -> None:
    chunk = MessageChunks(json_format())(
        batch(b'{"user":"a","n":1,"share":0.5}', None, b'{"n":2,"more":[1],"user":null}')
    )
    assert chunk.values == [Row(user="a", n=1, share=0.5), Row(user=None, n=2, share=None)]
    assert chunk.timestamps == [0, 2000]
    messages = pa.array([b'{"n":1}', b'{"n":2}'], pa.binary())
    assert message_reader(json_format()).block(messages) is not None


def test_columns_are_read_without_python_objects_where_arrow_reads_as_flink_does() -> None:
    chunks = MessageChunks(json_format())
    table = chunks.columns(batch(b'{"user":"a","n":1,"share":0.5}', None, b'{"n":2,"more":[1],"user":null}'))
    assert table is not None
    assert table.to_pylist() == [{"user": "a", "n": 1, "share": 0.5}, {"user": None, "n": 2, "share": None}]
    assert chunks.columns(batch()) is None
    assert chunks.columns(batch(b'{"n":"6"}')) is None
    assert MessageChunks(json_format(strict=True)).columns(batch(b'{"user":"a"}')) is None
    assert MessageChunks(csv_format()).columns(batch(b"a,1,0.5")) is None


def test_lines_within_messages_are_not_taken_for_messages() -> None:
    assert read(json_format(), b'{"n":1}', b'{\n"n":2}') == [
        Row(user=None, n=1, share=None),
        Row(user=None, n=2, share=None),
    ]
    with pytest.raises(MalformedMessage, match="offset 7"):
        read(json_format(), b'{"n":1}\n{"n":2}', b"")


def test_a_message_without_a_time_has_none() -> None:
    found = batch(b"{}").set_column(4, "timestamp", pa.array([-1000], pa.timestamp("us", tz="UTC")))
    assert MessageChunks(json_format())(found).timestamps == [None]


@pytest.mark.parametrize(
    ("message", "reason", "fields"),
    [
        (b"nonsense", "Expecting value", False),
        (b"[1]", "not a JSON object", False),
        (b"", "Expecting value", False),
        (b'{"n":"x"}', "field 'n' is 'x', which is no Integer", True),
        (b'{"n":3000000000}', "field 'n' is 3000000000, which is no Integer", True),
        (b'{"n":1}{"n":2}', "Extra data", False),
        (b"\xff{}", "can't decode byte 0xff", False),
        (b'{"user":"\xff"}', "can't decode byte 0xff", False),
        (b'{"n":' + b"[" * 5000 + b"]" * 5000 + b"}", "maximum recursion depth exceeded", False),
    ],
)
def test_a_malformed_message_is_named_by_its_place(message: bytes, reason: str, fields: bool) -> None:
    """``fields``: its fields can be told, and one of them does not fit."""
    with pytest.raises(MalformedMessage) as raised:
        read(json_format(), b'{"n":1}', message, b'{"n":3}')
    assert raised.value.message.startswith("topic clicks, partition 1, offset 8: no JSON message of ")
    assert reason in raised.value.message
    chunk = MessageChunks(json_format(ignore=True))(batch(b'{"n":1}', message, b'{"n":3}'))
    assert [row["n"] for row in chunk.values] == ([1, None, 3] if fields else [1, 3])
    assert chunk.timestamps == ([0, 1000, 2000] if fields else [0, 2000])
    assert isinstance(chunk, SourceChunk) and chunk.errors == 1


DEEP = Types.ROW_NAMED(
    ["user", "n", "at", "numbers", "inner", "by"],
    [Types.STRING(), Types.INT(), Types.SQL_TIMESTAMP(), Types.LIST(Types.INT()), CLICK,
     Types.MAP(Types.STRING(), Types.INT())],
)  # fmt: skip


def test_what_does_not_fit_is_none_where_json_ignores_errors() -> None:
    messages = [
        b'{"user":"a","n":"nine","at":"not a time","numbers":[1,"x",3],"inner":{"user":"b","n":{},"share":2},'
        b'"by":{"a":1,"b":[]}}',
        b'{"user":["c"],"n":1e3,"at":7,"numbers":{"no":"list"},"inner":[],"by":1}',
        b'{"n":1}',
    ]
    chunk = MessageChunks(json_format(DEEP, ignore=True))(batch(*messages))
    inner = Row(user="b", n=None, share=2.0)
    assert chunk.values == [
        Row(user="a", n=None, at=None, numbers=[1, None, 3], inner=inner, by={"a": 1, "b": None}),
        Row(user='["c"]', n=1000, at=None, numbers=None, inner=None, by=None),
        Row(user=None, n=1, at=None, numbers=None, inner=None, by=None),
    ]
    assert isinstance(chunk, SourceChunk) and chunk.errors == 2


def test_fields_of_csv_are_none_where_errors_are_ignored() -> None:
    form = csv_format(ignore_parse_errors=True)
    chunk = MessageChunks(form)(batch(b"a,x,1", b"b,2", b"c,3,3.0", b"d,4,4.0,5", b'"e'))
    assert chunk.values == [
        Row(user="a", n=None, share=1.0),
        Row(user="b", n=2, share=None),
        Row(user="c", n=3, share=3.0),
    ]
    assert isinstance(chunk, SourceChunk) and chunk.errors == 4


def test_a_format_that_must_not_miss_a_field_ignores_no_errors() -> None:
    with pytest.raises(SchemaError, match="exclude each other"):
        json_format(strict=True, ignore=True)


def test_malformed_messages_go_to_a_side_output_with_their_place_and_the_reason() -> None:
    found = batch(b'{"n":1}', b"nonsense", None, b"null", b'{"n":"x"}', b'{"n":3}')
    found = found.append_column("key", pa.array([b"a", b"b", None, None, None, b"c"], pa.binary()))
    chunks = pickle.loads(pickle.dumps(MessageChunks(json_format(), "bad")))
    chunk = chunks(found)
    assert isinstance(chunk, SourceChunk)
    assert [row["n"] for row in chunk.values] == [1, 3]
    assert chunk.timestamps == [0, 5000]
    aside = chunk.sides["bad"]
    assert aside.timestamps == [1000, 4000]
    first, second = aside.values
    assert first.as_dict() == {
        "topic": "clicks", "partition": 1, "offset": 8, "timestamp_ms": 1000, "key": b"b",
        "value": b"nonsense", "reason": "Expecting value: line 1 column 1 (char 0) in b'nonsense'",
    }  # fmt: skip
    assert (second["offset"], second["key"], second["value"]) == (11, None, b'{"n":"x"}')
    assert second["reason"] == "field 'n' is 'x', which is no Integer"
    assert chunk_coercer(MALFORMED_MESSAGE, "", "")(aside.values) == aside.values
    # nothing is wrong: as without that output
    assert type(chunks(batch(b'{"n":1}'))) is Chunk


def test_the_error_of_a_malformed_message_says_what_to_do() -> None:
    with pytest.raises(MalformedMessage, match="set_malformed_output"):
        read(json_format(), b"nonsense")
    queued = batch(b"nonsense").select(["value"]).append_column("message", pa.array([1]))
    with pytest.raises(MalformedMessage, match="message 1: .*; let the format ignore"):
        MessageChunks(json_format())(queued)


@pytest.mark.parametrize("messages", [(b'{"n":1}{"n":2}', b""), (b'{"n":1,', b'"user":"s"}{"n":2}')])
def test_malformed_messages_are_not_taken_for_as_many_others(messages: tuple[bytes, ...]) -> None:
    with pytest.raises(MalformedMessage, match="offset 7"):
        read(json_format(), *messages)
    assert MessageChunks(json_format()).columns(batch(*messages)) is None


def test_text_that_is_not_utf_8_is_no_column() -> None:
    assert MessageChunks(json_format()).columns(batch(b'{"user":"\xff"}')) is None


READ_NULL = """
import pyarrow as pa
from tests.spark.messages.test_formats import Row, batch, json_format, read
from yarnflow.spark.messages.reading import MessageChunks
for messages in [b"null"], [b"null", b'{"n":1}'], [b" null "], [b'{"n":1}', b"null"]:
    rows = [Row(user=None, n=1, share=None)] * (len(messages) - 1)
    assert read(json_format(), *messages) == read(json_format(ignore=True), *messages) == rows, messages
    assert MessageChunks(json_format()).columns(batch(*messages)) is None
"""


def test_null_is_left_out_and_does_not_end_the_worker() -> None:
    # Arrow ends the process that reads it: not this one
    ended = subprocess.run([sys.executable, "-c", READ_NULL], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_half_a_character_is_a_question_mark_as_in_java() -> None:
    assert read(json_format(), b'{"user":"a\\ud800"}') == [Row(user="a?", n=None, share=None)]


def test_json_that_only_flink_reads_is_read_one_by_one_in_the_same_way() -> None:
    found = read(json_format(), b'{"n":" 5 ","share":"2.5","user":7}', b'{"n":6.0,"share":3,"user":"a"}')
    assert found == [Row(user="7", n=5, share=2.5), Row(user="a", n=6, share=3.0)]


def test_a_field_that_is_missing_fails_where_it_may_not() -> None:
    with pytest.raises(MalformedMessage, match="the message has no field 'share'"):
        read(json_format(strict=True), b'{"user":"a","n":1}')
    assert read(json_format(strict=True), b'{"user":"a","n":1,"share":null}') == [
        Row(user="a", n=1, share=None)
    ]


NESTED = Types.ROW_NAMED(["who", "sizes"], [Types.ROW_NAMED(["id"], [Types.LONG()]), Types.LIST(Types.INT())])
ALL = Types.ROW_NAMED(
    ["price", "day", "at", "raw", "tags"],
    [
        *(Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIMESTAMP()),
        *(Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.MAP(Types.STRING(), Types.INT())),
    ],
)
PURCHASE = Row(
    price=decimal.Decimal("1.5"),
    day=dt.date(2026, 1, 2),
    at=dt.datetime(2026, 1, 2, 3, 4, 5, 6000),
    raw=b"\x00\x01",
    tags={"a": 1},
)


def written_json(kind: TypeInfo, row: Row) -> bytes:
    form = JsonRowSerializationSchema.builder().with_type_info(kind).build()._written()
    return message_writer(form)(row)


def test_nested_rows_by_a_block_and_one_by_one() -> None:
    expected = Row(who=Row(id=1), sizes=[1, None])
    message = b'{"who":{"id":1},"sizes":[1,null]}'
    reader = message_reader(json_format(NESTED))
    assert reader.block(pa.array([message], pa.binary())) == [expected] == [reader.one(message)]
    assert written_json(NESTED, expected) == message


def test_what_json_has_no_type_for_goes_there_and_back() -> None:
    message = written_json(ALL, PURCHASE)
    assert b'"price":1.5,"day":"2026-01-02","at":"2026-01-02T03:04:05.006Z","raw":"AAE="' in message
    assert read(json_format(ALL), message) == [PURCHASE]


def test_text_in_a_charset_replaces_what_it_does_not_know() -> None:
    assert read(SimpleStringSchema()._read(), "é".encode(), b"\xff", None) == ["é", "�"]
    assert read(SimpleStringSchema("ISO-8859-1")._read(), b"\xe9") == ["é"]
    assert message_writer(SimpleStringSchema("US-ASCII")._written())("é") == b"?"
    with pytest.raises(ValueError, match="no charset"):
        SimpleStringSchema("nonsense")


def test_bytes_and_fields_of_rows() -> None:
    assert read(ByteArraySchema()._read(), b"\x00") == [b"\x00"]
    assert message_writer(ByteArraySchema()._written())(b"\x00") == b"\x00"
    assert message_writer(RowFieldExtractorSchema(1)._written())(Row("a", b"b")) == b"b"
    with pytest.raises(ElementMismatch, match="element 'text' is no BYTES message"):
        message_writer(ByteArraySchema()._written())("text")


def test_csv_lines() -> None:
    found = read(csv_format(null_literal="-"), b'"a,b",1,0.5', b"-,2,-\n")
    assert found == [Row(user="a,b", n=1, share=0.5), Row(user=None, n=2, share=None)]
    form = csv_format(field_delimiter="|", quote_character="'", allow_comments=True, ignore_parse_errors=True)
    assert read(form, b"#|1|2", b"'x|'|1|2.0") == [Row(user="x|", n=1, share=2.0)]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"a,1", "2 fields where 3"),
        (b"a,x,1", "'x' is no Integer"),
        (b"", "0 fields where 3"),
        (b"a,1,1\nb,2,2", "new-line"),
    ],
)
def test_a_line_that_does_not_fit_is_named(message: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=f"offset 8: .*{reason}"):
        read(csv_format(), b"a,1,1.0", message)


def test_a_quote_that_goes_on_in_the_next_message_is_no_line() -> None:
    with pytest.raises(MalformedMessage, match="offset 7"):
        read(csv_format(), b'"a', b'b",1,1.0')


def test_csv_is_written_as_it_is_read() -> None:
    kind = Types.ROW_NAMED(["user", "sizes"], [Types.STRING(), Types.LIST(Types.INT())])
    builder = CsvRowSerializationSchema.Builder(kind).set_line_delimiter("").set_null_literal("-")
    message = message_writer(builder.build()._written())(Row(user='a "b", c', sizes=[1, 2]))
    assert message == b'"a ""b"", c",1;2'
    assert read(csv_format(kind), message) == [Row(user='a "b", c', sizes=[1, 2])]
    assert message_writer(builder.build()._written())(Row(user=None, sizes=[])) == b"-,"


SCHEMA = """{"type": "record", "name": "Click", "namespace": "a.b", "fields": [
  {"name": "user", "type": ["null", "string"]},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "place", "type": {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}},
  {"name": "others", "type": {"type": "array", "items": "Place"}},
  {"name": "tags", "type": {"type": "map", "values": "double"}}
]}"""


def test_avro_records_there_and_back() -> None:
    row = Row(user=None, at=dt.datetime(2026, 1, 2), place=Row(x=1), others=[Row(x=2)], tags={"a": 0.5})
    message = message_writer(AvroRowSerializationSchema(avro_schema_string=SCHEMA)._written())(row)
    form = AvroRowDeserializationSchema(avro_schema_string=SCHEMA)._read()
    assert read(form, message) == [row]
    assert repr(form.element_type) == (
        "RowTypeInfo(user: String, at: TimestampTypeInfo, place: RowTypeInfo(x: Integer), "
        "others: ListTypeInfo<RowTypeInfo(x: Integer)>, tags: MapTypeInfo<String, Double>)"
    )
    for bad in (message[:-1], message + b"\x00"):
        with pytest.raises(MalformedMessage, match="offset 8: no AVRO message"):
            read(form, message, bad)


def test_rows_of_other_names_are_written_in_order() -> None:
    kind = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
    fields = [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]
    avro = json.dumps({"type": "record", "name": "R", "fields": fields})
    schemas = (
        JsonRowSerializationSchema.builder().with_type_info(kind).build(),
        CsvRowSerializationSchema.Builder(kind).build(),
        AvroRowSerializationSchema(avro_schema_string=avro),
    )
    writers = [message_writer(schema._written()) for schema in schemas]
    for row in (Row(f0=1, f1="hi"), Row(name="hi", id=1), Row(1, "hi"), (1, "hi")):
        assert [write(row) for write in writers] == [b'{"id":1,"name":"hi"}', b"1,hi\n", b"\x02\x04hi"]
    for write in writers:
        with pytest.raises(ElementMismatch):
            write(Row(f0=1, f1="hi", f2=2))


def test_types_that_a_format_cannot_hold_are_refused_before_anything_is_read() -> None:
    with pytest.raises(SchemaError, match="field 'who' of CSV cannot be of the type"):
        message_reader(csv_format(NESTED))
    with pytest.raises(SchemaError, match="contain themselves"):
        AvroRowDeserializationSchema(
            avro_schema_string='{"type":"record","name":"A","fields":[{"name":"a","type":["null","A"]}]}'
        )
