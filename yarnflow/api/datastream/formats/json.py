"""JSON.  PyFlink: ``pyflink.datastream.formats.json``."""

from __future__ import annotations

from yarnflow.api.common.serialization import DeserializationSchema, SerializationSchema
from yarnflow.errors import SchemaError
from yarnflow.graph.compatibility import differs
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.type_info import RowTypeInfo, TypeInfo, TypeInformation, checked_type


class JsonRowDeserializationSchema(DeserializationSchema):
    """JSON objects as rows; made by its builder."""

    def __init__(
        self, type_info: TypeInfo, fail_on_missing_field: bool = False, ignore_parse_errors: bool = False
    ) -> None:
        self._type_info = type_info
        self._fail_on_missing_field = fail_on_missing_field
        self._ignore_parse_errors = ignore_parse_errors

    def _read(self) -> MessageFormat:
        options = {"fail_on_missing_field": "true"} if self._fail_on_missing_field else {}
        return MessageFormat(MessageFormatKind.JSON, self._type_info, options, self._ignore_parse_errors)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Begin a schema."""
        return JsonRowDeserializationSchema.Builder()

    class Builder:
        """Says the fields and what becomes of bad messages."""

        def __init__(self) -> None:
            self._type_info: TypeInfo | None = None
            self._fail = False
            self._ignore = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """Fields and their types, as Types.ROW_NAMED."""
            found = checked_type(type_info, "type_info")
            if not isinstance(found, RowTypeInfo):
                raise SchemaError(f"JSON objects become rows; write Types.ROW_NAMED(…), not {found!r}")
            self._type_info = found
            return self

        @differs("takes DDL text")
        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Fields and their types."""
            from yarnflow.graph.element_schema import type_of_schema
            from yarnflow.graph.types import parse_schema

            self._type_info = type_of_schema(parse_schema(json_schema))
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """A message without a field fails the job; otherwise the field is None."""
            self._fail = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """A part of a message that does not fit its type is None, and what is not JSON is left out.

            Otherwise either fails the job.  The metric ``numRecordsInErrors`` counts such messages.
            """
            self._ignore = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """The schema."""
            if self._type_info is None:
                raise SchemaError("a JSON schema needs type_info(Types.ROW_NAMED(…))")
            if self._fail and self._ignore:
                raise SchemaError(
                    "fail_on_missing_field() and ignore_parse_errors() exclude each other; call one"
                )
            return JsonRowDeserializationSchema(self._type_info, self._fail, self._ignore)


class JsonRowSerializationSchema(SerializationSchema):
    """Rows as JSON objects; made by its builder."""

    def __init__(self, type_info: TypeInfo) -> None:
        self._type_info = type_info

    def _written(self) -> MessageFormat:
        return MessageFormat(MessageFormatKind.JSON, self._type_info)

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Begin a schema."""
        return JsonRowSerializationSchema.Builder()

    class Builder:
        """Says the fields."""

        def __init__(self) -> None:
            self._type_info: TypeInfo | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """Fields and their types."""
            found = checked_type(type_info, "type_info")
            if not isinstance(found, RowTypeInfo):
                raise SchemaError(f"rows become JSON objects; write Types.ROW_NAMED(…), not {found!r}")
            self._type_info = found
            return self

        def build(self) -> JsonRowSerializationSchema:
            """The schema."""
            if self._type_info is None:
                raise SchemaError("a JSON schema needs with_type_info(Types.ROW_NAMED(…))")
            return JsonRowSerializationSchema(self._type_info)
