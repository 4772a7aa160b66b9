"""Rows as they stand in files, where Spark's formats do not hold them so.

Decides how lines in other charsets than UTF-8, and arrays in CSV, are written and read, and in which
directory a row goes.  Flink counterparts: ``TextLineInputFormat``, ``RowDataToCsvConverters``,
``BucketAssigner``.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from yarnflow.errors import InvalidExpression
from yarnflow.graph.connectors.sinks import FileSink
from yarnflow.graph.schema import VALUE_FIELD
from yarnflow.spark.translate.schemas import quoted, to_struct_type

#: of text; Spark's own option of this name is for the ends of lines alone
ENCODING: Final = "encoding"
#: a column that becomes a directory of its value
BUCKET: Final = "__bucket"
#: directory of rows without a value
_NO_BUCKET: Final = "null"
#: Spark has it, and knows its short name only with a jar that names it
_AVRO: Final = "org.apache.spark.sql.avro.AvroFileFormat"


def spark_format(name: str) -> str:
    """What Spark's readers and writers call a format."""
    return _AVRO if name == "avro" else name


# --- reading --------------------------------------------------------------------------------


def decoded(lines: DataFrame, charset: str) -> DataFrame:
    """Lines whose bytes are those of a charset, as text."""
    struct = StructType().add(VALUE_FIELD, "string")
    raw = lines.select(F.col(VALUE_FIELD).cast("binary").alias(VALUE_FIELD))
    return raw.mapInArrow(cast(Any, _Decode(charset)), struct)


class _Decode:
    def __init__(self, charset: str) -> None:
        self._charset = charset

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decode = codecs.getdecoder(self._charset)
        for batch in batches:
            texts = [decode(line)[0] for line in batch.column(0).to_pylist()]
            yield pa.record_batch([pa.array(texts, pa.string())], names=[VALUE_FIELD])


def without_arrays(struct: StructType, separators: Mapping[str, str]) -> StructType:
    """The fields as they stand in the lines of CSV."""
    return StructType(
        [StructField(f.name, StringType()) if f.name in separators else f for f in struct.fields]
    )


def with_arrays(
    lines: DataFrame, struct: StructType, separators: Mapping[str, str], has_null_text: bool
) -> DataFrame:
    """The fields as the program sees them.

    Parameters
    ----------
    has_null_text : bool
        A text of its own says that there is no array; otherwise a field without text is an empty one.
    """
    if not separators:
        return lines
    return lines.select(*(_array(f, separators, has_null_text) for f in struct.fields))


def _array(field: StructField, separators: Mapping[str, str], has_null_text: bool) -> Column:
    column = F.col(quoted(field.name))
    separator = separators.get(field.name)
    if separator is None:
        return column
    if not has_null_text:
        column = F.coalesce(column, F.lit(""))
    # split takes a regular expression; a text without elements is an array without any
    parts = F.split(column, "\\Q" + separator.replace("\\E", "\\E\\\\E\\Q") + "\\E", -1)
    empty = F.array().cast("array<string>")
    return F.when(column == "", empty).otherwise(parts).cast(field.dataType).alias(field.name)


# --- writing --------------------------------------------------------------------------------


def written(frame: DataFrame, sink: FileSink) -> DataFrame:
    """The rows as a sink's format takes them, with the column :data:`BUCKET` where it has an expression.

    Raises
    ------
    InvalidExpression
        There is no field to partition by.
    """
    unknown = [name for name in sink.partition_by if name not in frame.columns]
    if unknown:
        raise InvalidExpression(f"file sink {sink.path}: no field '{unknown[0]}' to partition by")
    if sink.bucket_expression:
        # of the fields as they are in the program
        bucket = F.expr(sink.bucket_expression).cast("string")
        named = F.when(F.length(bucket) > 0, bucket).otherwise(_NO_BUCKET)
        frame = frame.withColumn(BUCKET, named)
    if sink.format == "text":
        return encoded(frame, sink.options[ENCODING]) if ENCODING in sink.options else frame
    columns = [name for name in frame.columns if name != BUCKET]
    kinds = None
    if sink.written_as is not None:
        kinds = to_struct_type(sink.written_as, f"file sink {sink.path}").fields
    made = []
    for number, name in enumerate(columns):
        column, final = F.col(quoted(name)), name
        if kinds is not None:
            column, final = column.cast(kinds[number].dataType), kinds[number].name
        if final in sink.separators:
            column = F.array_join(column.cast(ArrayType(StringType())), sink.separators[final])
        made.append(column.alias(final))
    if BUCKET in frame.columns:
        made.append(F.col(BUCKET))
    return frame.select(*made) if kinds is not None or sink.separators else frame


def encoded(lines: DataFrame, charset: str) -> DataFrame:
    """Lines of text, as bytes of a charset that Spark writes as they are."""
    others = [f for f in lines.schema.fields if f.name == BUCKET]
    struct = StructType([StructField(VALUE_FIELD, BinaryType()), *others])
    raw = lines.mapInArrow(cast(Any, _Encode(charset)), struct)
    # a cast to text does not look at the bytes
    names = [F.col(VALUE_FIELD).cast("string").alias(VALUE_FIELD), *(F.col(f.name) for f in others)]
    return raw.select(*names)


class _Encode:
    def __init__(self, charset: str) -> None:
        self._charset = charset

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encode = codecs.getencoder(self._charset)
        for batch in batches:
            # what the charset does not have is a question mark, as Java writes it
            texts = batch.column(0).to_pylist()
            lines = [None if text is None else encode(text, "replace")[0] for text in texts]
            columns = [pa.array(lines, pa.binary()), *batch.columns[1:]]
            yield pa.record_batch(columns, names=[VALUE_FIELD, *batch.schema.names[1:]])


def bucket_directory(staged: str) -> str:
    """``__bucket=a%2Fb`` → ``a/b``; raises InvalidExpression for one that leads out of the sink's.

    Parameters
    ----------
    staged : str
        A directory as Spark names it: what names of files cannot have is escaped.
    """
    value = staged.removeprefix(f"{BUCKET}=")
    parts = value.replace("%2F", "/").split("/")
    if any(not part or part.startswith(".") for part in parts):
        raise InvalidExpression(
            f"a bucket expression gave {unquote(value)!r}, which is no name of a directory"
        )
    return "/".join(parts)
