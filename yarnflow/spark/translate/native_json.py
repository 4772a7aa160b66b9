"""JSON objects of messages as columns by Spark's own expressions, read as the format in Python reads them.

Spark's parser alone is not enough: it refuses numbers in quotes, takes quotes of another kind, and leaves
out whatever follows an object.  So every number and truth value is first read as the text it is and then
converted.
What still differs is told in the docs, under real time.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    StringType,
    StructField,
    StructType,
)

from yarnflow.errors import MalformedMessage
from yarnflow.graph.connectors.messages import MessageFormat

_PARSED: Final = "__message"
_UNREADABLE: Final = "__unreadable"
_OPTIONS: Final = {"columnNameOfCorruptRecord": _UNREADABLE, "allowSingleQuotes": "false"}
#: no field of an object can misfit it
_ANY_OBJECT: Final = StructType([StructField(_UNREADABLE, StringType())])
#: whole numbers of 64 bits, and what is behind their point
_DECIMAL: Final = "decimal(38,18)"
_BLANKS: Final = " \t\r\n"
#: what says where a message is
_PLACE: Final = ("topic", "partition", "offset")
#: of a text in an error
_SHOWN_CHARACTERS: Final = 200


def json_columns(form: MessageFormat, frame: DataFrame, struct: StructType) -> DataFrame:
    """Return a row for each message of a frame of Kafka's; one that cannot be read fails the query.

    Where the format ignores errors, what is not a JSON object is left out, and a part that misfits is null.

    Parameters
    ----------
    struct : StructType
        The fields that are read, of those types that real time takes.
    """
    value = F.col("value")
    text = value.cast("string")
    read_as = StructType([*_texts(struct).fields, StructField(_UNREADABLE, StringType())])
    parsed = F.from_json(text, read_as, _OPTIONS)
    # the document null is no row
    found = frame.where(F.btrim(text, F.lit(_BLANKS)) != "null")
    found = found.select(*_PLACE, value, parsed.alias(_PARSED))
    row = F.col(_PARSED)
    # exactly one document; an empty text is null, and no error, to Spark
    one = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    document = F.coalesce(one, F.lit(False)) & F.is_valid_utf8(value)
    if form.ignore_errors:
        # the mark on the row itself is there for lists and objects that misfit as well
        is_object = document & F.from_json(text, _ANY_OBJECT, _OPTIONS)[_UNREADABLE].isNull()
        checked = F.when(is_object, _converted(row, struct))
        return found.select(checked.alias(_PARSED)).where(row.isNotNull()).select(f"{_PARSED}.*")
    readable = row[_UNREADABLE].isNull() & document & row.isNotNull() & ~_misfits(row, struct)
    checked = F.when(readable, _converted(row, struct)).otherwise(F.raise_error(_malformed(form)))
    return found.select(checked.alias(_PARSED)).select(f"{_PARSED}.*")


def _texts(kind: Any) -> Any:
    """The type with text in place of everything single."""
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _texts(field.dataType)) for field in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_texts(kind.elementType))
    return StringType()


def _converted(value: Column, kind: DataType) -> Column:
    """A value whose single parts are texts, as what they stand for."""
    if isinstance(kind, StructType):
        parts = [_converted(value[field.name], field.dataType).alias(field.name) for field in kind.fields]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.transform(value, lambda part: _converted(part, element))
    if isinstance(kind, StringType):
        return value
    if isinstance(kind, BooleanType):
        return F.lower(F.btrim(value)) == "true"
    if isinstance(kind, DoubleType):
        return value.try_cast(kind)
    # a fraction is cut off, as in Flink
    return value.try_cast(_DECIMAL).try_cast(kind)


def _misfits(value: Column, kind: DataType) -> Column:
    """Whether some text stands for no value of its type."""
    if isinstance(kind, StructType):
        found = F.lit(False)
        for field in kind.fields:
            found |= _misfits(value[field.name], field.dataType)
        return found
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.coalesce(F.exists(value, lambda part: _misfits(part, element)), F.lit(False))
    if isinstance(kind, (StringType, BooleanType)):
        return F.lit(False)
    return value.isNotNull() & _converted(value, kind).isNull()


def _malformed(form: MessageFormat) -> Column:
    place = [part for name in _PLACE for part in (F.lit(f"{name} "), F.col(name).cast("string"), F.lit(", "))]
    return F.concat(
        F.lit(f"yarnflow.errors.{MalformedMessage.__name__}: "),
        *place[:-1],
        F.lit(f": no {form.kind.value} message of {form.element_type!r}: "),
        F.substring(F.translate(F.col("value").cast("string"), "\r\n", "  "), 1, _SHOWN_CHARACTERS),
        F.lit("; begin behind it, or let the format ignore parse errors"),
    )
