"""Schemas of the graph, of Spark and of Arrow, one into another.

Decides how a declared :class:`~yarnflow.graph.schema.Schema` becomes Spark's ``StructType``
and which columns are hidden: the event time and the Python key travel beside the fields of a
record and reach neither user functions nor sinks.  Never guesses a type: a field without one
is taken from Spark's analysed plan, or it is a :class:`~yarnflow.errors.SchemaError`.
Flink counterpart: ``TypeInformation`` and ``StreamRecord.timestamp``.
"""

from __future__ import annotations

from typing import Final, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from yarnflow.errors import SchemaError
from yarnflow.graph.schema import EVENT_TIME_FIELD, KEY_FIELD, Field, Schema

#: columns beside a record's own fields: event time (a Spark timestamp), result of a key function
HIDDEN: Final = (EVENT_TIME_FIELD, KEY_FIELD)


def visible(schema: Schema) -> Schema:
    """The schema without hidden fields."""
    return Schema(tuple(f for f in schema.fields if f.name not in HIDDEN), schema.scalar)


def visible_columns(frame: DataFrame) -> list[str]:
    """Names of the frame's columns that belong to records."""
    return [name for name in frame.columns if name not in HIDDEN]


def hidden_columns(frame: DataFrame) -> list[str]:
    """Names of the hidden columns the frame carries."""
    columns = frame.columns
    return [name for name in HIDDEN if name in columns]


def quoted(name: str) -> str:
    """The column name as Spark SQL text."""
    return "`" + name.replace("`", "``") + "`"


def spark_field(field: Field, where: str) -> StructField:
    """One declared field as Spark's.

    Raises
    ------
    SchemaError
        The field has no type, or one Spark does not know.
    """
    if field.type is None:
        raise SchemaError(
            f"field '{field.name}' of {where} has no type; "
            f"declare it with output_type, e.g. output_type='{field.name} string'"
        )
    try:
        parsed = StructType.fromDDL(f"{quoted(field.name)} {field.type}")
    except PySparkException as error:
        raise SchemaError(
            f"type '{field.type}' of field '{field.name}' of {where} is not a Spark type: "
            f"{str(error).splitlines()[0]}"
        ) from error
    return cast(StructType, parsed).fields[0]


def to_struct_type(schema: Schema, where: str) -> StructType:
    """A fully declared schema as Spark's; hidden fields are left out."""
    return StructType([spark_field(field, where) for field in visible(schema).fields])


def from_struct_type(struct: StructType, scalar: bool = False) -> Schema:
    """Spark's schema as ours, with every type known."""
    return Schema(tuple(Field(f.name, f.dataType.simpleString()) for f in struct.fields), scalar)


def is_typed(schema: Schema) -> bool:
    """Whether every visible field has a type, and there is one at least."""
    fields = visible(schema).fields
    return bool(fields) and all(field.type is not None for field in fields)


def nullable(struct: StructType) -> StructType:
    """The same fields, all nullable and without metadata."""
    return StructType([StructField(f.name, f.dataType, True) for f in struct.fields])


def to_arrow(struct: StructType) -> pa.Schema:
    """Spark's schema as the Arrow schema its Python workers speak; timestamps are UTC."""
    return to_arrow_schema(nullable(struct), timezone="UTC")


def from_arrow(schema: pa.Schema) -> StructType:
    """Arrow's schema as Spark's; timestamps without a zone are taken as UTC instants."""
    zoned = pa.schema(
        [
            pa.field(f.name, pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(f.type) else f.type, True)
            for f in schema
        ]
    )
    return from_arrow_schema(zoned)
