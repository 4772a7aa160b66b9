"""Files as programs describe them: what reaches the graph, and what is refused with the line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Configuration, Encoder, Types
from yarnflow.api.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from yarnflow.api.datastream.formats.avro import (
    AvroBulkWriters,
    AvroInputFormat,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from yarnflow.api.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from yarnflow.api.datastream.formats.orc import OrcBulkWriters
from yarnflow.api.datastream.formats.parquet import (
    AvroParquetReaders,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from yarnflow.api.executor import use_executor
from yarnflow.api.table import DataTypes
from yarnflow.errors import GraphError, SchemaError, UnsupportedCall, UnsupportedGraph
from yarnflow.graph.connectors import sinks, sources
from yarnflow.testing.kept_graph import KeptGraph

PAIR = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
ROW = DataTypes.ROW([DataTypes.FIELD("w", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.BIGINT())])
AVRO = """{"type": "record", "name": "P", "fields": [
    {"name": "w", "type": "string"}, {"name": "n", "type": "int"}]}"""
HERE = r"test_files\.py:\d+: "


def operators(define: Callable[[StreamExecutionEnvironment], object]) -> list[Any]:
    kept = KeptGraph()
    with use_executor(kept):
        env = StreamExecutionEnvironment.get_execution_environment()
        define(env)
        env.execute_async()
    return [node.operator for node in kept.graphs[-1].nodes]


def sink_of(sink: FileSink, stream_type: Any = PAIR, element: Any = ("a", 1)) -> sinks.FileSink:
    found = operators(lambda env: env.from_collection([element], stream_type).sink_to(sink))[-1]
    assert isinstance(found, sinks.FileSink)
    return found


def source_of(source: Any) -> sources.FileSource:
    read = "create_input" if isinstance(source, AvroInputFormat) else "from_source"
    found = operators(lambda env: getattr(env, read)(source).print())[0]
    assert isinstance(found, sources.FileSource)
    return found


def text_sink() -> Any:
    return FileSink.for_row_format("/o", Encoder.simple_string_encoder())


def test_settings_of_a_sink() -> None:
    name = OutputFileConfig.builder().with_part_prefix("p").with_part_suffix(".x").build()
    buckets = BucketAssigner.date_time_bucket_assigner("yyyy/MM 'at' HH", "GMT-08:00")
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).set_size_threshold(7).build()
    builder = text_sink().with_rolling_policy(RollingPolicy.default_rolling_policy(5))
    builder.with_bucket_check_interval(1).with_output_file_config(name).with_bucket_assigner(buckets)
    builder.enable_compact(strategy, FileCompactor.identical_file_compactor())
    assert sink_of(builder.build()) == sinks.FileSink(
        "/o", "text", prefix="p", suffix=".x", bucket_pattern="yyyy/MM 'at' HH", bucket_zone="GMT-08:00",
        part_bytes=5, compact_bytes=7,
    )  # fmt: skip
    builder.disable_compact().with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    found = sink_of(builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    assert (found.compact_bytes, found.part_bytes, found.bucket_pattern) == (None, 0, "")
    assert RollingPolicy.default_rolling_policy().part_size == 128 * 1024 * 1024
    plain = BucketAssigner.date_time_bucket_assigner()
    assert (plain.pattern, plain.zone) == ("yyyy-MM-dd--HH", "")


def test_what_a_sink_refuses_names_the_line() -> None:
    with pytest.raises(UnsupportedGraph, match=HERE + "'b' is no pattern of dates"):
        BucketAssigner.date_time_bucket_assigner("b")
    with pytest.raises(UnsupportedGraph, match=HERE + "there is no time zone 'Mars/Base'"):
        BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Base")
    with pytest.raises(UnsupportedGraph, match=HERE + r"enable_compaction_on_checkpoint\(5\): files of"):
        FileCompactStrategy.builder().enable_compaction_on_checkpoint(5)
    with pytest.raises(UnsupportedGraph, match=HERE + "concat_file_compactor"):
        FileCompactor.concat_file_compactor(b"--")
    with pytest.raises(UnsupportedGraph, match=HERE + "no name of a file can have 'a/b'"):
        OutputFileConfig.builder().with_part_prefix("a/b").build()
    with pytest.raises(UnsupportedGraph, match=HERE + "files whose names begin with '_' are hidden"):
        OutputFileConfig("_p", "")
    with pytest.raises(UnsupportedGraph, match=HERE + "there is no charset 'utf-99'"):
        FileSink.for_row_format("/o", Encoder.simple_string_encoder("utf-99"))
    with pytest.raises(UnsupportedGraph, match=HERE + "lines of UTF-16 are not possible"):
        StreamFormat.text_line_format("UTF-16")
    for strategy in (RollingPolicy.default_rolling_policy, FileCompactStrategy.builder().set_size_threshold):
        with pytest.raises(ValueError, match="above 0"):
            strategy(0)
    with pytest.raises(ValueError, match="enable_compaction_on_checkpoint"):
        FileCompactStrategy.builder().build()


def test_buckets_by_expression() -> None:
    by_word = BucketAssigner.expression_bucket_assigner("upper(word)")
    found = sink_of(FileSink.for_path("/o").format("orc").with_bucket_assigner(by_word).build())
    assert (found.format, found.bucket_expression) == ("orc", "upper(word)")
    unknown = BucketAssigner.expression_bucket_assigner("upper(wrd)")
    with pytest.raises(GraphError, match="wrd"):
        sink_of(FileSink.for_path("/o").with_bucket_assigner(unknown).build())
    with pytest.raises(UnsupportedGraph, match="both name directories"):
        sink_of(FileSink.for_path("/o").partition_by("n").with_bucket_assigner(by_word).build())
    lines = BucketAssigner.expression_bucket_assigner("left(value, 1)")
    assert sink_of(text_sink().with_bucket_assigner(lines).build()).bucket_expression == "left(value, 1)"


def test_row_types_of_files() -> None:
    config = Configuration().set_string("parquet.compression", "GZIP")
    found = sink_of(FileSink.for_bulk_format("/o", ParquetBulkWriters.for_row_type(ROW, config)).build())
    assert (found.format, found.options) == ("parquet", {"parquet.compression": "GZIP"})
    assert found.written_as is not None
    assert [(f.name, f.type) for f in found.written_as.fields] == [("w", "string"), ("n", "bigint")]
    assert sink_of(FileSink.for_bulk_format("/o", OrcBulkWriters.for_row_type(ROW)).build()).format == "orc"
    three = DataTypes.ROW([DataTypes.INT(), DataTypes.INT(), DataTypes.INT()])
    said = r"has 2 fields \(word, n\), the row type of the files 3 \(f0, f1, f2\)"
    with pytest.raises(SchemaError, match=said):
        sink_of(FileSink.for_bulk_format("/o", OrcBulkWriters.for_row_type(three)).build())
    with pytest.raises(SchemaError, match=r"for_row_type\(\) takes DataTypes.ROW"):
        OrcBulkWriters.for_row_type(DataTypes.INT())
    read = source_of(FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(ROW), "/i").build())
    assert (read.format, read.schema.names, read.bounded) == ("parquet", ("w", "n"), True)
    assert read.options == {"recursiveFileLookup": "true"}


def test_csv() -> None:
    builder = CsvSchema.builder().add_string_column("w").add_boolean_column("b").add_number_column("n")
    builder.add_array_column("a").add_array_column("t", "/", DataTypes.INT()).set_array_element_separator("|")
    builder.set_column_separator("\t").set_quote_char("'").set_null_value("-").set_allow_comments()
    builder.set_use_header().set_strict_headers().set_line_separator("\r\n")
    schema = builder.build()
    assert len(schema) == len(builder) == 5
    assert "n: Long" in repr(schema.get_type_info())
    read = source_of(FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), "/i").build())
    assert read.separators == {"a": "|", "t": "/"}
    told = {"sep": "\t", "quote": "'", "escape": "'", "nullValue": "-", "header": "true"}
    assert read.options == {**told, "comment": "#", "enforceSchema": "false", "recursiveFileLookup": "true"}
    assert [field.type for field in read.schema.fields][2:] == ["bigint", "array<string>", "array<int>"]
    row = Types.ROW_NAMED(["w", "a"], [Types.STRING(), Types.LIST(Types.STRING())])
    two = CsvSchema.builder().add_string_column("w").add_array_column("a").set_escape_char("\\").build()
    written = sink_of(FileSink.for_bulk_format("/o", CsvBulkWriters.for_schema(two)).build(), row, ("a", []))
    assert (written.separators, written.options) == ({"a": ";"}, {"escape": "\\"})
    more = CsvSchema.builder().add_string_column("x").clear_columns().add_columns_from(two).build()
    assert str(more) == "CsvSchema(struct<w:string,a:array<string>>)"
    with pytest.raises(ValueError, match="Column separator must be a single char"):
        CsvSchema.builder().set_column_separator("ab")
    with pytest.raises(SchemaError, match="needs fields"):
        CsvSchema.builder().build()
    with pytest.raises(UnsupportedCall, match="set_any_property_name"):
        CsvSchema.builder().set_any_property_name("x")
    with pytest.raises(SchemaError, match="csv cannot hold field 'a'"):
        sink_of(FileSink("/o", "csv"), row, ("a", []))


def test_avro(tmp_path: Path) -> None:
    file = tmp_path / "p.avsc"
    file.write_text(AVRO)
    schema = AvroSchema.parse_file(str(file))
    assert str(schema) == AVRO and GenericRecordAvroTypeInfo(schema) == schema.row_type()
    read = source_of(AvroInputFormat("/i", schema))
    assert (read.format, read.options, read.schema.names) == ("avro", {"avroSchema": AVRO}, ("w", "n"))
    written = sink_of(FileSink.for_bulk_format("/o", AvroBulkWriters.for_generic_record(schema)).build())
    assert (written.format, written.options["avroSchema"]) == ("avro", AVRO)
    assert written.options["compression"] == "uncompressed"
    parquet = AvroParquetReaders.for_generic_record(schema)
    assert source_of(FileSource.for_record_stream_format(parquet, "/i").build()).format == "parquet"
    either = AvroSchema.parse_string(
        '{"type": "record", "name": "P", "fields": [{"name": "x", "type": ["int", "string"]}]}'
    )
    with pytest.raises(SchemaError, match="field 'x' of the Avro schema is of several types"):
        AvroInputFormat("/i", either).source()
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedCall, match="create_input"):
        env.create_input(None)  # type: ignore[arg-type]


def test_types_of_fields() -> None:
    array = DataTypes.ARRAY(DataTypes.MAP(DataTypes.CHAR(3), DataTypes.DECIMAL(9, 2)))
    row = DataTypes.ROW([DataTypes.FIELD("a", array), DataTypes.FIELD("t", DataTypes.TIMESTAMP(3))])
    assert row.ddl() == "struct<a:array<map<string,decimal(9,2)>>,t:timestamp_ntz>"
    with pytest.raises(UnsupportedCall, match=r"DataTypes.TIME\(\): no file has it"):
        DataTypes.TIME(3)
    with pytest.raises(SchemaError, match="field 'a': 'INT' is no type"):
        DataTypes.FIELD("a", "INT")  # type: ignore[arg-type]
