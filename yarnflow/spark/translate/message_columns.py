"""Messages as columns of their format's type, for expressions and sinks of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame

from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.connectors.messages import MessageFormat
from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.schema import Schema
from yarnflow.graph.type_info import RowTypeInfo
from yarnflow.spark.messages.reading import MessageChunks, malformed_output
from yarnflow.spark.translate.arrow_values import ColumnBuilder
from yarnflow.spark.translate.schemas import nullable, to_arrow, to_struct_type


def has_messages(node: StreamNode) -> bool:
    """Whether what a node gives are messages still to be read."""
    return isinstance(node.operator, (KafkaSource, RabbitMqSource)) and node.operator.format is not None


def message_columns(node: StreamNode, frame: DataFrame) -> DataFrame:
    """The messages of a node, read."""
    assert isinstance(node.operator, (KafkaSource, RabbitMqSource)), "asked before"
    form, schema = read_fields(node)
    struct = to_struct_type(schema, f"'{node.name}' ({node.origin})")
    names = {field.name: field.dataType.simpleString() for field in struct.fields}
    # what goes to a side output is read by the query of that
    read = MessageChunks(form, malformed_output(node.operator))
    columns = _Columns(read, schema, to_arrow(struct), node.name, names)
    return frame.mapInArrow(cast(Any, columns), nullable(struct))


def read_fields(node: StreamNode) -> tuple[MessageFormat, Schema]:
    """Format and columns of a node's messages, with the fields alone that somebody reads."""
    assert isinstance(node.operator, (KafkaSource, RabbitMqSource)), "asked before"
    form, schema = node.operator.format, node.output_schema.columns
    assert form is not None, "asked before"
    fields = node.operator.fields if isinstance(node.operator, KafkaSource) else None
    if fields is None or not isinstance(form.element_type, RowTypeInfo):
        return form, schema
    types = dict(zip(form.element_type.get_field_names(), form.element_type.field_types, strict=True))
    kind = RowTypeInfo(tuple(types[name] for name in fields), fields)
    return replace(form, element_type=kind), replace(
        schema, fields=tuple(field for field in schema.fields if field.name in fields)
    )


class _Columns:
    """From batches of messages to batches of columns."""

    def __init__(
        self, read: MessageChunks, schema: Schema, arrow: pa.Schema, source: str, type_names: dict[str, str]
    ) -> None:
        self._read = read
        self._schema = schema
        self._arrow = arrow
        self._source = source
        self._type_names = type_names

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = f"the output of '{self._source}'"
        builder = ColumnBuilder(self._arrow, self._schema, source, self._type_names)
        for batch in batches:
            table = self._read.columns(batch)
            if table is not None:
                columns = [column.combine_chunks() for column in table.columns]
                yield pa.RecordBatch.from_arrays(
                    [c.cast(f.type) for c, f in zip(columns, self._arrow, strict=True)], schema=self._arrow
                )
                continue
            values = self._read(batch).values
            if values:
                yield builder.batch(values, {})
