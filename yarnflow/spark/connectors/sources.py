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
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from yarnflow.errors import SchemaError, SourceNotFound
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.operators import (
    CollectionSource,
    FileSource,
    RateSource,
    SequenceSource,
    SocketSource,
    Source,
)
from yarnflow.graph.schema import VALUE_FIELD, Schema
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
    """Makes a streaming DataFrame of a source node.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    checkpoint_dir : str
        The job's checkpoint directory.
    """

    def __init__(self, spark: SparkSession, checkpoint_dir: str) -> None:
        self._spark = spark
        self._files = HadoopFiles(spark)
        self._directory = checkpoint_dir.rstrip("/") + f"/{SOURCES_DIRECTORY}"

    def frame(self, node: StreamNode, source: Source) -> DataFrame:
        """The source's rows as a streaming DataFrame.

        Raises
        ------
        SourceNotFound
            A file source's path is not there.
        SchemaError
            Types that do not fit, or that cannot be found out.
        """
        if isinstance(source, CollectionSource):
            return self._collection(node, source)
        if isinstance(source, SequenceSource):
            return self._sequence(node, source)
        if isinstance(source, FileSource):
            return self._file(source)
        if isinstance(source, SocketSource):
            return self._socket(source)
        return self._rate(source)

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
        return self._spark.readStream.schema(struct).parquet(path.rpartition("/")[0])

    def _sequence(self, node: StreamNode, source: SequenceSource) -> DataFrame:
        """The numbers of ranges that lie in a file, as Flink's source reads splits."""
        path = self._path(node)
        if not self._files.exists(path):
            names = ("subtask", "first", "last")
            columns = zip(*sequence_ranges(source, node.parallelism), strict=True)
            self._write(path, pa.table(dict(zip(names, map(list, columns), strict=True))))
        struct = StructType().add("subtask", "long").add("first", "long").add("last", "long")
        ranges = self._spark.readStream.schema(struct).parquet(path.rpartition("/")[0])
        if node.parallelism > 1:
            # round robin would sort the rows by their hash before
            subtask = F.pmod(F.coalesce("subtask", F.lit(0)), F.lit(node.parallelism))
            ranges = ranges.repartitionById(node.parallelism, subtask.cast("int"))
        return ranges.select(F.explode(F.sequence("first", "last")).alias(VALUE_FIELD))

    def _path(self, node: StreamNode) -> str:
        return f"{self._directory}/{node.operator_hash}/part.parquet"

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
        reader = self._spark.readStream.format(source.format).options(**_strict(source)).schema(struct)
        if source.max_files_per_trigger:
            reader = reader.option("maxFilesPerTrigger", source.max_files_per_trigger)
        return reader.load(path)

    def _file_schema(self, source: FileSource) -> StructType:
        where = f"file source {source.path}"
        if source.format == "text":
            return StructType().add("value", "string")
        if not infers_schema(source):
            return to_struct_type(source.schema, where)
        try:
            found = self._spark.read.format(source.format).options(**source.options).load(source.path).schema
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
        frame = self._spark.readStream.format("rate").option("rowsPerSecond", source.rows_per_second).load()
        if source.count is not None:
            frame = frame.where(F.col("value") < source.count)
        return frame


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


def rate_seconds(source: RateSource) -> int:
    """Seconds after which a counted rate source has made all its rows."""
    return 0 if source.count is None else math.ceil(source.count / source.rows_per_second)


def _strict(source: FileSource) -> dict[str, str]:
    """The reader's options; a record that does not fit fails the job, as with Flink's formats.

    Spark's own default makes nulls of it without a word; ``mode`` PERMISSIVE asks for that.
    """
    if source.format not in ("csv", "json") or any(key.lower() == "mode" for key in source.options):
        return source.options
    return {"mode": "FAILFAST", **source.options}
