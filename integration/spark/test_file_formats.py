"""Files of each format through programs of PyFlink: what is written is what is read."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from integration.spark.test_elements import environment, graph_of, program_of
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Configuration, Types
from yarnflow.api.common.serialization import BulkWriterFactory, Encoder
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
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from yarnflow.api.table import DataTypes
from yarnflow.config import configuration as settings
from yarnflow.errors import StorageError, YarnflowError
from yarnflow.graph.connectors import sinks
from yarnflow.spark.connectors.file_sink import FileWriter
from yarnflow.spark.run.graph_program import GraphProgram
from yarnflow.spark.run.user_errors import map_spark_error

Run = Callable[[StreamExecutionEnvironment], None]
CITY = Types.ROW_NAMED(["city", "n", "tags"], [Types.STRING(), Types.INT(), Types.LIST(Types.STRING())])
CITY_ROW = DataTypes.ROW(
    [
        DataTypes.FIELD("city", DataTypes.STRING()),
        DataTypes.FIELD("n", DataTypes.INT()),
        DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
    ]
)
CITIES: list[tuple[Any, ...]] = [("Rome", 1, ["a", "b"]), ("Oslo; \"x\"", 2, []), ("Ævar|", -3, ["c"])]
AVRO = """{"type": "record", "name": "City", "fields": [
    {"name": "city", "type": "string"}, {"name": "n", "type": ["null", "int"], "default": null},
    {"name": "tags", "type": {"type": "array", "items": "string"}}]}"""


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    """Run a program's job to its end, each in a checkpoint of its own."""
    number = iter(range(100))

    def run_to_end(env: StreamExecutionEnvironment) -> None:
        program = program_of(spark, env, tmp_path / f"checkpoint-{next(number)}")
        try:
            program.start()
            program.await_end()
        except Exception as error:
            raise map_spark_error(error) from error

    return run_to_end


def lines(path: Path) -> list[str]:
    """All lines of all files below a directory."""
    files = [f for f in path.rglob("*") if f.is_file() and not _is_hidden(f.relative_to(path))]
    return sorted(line for file in files for line in file.read_text().splitlines())


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def write(run: Run, path: Path, factory: BulkWriterFactory, kind: Any = CITY, rows: Any = None) -> None:
    env = environment(1)
    stream = env.from_collection(CITIES if rows is None else rows, Types.PICKLED_BYTE_ARRAY())
    stream.map(lambda value: value, kind).sink_to(FileSink.for_bulk_format(str(path), factory).build())
    run(env)


def shown(run: Run, source: FileSource | AvroInputFormat, out: Path, show: Any = None) -> list[str]:
    """What a source gives, as lines."""
    env = environment(1)
    if isinstance(source, AvroInputFormat):
        stream = env.create_input(source)
    else:
        stream = env.from_source(source, None, "files")
    shows = show or (lambda row: f"{row['city']} {row.n} {list(row[2])}")
    stream.map(shows, Types.STRING()).sink_to(
        FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()
    )
    run(env)
    return lines(out)


EXPECTED = sorted(f"{city} {n} {tags}" for city, n, tags in CITIES)


def csv_schema() -> CsvSchema:
    builder = CsvSchema.builder().add_string_column("city").add_number_column("n", DataTypes.INT())
    return builder.add_array_column("tags", "|").set_column_separator(";").set_use_header().build()


@pytest.mark.gate
def test_csv(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(run, out, CsvBulkWriters.for_schema(csv_schema()))
    (file,) = out.glob("part-*.csv")
    assert file.read_text().splitlines() == ["city;n;tags", "Rome;1;a|b", '"Oslo; ""x""";2;""', "Ævar|;-3;c"]
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(csv_schema()), str(out)).build()
    assert shown(run, source, tmp_path / "shown") == EXPECTED


def test_csv_that_does_not_fit_names_the_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("city;n;tags\nRome;one;a\n")
    source = FileSource.for_record_stream_format(
        CsvReaderFormat.for_schema(csv_schema()), str(tmp_path / "in.csv")
    )
    with pytest.raises(YarnflowError, match=r"in\.csv does not fit the source's schema: \[Rome,null,a\]"):
        shown(run, source.build(), tmp_path / "out")
    other = CsvSchema.builder().add_string_column("town").set_use_header().set_strict_headers().build()
    strict = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(other), str(tmp_path / "in.csv"))
    with pytest.raises(YarnflowError, match="header"):
        shown(run, strict.build(), tmp_path / "out2", lambda row: row.town)


@pytest.mark.gate
@pytest.mark.parametrize("name", ["parquet", "orc", "avro", "avro-parquet"])
def test_columnar_files(run: Run, tmp_path: Path, name: str) -> None:
    out, schema = tmp_path / "out", AvroSchema.parse_string(AVRO)
    rows = [dict(zip(("city", "n", "tags"), row, strict=True)) for row in CITIES]
    source: FileSource | AvroInputFormat
    if name == "parquet":
        config = Configuration().set_string("parquet.block.size", "1048576")
        write(run, out, ParquetBulkWriters.for_row_type(CITY_ROW, hadoop_config=config))
        form = ParquetColumnarRowInputFormat(CITY_ROW, hadoop_config=config, batch_size=10)
        source = FileSource.for_bulk_file_format(form, str(out)).build()
    elif name == "orc":
        write(run, out, OrcBulkWriters.for_row_type(CITY_ROW))
        source = FileSource(out, "orc", CITY_ROW)
    elif name == "avro":
        write(run, out, AvroBulkWriters.for_generic_record(schema), GenericRecordAvroTypeInfo(schema), rows)
        source = AvroInputFormat(str(out), schema)
        (file,) = out.glob("part-*.avro")
        with file.open("rb") as content:
            # another library reads them, with the schema that was given
            reader = fastavro.reader(content)
            assert list(reader) == rows and reader.writer_schema["name"].endswith("City")
    else:
        factory = AvroParquetWriters.for_generic_record(schema)
        write(run, out, factory, GenericRecordAvroTypeInfo(schema), rows)
        source = FileSource.for_record_stream_format(
            AvroParquetReaders.for_generic_record(schema), str(out)
        ).build()
    assert shown(run, source, tmp_path / "shown") == EXPECTED


@pytest.mark.parametrize("name", ["parquet", "orc", "avro"])
def test_a_corrupt_file_is_named_or_left_out(run: Run, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    factories = {
        "parquet": lambda: ParquetBulkWriters.for_row_type(CITY_ROW),
        "orc": lambda: OrcBulkWriters.for_row_type(CITY_ROW),
        "avro": lambda: AvroBulkWriters.for_generic_record(AvroSchema.parse_string(AVRO)),
    }
    write(run, out, factories[name]())
    (good,) = out.glob("part-*")
    bad = out / f"bad.{name}"
    bad.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    with pytest.raises(YarnflowError) as raised:
        shown(run, FileSource(out, name, CITY_ROW), tmp_path / "none")
    said = str(raised.value)
    assert str(bad) in said and "ignoreCorruptFiles" in said and "\n" not in said
    assert not lines(tmp_path / "none")
    skipping = FileSource(out, name, CITY_ROW, {"ignoreCorruptFiles": True})
    assert shown(run, skipping, tmp_path / "shown") == EXPECTED


def test_fields_that_files_do_not_have_are_none(run: Run, tmp_path: Path) -> None:
    """A column that came later is None in the files from before; one that is not asked for is left out."""
    out = tmp_path / "out"
    write(run, out, ParquetBulkWriters.for_row_type(CITY_ROW))
    more = FileSource(out, "parquet", "n INT, zip STRING")
    found = shown(run, more, tmp_path / "a", lambda row: f"{row.n} {row.zip}")
    assert found == ["-3 None", "1 None", "2 None"]
    other = FileSource(out, "parquet", "city INT")
    with pytest.raises(YarnflowError) as raised:
        shown(run, other, tmp_path / "b", lambda row: str(row.city))
    said = str(raised.value)
    assert "part-" in said and "city" in said and "\n" not in said


def test_lines_of_other_charsets_and_of_directories_below(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_bytes("naïve\n€uro\n".encode("cp1252"))
    (tmp_path / "in" / "deep" / "b.txt.gz").write_bytes(gzip.compress("Ø\n".encode("cp1252")))
    env = environment(1)
    source = FileSource.for_record_stream_format(
        StreamFormat.text_line_format("windows-1252"), str(tmp_path / "in")
    )
    stream = env.from_source(source.build(), None, "lines").map(lambda line: line + "!", Types.STRING())
    for name, charset in (("utf8", "UTF-8"), ("latin", "ISO-8859-1")):
        encoder = Encoder.simple_string_encoder(charset)
        stream.sink_to(FileSink.for_row_format(str(tmp_path / name), encoder).build())
    run(env)
    assert lines(tmp_path / "utf8") == ["naïve!", "Ø!", "€uro!"]
    latin = b"".join(sorted(f.read_bytes() for f in (tmp_path / "latin").glob("part-*")))
    assert sorted(latin.split(b"\n")) == [b"", b"?uro!", b"na\xefve!", b"\xd8!"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two MiB; only root can make one."""
    if os.geteuid() != 0:
        pytest.skip("to mount a file system needs root")
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def test_a_full_disk_loses_nothing(spark: SparkSession, tmp_path: Path, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 1_500_000)
    env = environment(1)
    source = FileSource(tmp_path / "in", max_files_per_trigger=1)
    (tmp_path / "in").mkdir()
    for number, rows in enumerate((10, 20_000, 10)):
        texts = (f"{number}-{n:06}-{'x' * 40}\n" for n in range(rows))
        file = tmp_path / "in" / f"{number}.txt"
        file.write_text("".join(texts))
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
    stream = env.from_source(source, None, "lines")
    stream.sink_to(text_sink(small_disk / "out").build())
    graph = graph_of(env)

    def attempt() -> None:
        program = GraphProgram(spark, graph, settings.Configuration.empty(), str(tmp_path / "checkpoint"))
        program.prepare()
        program.start()
        program.await_end()

    with pytest.raises(Exception) as raised:
        attempt()
    error = map_spark_error(raised.value)
    assert isinstance(error, StorageError) and error.retryable
    assert f"file sink {small_disk}/out: no space is left" in str(error) and "\n" not in str(error)
    assert len(lines(small_disk / "out")) == 10
    ballast.unlink()
    attempt()
    found = lines(small_disk / "out")
    assert len(found) == len(set(found)) == 20_020


# --- where and how files are written ---------------------------------------------------------


def writer(spark: SparkSession, sink: sinks.FileSink, now_ms: int = 0) -> FileWriter:
    return FileWriter(spark, sink, "job", now_ms=lambda: now_ms)


def names(out: Path) -> list[str]:
    return sorted(str(f.relative_to(out)) for f in out.rglob("*") if f.is_file() and ".crc" not in f.name)


def sink_of(builder: Any) -> sinks.FileSink:
    """A sink of a stream of texts as it reaches the graph."""
    env = environment(1)
    env.from_collection(["a"], Types.STRING()).sink_to(builder.build())
    found = graph_of(env).nodes[-1].operator
    assert isinstance(found, sinks.FileSink)
    return found


def text_sink(out: Path) -> Any:
    return FileSink.for_row_format(str(out), Encoder.simple_string_encoder())


@pytest.mark.gate
def test_names_and_directories_of_the_time(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = OutputFileConfig.builder().with_part_prefix("rows").with_part_suffix(".log").build()
    buckets = BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH", "Asia/Tokyo")
    sink = sink_of(text_sink(out).with_bucket_assigner(buckets).with_output_file_config(config))
    frame = spark.range(2).selectExpr("CAST(id AS STRING) AS value").coalesce(1)
    made = writer(spark, sink, now_ms=1_700_000_000_000)
    assert made.write(frame, 0) == 2
    assert names(out)[-1] == "2023-11-15--07/rows-job-0-0.log"
    made._now_ms = lambda: 1_700_003_600_000
    # a batch that is done again stays where it is
    made.write(frame, 0)
    made.write(frame, 1)
    made.finish()
    assert names(out) == ["2023-11-15--07/rows-job-0-0.log", "2023-11-15--08/rows-job-1-0.log"]


def test_directories_by_expression(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    by = BucketAssigner.expression_bucket_assigner("nullif(concat('x/', value, ':'), 'x/2:')")
    made = writer(spark, sink_of(text_sink(out).with_bucket_assigner(by)))
    made.write(spark.range(3).selectExpr("CAST(id AS STRING) AS value").coalesce(1), 0)
    made.finish()
    assert [name.rpartition("/")[0] for name in names(out)] == ["null", "x/0%3A", "x/1%3A"]
    assert lines(out) == ["0", "1", "2"]
    up = BucketAssigner.expression_bucket_assigner("concat('../', value)")
    with pytest.raises(YarnflowError, match=r"gave '\.\./0', which is no name of a directory"):
        writer(spark, sink_of(text_sink(tmp_path / "up").with_bucket_assigner(up))).write(
            spark.range(1).selectExpr("CAST(id AS STRING) AS value"), 0
        )
    assert not lines(tmp_path / "up")


def test_files_end_at_their_size_and_few_are_written(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(1000).repartition(4).selectExpr("lpad(id, 99, ' ') AS value")
    policy = RollingPolicy.default_rolling_policy(part_size=5_000)
    rolled = writer(spark, sink_of(text_sink(tmp_path / "rolled").with_rolling_policy(policy)))
    few = FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).build()
    compact = text_sink(tmp_path / "few").enable_compact(few, FileCompactor.concat_file_compactor())
    one = writer(spark, sink_of(compact))
    sized = FileCompactStrategy.builder().set_size_threshold(50_000).build()
    halves = writer(
        spark,
        sink_of(text_sink(tmp_path / "two").enable_compact(sized, FileCompactor.identical_file_compactor())),
    )
    for batch in range(2):
        for made in (rolled, one, halves):
            assert made.write(frame, batch) == 1000
    for made in (rolled, one, halves):
        made.finish()
    for directory, files in (("rolled", 40), ("few", 2), ("two", 3)):
        found = list((tmp_path / directory).glob("part-*"))
        assert len(found) == files, directory
        assert len(lines(tmp_path / directory)) == 2000
    assert max(f.stat().st_size for f in (tmp_path / "rolled").glob("part-*")) <= 5_000
