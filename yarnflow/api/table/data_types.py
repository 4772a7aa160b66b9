"""Types of fields as the Table API names them; file formats take rows of them.

PyFlink: ``DataTypes`` of ``pyflink.table``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from yarnflow.errors import SchemaError
from yarnflow.graph.compatibility import unsupported
from yarnflow.graph.types import DataType

_USE: Final = "the types of Spark: numbers, texts, bytes, dates, timestamps, arrays, maps, rows"


class _Refusing(type):
    """Types that are none of Spark's can be named, and not used."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise unsupported(f"DataTypes.{name}()", "no file has it", _USE)


class DataTypes(metaclass=_Refusing):
    """Types of fields.  Every field may be None, whatever ``nullable`` says."""

    @staticmethod
    def STRING(nullable: bool = True) -> DataType:  # noqa: N802
        """Text."""
        return DataType("string")

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Text; how long it may be is not checked."""
        return DataType("string")

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Text; its length is not checked."""
        return DataType("string")

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> DataType:  # noqa: N802
        """True or False."""
        return DataType("boolean")

    @staticmethod
    def BYTES(nullable: bool = True) -> DataType:  # noqa: N802
        """Bytes."""
        return DataType("binary")

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Bytes; their number is not checked."""
        return DataType("binary")

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Bytes; their number is not checked."""
        return DataType("binary")

    @staticmethod
    def TINYINT(nullable: bool = True) -> DataType:  # noqa: N802
        """8 bits."""
        return DataType("tinyint")

    @staticmethod
    def SMALLINT(nullable: bool = True) -> DataType:  # noqa: N802
        """16 bits."""
        return DataType("smallint")

    @staticmethod
    def INT(nullable: bool = True) -> DataType:  # noqa: N802
        """32 bits."""
        return DataType("int")

    @staticmethod
    def BIGINT(nullable: bool = True) -> DataType:  # noqa: N802
        """64 bits."""
        return DataType("bigint")

    @staticmethod
    def FLOAT(nullable: bool = True) -> DataType:  # noqa: N802
        """Floating point of 32 bits."""
        return DataType("float")

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DataType:  # noqa: N802
        """Floating point of 64 bits."""
        return DataType("double")

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DataType:  # noqa: N802
        """``precision`` digits, ``scale`` of them behind the point."""
        return DataType("decimal", (precision, scale))

    @staticmethod
    def DATE(nullable: bool = True) -> DataType:  # noqa: N802
        """A day."""
        return DataType("date")

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802
        """Day and time without a zone, to the microsecond."""
        return DataType("timestamp_ntz")

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802
        """A point in time, to the microsecond."""
        return DataType("timestamp")

    TIMESTAMP_WITH_LOCAL_TIME_ZONE = TIMESTAMP_LTZ

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> DataType:  # noqa: N802
        """Values of one type."""
        return DataType("array", children=(("element", element_type),))

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> DataType:  # noqa: N802
        """Keys and values."""
        return DataType("map", children=(("key", key_type), ("value", value_type)))

    @staticmethod
    def ROW(row_fields: Iterable[Any] = (), nullable: bool = True) -> DataType:  # noqa: N802
        """Fields; of types alone, they are called ``f0``, ``f1`` …"""
        fields = list(row_fields)
        return DataType(
            "struct",
            children=tuple(
                (f"f{number}", field) if isinstance(field, DataType) else (field[0], field[1])
                for number, field in enumerate(fields)
            ),
        )

    @staticmethod
    def FIELD(  # noqa: N802
        name: str, data_type: DataType, description: str | None = None
    ) -> tuple[str, DataType]:
        """A field of a row."""
        if not isinstance(data_type, DataType):
            raise SchemaError(f"field '{name}': {data_type!r} is no type; write DataTypes.STRING()")
        return name, data_type


def row_type(kind: object, call: str) -> DataType:
    """A type that must be a row; raises SchemaError naming the call."""
    if not isinstance(kind, DataType) or kind.name != "struct":
        fields = "DataTypes.ROW([DataTypes.FIELD('name', DataTypes.STRING()), …])"
        raise SchemaError(f"{call} takes {fields}, not {kind!r}")
    return kind
