"""Sources as Spark readers.

Decides where a bounded collection's rows lie (a Parquet file below the checkpoint directory,
written once, so that a restarted job reads the very same rows) and checks that a file source's
path exists before anything runs.  Never starts a query.  Flink counterparts: ``FileSource``,
``DataGeneratorSource``, ``socketTextStream``.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from yarnflow.errors import SchemaError, SourceNotFound
from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.connectors.python import PythonSource
from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.graph.connectors.sources import (
    CollectionSource,
    FileSource,
    RateSource,
    SequenceSource,
    SocketSource,
)
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.operators import Source
from yarnflow.graph.schema import VALUE_FIELD, Schema
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.connectors.file_rows import ENCODING, decoded, spark_format, with_arrays, without_arrays
from yarnflow.spark.connectors.kafka.source import kafka_frame, partitions_of
from yarnflow.spark.connectors.python.source import python_frame
from yarnflow.spark.connectors.received import ReceivedSources
from yarnflow.spark.connectors.socket_source import FORMAT, SocketDataSource
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.translate.schemas import from_arrow, is_typed, to_arrow, to_struct_type

_ONE_FILE_GLOB = "[{}]"
#: below a job's checkpoint directory: rows of collections
SOURCES_DIRECTORY: Final = "sources"
#: numbers that one row of a sequence stands for
_RANGE_NUMBERS: Final = 65_536


def infers_schema(source: FileSource) -> bool:
    """Whether the files themselves say what is in them, which takes a Spark job."""
    return source.format != "text" and not is_typed(source.schema)


class Sources:
    """Makes a DataFrame of a source node.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    checkpoint_dir : str
        The job's checkpoint directory.
    fence : callable
        Raises when this driver may not write.
    batch : bool
        DataFrames are of all there is instead of streams; sources are bounded.
    """

    def __init__(
        self, spark: SparkSession, checkpoint_dir: str, fence: Fence = no_fence, batch: bool = False
    ) -> None:
        self._spark = spark
        self._fence = fence
        self._batch = batch
        self._files = HadoopFiles(spark)
        self._directory = checkpoint_dir.rstrip("/") + f"/{SOURCES_DIRECTORY}"
        #: those that have to be opened
        self.received = ReceivedSources(spark, self._directory, fence)

    def frame(self, node: StreamNode, source: Source) -> DataFrame:
        """The source's rows.

        Raises
        ------
        SourceNotFound
            A file source's path is not there, or what a Kafka source reads.
        SchemaError
            Types that do not fit, or that cannot be found out.
        """
        if isinstance(source, CollectionSource):
            return self._collection(node, source)
        if isinstance(source, SequenceSource):
            return self._sequence(node, source)
        if isinstance(source, FileSource):
            return self._file(replace(source, path=self._files.named(source.path)))
        if isinstance(source, SocketSource):
            return self._socket(source)
        if isinstance(source, KafkaSource):
            directory = f"{self._directory}/{node.operator_hash}"
            return kafka_frame(self._spark, self._files, directory, source, self._reader(), self._fence)
        if isinstance(source, PythonSource):
            directory = f"{self._directory}/{node.operator_hash}"
            return python_frame(
                self._spark, self._files, directory, source, node.parallelism, self._reader()
            )
        if isinstance(source, RabbitMqSource):
            return self.received.frame(node, source)
        return self._rate(source)

    def _reader(self) -> DataFrameReader | DataStreamReader:
        return self._spark.read if self._batch else self._spark.readStream

    def _collection(self, node: StreamNode, source: CollectionSource) -> DataFrame:
        with pa.ipc.open_stream(source.arrow_ipc) as reader:
            table: pa.Table = reader.read_all()
        # elements travel pickled, whatever they are as columns
        elements = node.output_schema.element_type is not None
        declared = node.output_schema if is_typed(node.output_schema) else source.schema
        struct = (
            to_struct_type(declared, f"the collection at {node.origin}")
            if is_typed(declared) and not elements
            else from_arrow(table.schema)
        )
        path = self._path(node)
        if not self._files.exists(path):
            arrow = to_arrow(struct)
            try:
                table = table.rename_columns(arrow.names).cast(arrow)
            except (pa.ArrowException, ValueError) as error:
                raise SchemaError(
                    f"the collection at {node.origin} does not fit {struct.simpleString()}: {error}"
                ) from error
            self._write(path, table)
        return self._rows_of(path, struct)

    def _sequence(self, node: StreamNode, source: SequenceSource) -> DataFrame:
        """The numbers of ranges that lie in a file, as Flink's source reads splits."""
        path = self._path(node)
        if not self._files.exists(path):
            names = ("subtask", "first", "last")
            columns = zip(*sequence_ranges(source, node.parallelism), strict=True)
            self._write(path, pa.table(dict(zip(names, map(list, columns), strict=True))))
        struct = StructType().add("subtask", "long").add("first", "long").add("last", "long")
        ranges = self._rows_of(path, struct)
        if node.parallelism > 1:
            # round robin would sort the rows by their hash before
            subtask = F.pmod(F.coalesce("subtask", F.lit(0)), F.lit(node.parallelism))
            ranges = ranges.repartitionById(node.parallelism, subtask.cast("int"))
        return ranges.select(F.explode(F.sequence("first", "last")).alias(VALUE_FIELD))

    def _path(self, node: StreamNode) -> str:
        return f"{self._directory}/{node.operator_hash}/part.parquet"

    def _rows_of(self, path: str, struct: StructType) -> DataFrame:
        """Of one file; a stream of Spark's reads a directory, in which others may have put more."""
        directory, _, name = path.rpartition("/")
        return self._reader().schema(struct).option("pathGlobFilter", name).parquet(directory)

    def _write(self, path: str, table: pa.Table) -> None:
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        self._files.write(path, buffer.getvalue())

    def _file(self, source: FileSource) -> DataFrame:
        path = source.path
        if not self._files.matches(path):
            raise SourceNotFound(
                f"source path {self._files.qualified(path)} does not exist; "
                "check it on the cluster (a path without a scheme is looked up in the cluster's default file "
                "system; a relative one stands for a path below the directory the program ran in)"
            )
        struct = self._file_schema(source)
        if self._files.is_file(path):
            # Spark watches directories and globs only: a glob that matches this one file
            path = path[:-1] + _ONE_FILE_GLOB.format(path[-1])
        options = _strict(source)
        charset = options.pop(ENCODING, "") if source.format == "text" else ""
        in_files = without_arrays(struct, source.separators)
        reader = self._reader().format(spark_format(source.format)).options(**options).schema(in_files)
        if source.max_files_per_trigger and not self._batch:
            reader = reader.option("maxFilesPerTrigger", source.max_files_per_trigger)
        frame = reader.load(path)
        if charset:
            return decoded(frame, charset)
        return with_arrays(frame, struct, source.separators, "nullValue" in source.options)

    def _file_schema(self, source: FileSource) -> StructType:
        where = f"file source {source.path}"
        if source.format == "text":
            return StructType().add("value", "string")
        if not infers_schema(source):
            return to_struct_type(source.schema, where)
        try:
            reader = self._spark.read.format(spark_format(source.format)).options(**source.options)
            found = reader.load(source.path).schema
        except PySparkException as error:
            raise SchemaError(
                f"the schema of {where} cannot be found out from its files "
                f"({str(error).splitlines()[0]}); declare it"
            ) from error
        return _picked(found, source.schema, where)

    def _socket(self, source: SocketSource) -> DataFrame:
        self._spark.dataSource.register(SocketDataSource)
        return (
            self._spark.readStream.format(FORMAT)
            .option("host", source.host)
            .option("port", source.port)
            .load()
        )

    def _rate(self, source: RateSource) -> DataFrame:
        if self._batch:
            return rate_rows(self._spark, source)
        frame = self._spark.readStream.format("rate").option("rowsPerSecond", source.rows_per_second).load()
        if source.count is not None:
            frame = frame.where(F.col("value") < source.count)
        return frame


def tasks_at_once(spark: SparkSession, source: Source) -> int:
    """Tasks that read a source in real time; 0 = it cannot be.

    Raises
    ------
    SourceNotFound
        What a Kafka source reads is not there.
    """
    return partitions_of(spark, source) if isinstance(source, KafkaSource) else 0


def _picked(found: StructType, declared: Schema, where: str) -> StructType:
    """The declared fields, with the types found where none is declared."""
    if not declared.fields:
        return found
    by_name = {f.name.lower(): f for f in found.fields}
    picked = StructType()
    for field in declared.fields:
        if field.type is not None:
            picked = picked.add(to_struct_type(Schema((field,)), where).fields[0])
        elif field.name.lower() in by_name:
            picked = picked.add(by_name[field.name.lower()])
        else:
            raise SchemaError(
                f"{where} has no field '{field.name}'; it has {', '.join(f.name for f in found.fields)}"
            )
    return picked


def sequence_ranges(source: SequenceSource, parallelism: int) -> Iterator[tuple[int, int, int]]:
    """Subtask, first and last number of ranges, so that each subtask has rising numbers without a gap.

    The first subtasks get one number more, as with Flink's ``NumberSequenceIterator.split``.
    """
    size, larger = divmod(source.last - source.first + 1, parallelism)
    first = source.first
    for subtask in range(parallelism):
        end = first + size + (subtask < larger)
        for start in range(first, end, _RANGE_NUMBERS):
            yield subtask, start, min(start + _RANGE_NUMBERS, end) - 1
        first = end


def rate_rows(spark: SparkSession, source: RateSource) -> DataFrame:
    """All rows of a counted rate source at once, with the times they would have from now on."""
    assert source.count is not None, "only what ends can be read at once"
    numbers = spark.range(source.count).withColumnRenamed("id", VALUE_FIELD)
    after_us = (F.col(VALUE_FIELD) * F.lit(1_000_000 / source.rows_per_second)).cast("bigint")
    time = F.timestamp_micros(F.unix_micros(F.current_timestamp()) + after_us)
    return numbers.select(time.alias("timestamp"), VALUE_FIELD)


def rate_seconds(source: RateSource) -> int:
    """Seconds after which a counted rate source has made all its rows."""
    return 0 if source.count is None else math.ceil(source.count / source.rows_per_second)


def _strict(source: FileSource) -> dict[str, str]:
    """The reader's options; a record that does not fit fails the job, as with Flink's formats.

    Spark's own default makes nulls of it without a word; ``mode`` PERMISSIVE asks for that.
    """
    if source.format not in ("csv", "json") or any(key.lower() == "mode" for key in source.options):
        return dict(source.options)
    return {"mode": "FAILFAST", **source.options}
