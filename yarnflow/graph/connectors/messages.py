"""How messages of a broker are written, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from yarnflow.graph.type_info import RowTypeInfo, TypeInfo, Types

#: a message that could not be read: where it is, its time in ms since the epoch, what it is, and why not
MALFORMED_MESSAGE: Final = RowTypeInfo(
    (
        Types.STRING(),
        Types.INT(),
        Types.LONG(),
        Types.LONG(),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.STRING(),
    ),
    ("topic", "partition", "offset", "timestamp_ms", "key", "value", "reason"),
)


class MessageFormatKind(Enum):
    """How messages are written."""

    #: text; option ``charset``
    STRING = "STRING"
    #: as they are
    BYTES = "BYTES"
    #: the bytes of one field of a row; option ``field``; for writing alone
    FIELD = "FIELD"
    #: an object for each; option ``fail_on_missing_field``
    JSON = "JSON"
    #: a line for each; options as :mod:`yarnflow.api.datastream.formats.csv` names them
    CSV = "CSV"
    #: binary, without a header; option ``schema``
    AVRO = "AVRO"


@dataclass(frozen=True, slots=True)
class MessageFormat:
    """How bytes become elements and elements bytes.  Flink: ``DeserializationSchema``."""

    kind: MessageFormatKind
    #: of the elements
    element_type: TypeInfo
    options: dict[str, str] = field(default_factory=dict)
    #: what cannot be read is left out; otherwise it fails the job
    ignore_errors: bool = False
