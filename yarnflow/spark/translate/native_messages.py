"""Messages of Kafka as columns and back by Spark's own expressions: no record goes to a Python worker.

For formats and types of which :mod:`yarnflow.graph.modes.real_time` says that Spark has them as the formats
in Python do.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from yarnflow.errors import SchemaError
from yarnflow.graph.connectors.kafka import KafkaSink
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.type_info import RowTypeInfo
from yarnflow.spark.translate.message_columns import read_fields
from yarnflow.spark.translate.native_json import json_columns
from yarnflow.spark.translate.schemas import nullable, quoted, to_struct_type, visible_columns


def native_columns(node: StreamNode, frame: DataFrame) -> DataFrame:
    """The messages of a node, read; one that cannot be read fails the query, one without a value is none."""
    form, schema = read_fields(node)
    struct = to_struct_type(schema, f"'{node.name}' ({node.origin})")
    found = frame.where(F.col("value").isNotNull())
    if form.kind is MessageFormatKind.JSON:
        return json_columns(form, found, nullable(struct))
    value = F.col("value") if form.kind is MessageFormatKind.BYTES else F.col("value").cast("string")
    return found.select(value.alias(struct.names[0]))


def native_records(sink: KafkaSink, frame: DataFrame) -> DataFrame:
    """Key and value of messages, as Spark's writer takes them.

    Raises
    ------
    SchemaError
        The sink's formats take other fields than the stream has.
    """
    columns = [_message(sink.value, frame).alias("value")]
    if sink.key is not None:
        columns.insert(0, _message(sink.key, frame).alias("key"))
    return frame.select(*columns)


def _message(form: MessageFormat, frame: DataFrame) -> Column:
    there = visible_columns(frame)
    if form.kind is not MessageFormatKind.JSON:
        if len(there) != 1:
            has = ", ".join(there)
            raise SchemaError(f"a {form.kind.value} message is one field, and the stream has {has}")
        return F.col(quoted(there[0]))
    assert isinstance(form.element_type, RowTypeInfo), "asked before"
    names = form.element_type.get_field_names()
    # by name where the stream has all names, else in order
    if set(names) <= set(there):
        there = names
    if len(names) != len(there):
        raise SchemaError(
            f"the sink's JSON has the fields {', '.join(names)}, and the stream has {', '.join(there)}; "
            "select(…) what the sink is to write"
        )
    fields = [F.col(quoted(column)).alias(name) for column, name in zip(there, names, strict=True)]
    return F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})
