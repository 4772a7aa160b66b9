"""A user's data source as a streaming DataFrame.

Decides how a reader of batches becomes part of a stream: its partitions are asked for once and kept in a
file, so that a restarted job reads the very same ones, each in the same place.  Readers of streams are
Spark's matter.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

from yarnflow.errors import UserCodeError, YarnflowError
from yarnflow.graph.closures import dumps_with_classes
from yarnflow.graph.connectors.python import PythonSource
from yarnflow.spark.connectors.python.definition import load_data_source
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.user_errors import user_traceback_of
from yarnflow.spark.translate.schemas import nullable, to_struct_type

#: the pickled reader, beside its partitions
_READER: Final = "reader"
_PARTITIONS: Final = "part.parquet"
#: rows of one batch from a reader
_BATCH_ROWS: Final = 10_000


def python_frame(
    spark: SparkSession,
    files: HadoopFiles,
    directory: str,
    source: PythonSource,
    parallelism: int,
    reads: DataFrameReader | DataStreamReader,
) -> DataFrame:
    """The source's rows, as a stream or all of them, as Spark's reader does.

    Parameters
    ----------
    files : HadoopFiles
    directory : str
        Of this source, below the job's checkpoint directory.
    parallelism : int
        Subtasks that share the partitions of a reader of batches.
    reads : DataFrameReader or DataStreamReader

    Raises
    ------
    UserCodeError
        The data source cannot be loaded, or its code raises.
    """
    made = load_data_source(source.data_source, source.options)
    struct = to_struct_type(source.schema, f"the data source at {source.data_source.origin}")
    if not source.of_batches:
        kind = type(made)
        spark.dataSource.register(kind)
        return reads.format(kind.name()).options(**source.options).schema(struct).load()
    path = f"{directory}/{_PARTITIONS}"
    if not files.exists(path):
        reader, partitions = _planned(made, struct, source)
        # before the partitions, whose file says that all is there
        files.write(f"{directory}/{_READER}", reader)
        files.write(path, _parquet(partitions))
    # the parquet file alone: what begins with a dot or an underscore is hidden, the reader is not
    rows = reads.schema("number long, partition binary").option("pathGlobFilter", "*.parquet")
    read = ReadPartitions(files.read(f"{directory}/{_READER}"), struct)
    number = F.pmod(F.coalesce("number", F.lit(0)), F.lit(parallelism)).cast("int")
    spread = rows.parquet(directory).repartitionById(parallelism, number)
    return spread.mapInArrow(cast(Any, read), nullable(struct))


def _planned(source: DataSource, struct: StructType, of: PythonSource) -> tuple[bytes, list[bytes]]:
    """The pickled reader and its pickled partitions."""
    try:
        reader = source.reader(struct)
        if not isinstance(reader, DataSourceReader):
            raise TypeError(f"reader() gave {reader!r}, which is no DataSourceReader")
        partitions = list(reader.partitions()) or [InputPartition(None)]
        return dumps_with_classes(reader), [dumps_with_classes(partition) for partition in partitions]
    except YarnflowError:
        raise
    except Exception as error:
        found = user_traceback_of(error)
        raise UserCodeError(f"{found.summary} (data source {of.data_source.name})", found.text) from error


def _parquet(partitions: list[bytes]) -> bytes:
    table = pa.table({"number": range(len(partitions)), "partition": pa.array(partitions, pa.binary())})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


class ReadPartitions:
    """From pickled partitions to their rows, in a worker.

    Parameters
    ----------
    reader : bytes
        Pickled; each task has one of its own.
    struct : StructType
        Fields of the rows.
    """

    def __init__(self, reader: bytes, struct: StructType) -> None:
        self._reader = reader
        self._struct = struct

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader: DataSourceReader | None = None
        for batch in batches:
            for partition in batch.column("partition").to_pylist():
                if reader is None:
                    # part of the program, as its functions are
                    reader = cast(DataSourceReader, pickle.loads(self._reader))  # noqa: S301
                rows = iter(reader.read(pickle.loads(partition)))  # noqa: S301
                # the last argument is for messages alone
                yield from records_to_arrow_batches(
                    cast(Any, rows), _BATCH_ROWS, self._struct, cast(Any, _Named(type(reader).__name__))
                )


class _Named:
    """What Spark asks for a data source's name in its messages."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name
