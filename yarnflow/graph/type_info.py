"""What the elements of a stream are: PyFlink's ``TypeInformation`` as plain values.

Decides names and equality of types only: which columns a type stands for is told by
:mod:`yarnflow.graph.types`, which values it takes and how they are printed by the operators.
Equality is PyFlink's: names of a row's fields do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Union

from yarnflow.errors import SchemaError
from yarnflow.graph.compatibility import NO_JVM, differs, refused


class TypeInformation:
    """Base of all types.  Flink: ``TypeInformation``."""

    __slots__ = ()

    @refused(NO_JVM)
    def get_java_type_info(self) -> Any:
        """Flink's Java class of this type."""

    @differs("always False: values are kept as Python objects")
    def need_conversion(self) -> bool:
        """Whether values need converting before they are written."""
        return False

    @differs("gives the value itself")
    def to_internal_type(self, obj: Any) -> Any:
        """The value as it is kept."""
        return obj

    @differs("gives the value itself")
    def from_internal_type(self, obj: Any) -> Any:
        """The value as a program sees it."""
        return obj


class BasicType(Enum):
    """Types of single values, with the names Flink shows."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


@dataclass(frozen=True, slots=True, repr=False)
class BasicTypeInfo(TypeInformation):
    """A single value: number, text, truth value, point in time."""

    basic_type: BasicType

    def __repr__(self) -> str:
        return self.basic_type.value


@dataclass(frozen=True, slots=True, repr=False)
class DateTypeInfo(TypeInformation):
    """``datetime.date``; Java's ``java.sql.Date``."""

    def __repr__(self) -> str:
        return "DateTypeInfo"


@dataclass(frozen=True, slots=True, repr=False)
class TimeTypeInfo(TypeInformation):
    """``datetime.time`` in whole milliseconds; Java's ``java.sql.Time``."""

    def __repr__(self) -> str:
        return "TimeTypeInfo"


@dataclass(frozen=True, slots=True, repr=False)
class TimestampTypeInfo(TypeInformation):
    """``datetime.datetime`` without a zone; Java's ``java.sql.Timestamp``."""

    def __repr__(self) -> str:
        return "TimestampTypeInfo"


class SqlTimeTypeInfo:
    """The three types of ``java.sql``."""

    DATE = staticmethod(DateTypeInfo)
    TIME = staticmethod(TimeTypeInfo)
    TIMESTAMP = staticmethod(TimestampTypeInfo)


class TimeType(Enum):
    """Which of Java's ``LocalDate``, ``LocalTime``, ``LocalDateTime``."""

    LOCAL_DATE = 0
    LOCAL_TIME = 1
    LOCAL_DATE_TIME = 2


@dataclass(frozen=True, slots=True, repr=False)
class LocalTimeTypeInfo(TypeInformation):
    """Date, time or both, without a zone, to the microsecond."""

    time_type: TimeType

    def __repr__(self) -> str:
        return f"LocalTimeTypeInfo<{self.time_type.name}>"


@dataclass(frozen=True, slots=True, repr=False)
class PickledBytesTypeInfo(TypeInformation):
    """Any Python object; what a stream holds when the program names no type."""

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


_IN_ARRAYS: Final = frozenset({
    BasicType.BOOLEAN, BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG, BasicType.FLOAT,
    BasicType.DOUBLE, BasicType.CHAR,
})  # fmt: skip


def _check_element(array: str, element_type: object, allowed: frozenset[BasicType]) -> None:
    if not (isinstance(element_type, BasicTypeInfo) and element_type.basic_type in allowed):
        raise SchemaError(f"{array} takes one of the types {_names(allowed)}, not {element_type!r}")


def _names(types: frozenset[BasicType]) -> str:
    return ", ".join(sorted(basic.name for basic in types))


@dataclass(frozen=True, slots=True, repr=False)
class PrimitiveArrayTypeInfo(TypeInformation):
    """A list of numbers, truth values or characters without nulls; of bytes: ``bytes``."""

    element_type: TypeInfo

    def __post_init__(self) -> None:
        _check_element("PRIMITIVE_ARRAY", self.element_type, _IN_ARRAYS)

    def __repr__(self) -> str:
        return f"PrimitiveArrayTypeInfo<{self.element_type!r}>"


@dataclass(frozen=True, slots=True, repr=False)
class BasicArrayTypeInfo(TypeInformation):
    """A list of single values; elements may be None."""

    element_type: TypeInfo

    def __post_init__(self) -> None:
        _check_element("BASIC_ARRAY", self.element_type, _IN_ARRAYS | {BasicType.STRING})

    def __repr__(self) -> str:
        return f"BasicArrayTypeInfo<{self.element_type!r}>"


@dataclass(frozen=True, slots=True, repr=False)
class ObjectArrayTypeInfo(TypeInformation):
    """A list of elements of any type; elements may be None."""

    element_type: TypeInfo

    def __repr__(self) -> str:
        return f"ObjectArrayTypeInfo<{self.element_type!r}>"


@dataclass(frozen=True, slots=True, repr=False)
class ListTypeInfo(TypeInformation):
    """A list; elements may be None."""

    elem_type: TypeInfo

    def __repr__(self) -> str:
        return f"ListTypeInfo<{self.elem_type!r}>"


@dataclass(frozen=True, slots=True, repr=False)
class MapTypeInfo(TypeInformation):
    """A dict; values may be None."""

    key_type_info: TypeInfo
    value_type_info: TypeInfo

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self.key_type_info!r}, {self.value_type_info!r}>"


@dataclass(frozen=True, slots=True, repr=False)
class TupleTypeInfo(TypeInformation):
    """A tuple of so many fields."""

    field_types: tuple[TypeInfo, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "field_types", _checked_types("TUPLE", self.field_types))

    def get_field_types(self) -> list[TypeInfo]:
        """Types of the fields, in order."""
        return list(self.field_types)

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self.field_types))})"


@dataclass(frozen=True, slots=True, repr=False)
class RowTypeInfo(TypeInformation):
    """A Row; without names its fields are f0, f1 …"""

    field_types: tuple[TypeInfo, ...]
    field_names: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        types = _checked_types("ROW", self.field_types)
        names = tuple(self.field_names or ())
        if names and len(names) != len(types):
            raise SchemaError(f"a row of {len(types)} types has {len(names)} names: {', '.join(names)}")
        if len(set(names)) != len(names):
            raise SchemaError(f"two fields of a row have one name: {', '.join(names)}")
        object.__setattr__(self, "field_types", types)
        object.__setattr__(self, "field_names", names)

    def get_field_names(self) -> list[str]:
        """Names of the fields, in order."""
        return list(self.field_names) or [f"f{number}" for number in range(len(self.field_types))]

    def get_field_index(self, field_name: str) -> int:
        """Where a field is, from 0; -1 where the fields were not named."""
        return self.field_names.index(field_name) if self.field_names else -1

    def get_field_types(self) -> list[TypeInfo]:
        """Types of the fields, in order."""
        return list(self.field_types)

    def __repr__(self) -> str:
        if not self.field_names:
            return f"RowTypeInfo({', '.join(map(repr, self.field_types))})"
        named = zip(self.field_names, self.field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {kind!r}' for name, kind in named)})"


@dataclass(frozen=True, slots=True, repr=False)
class ExternalTypeInfo(TypeInformation):
    """Another type; Flink marks so what came out of its Table API."""

    type_info: TypeInfo

    def __repr__(self) -> str:
        return f"ExternalTypeInfo<{self.type_info!r}>"


#: every type there is; what schemas and job graphs carry
TypeInfo = Union[  # noqa: UP007
    BasicTypeInfo,
    DateTypeInfo,
    TimeTypeInfo,
    TimestampTypeInfo,
    LocalTimeTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    BasicArrayTypeInfo,
    ObjectArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    TupleTypeInfo,
    RowTypeInfo,
    ExternalTypeInfo,
]


def _checked_types(what: str, types: Sequence[object]) -> tuple[TypeInfo, ...]:
    if isinstance(types, TypeInformation):
        raise SchemaError(f"{what} takes a list of types, not {types!r}; write [{types!r}]")
    return tuple(checked_type(kind, f"field {number} of {what}") for number, kind in enumerate(types))


def checked_type(value: object, what: str) -> TypeInfo:
    """A value as a type; a list of types is a row of them, as PyFlink takes it.

    Raises
    ------
    SchemaError
        Saying what is no type.
    """
    if isinstance(value, list):
        return RowTypeInfo(tuple(value))
    if not isinstance(value, TypeInformation):
        raise SchemaError(f"{what} is {value!r}, which is no type; take one of Types, such as Types.STRING()")
    found: TypeInfo = value  # type: ignore[assignment]
    return found


#: the type of a stream without one
PICKLED: Final = PickledBytesTypeInfo()


class Types:
    """Makes types.  PyFlink: the same."""

    @staticmethod
    def STRING() -> TypeInfo:
        """``str``."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInfo:
        """``int`` of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInfo:
        """``bool``."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInfo:
        """``int`` of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInfo:
        """``int`` of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInfo:
        """``int`` of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInfo:
        """``float``, rounded to 32 bits."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInfo:
        """``float``."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInfo:
        """``str`` of one character."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInfo:
        """``int`` of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInfo:
        """``decimal.Decimal``."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> TypeInfo:
        """``Instant``: seconds and nanoseconds since the epoch."""
        return BasicTypeInfo(BasicType.INSTANT)

    @staticmethod
    def SQL_DATE() -> TypeInfo:
        """``datetime.date``."""
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInfo:
        """``datetime.time`` in whole milliseconds."""
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInfo:
        """``datetime.datetime`` in whole milliseconds."""
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInfo:
        """Any object, pickled on its way."""
        return PICKLED

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """``Row`` of these types, fields named f0, f1 …"""
        return RowTypeInfo(field_types)  # type: ignore[arg-type]

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """``Row`` of these types under these names."""
        return RowTypeInfo(field_types, tuple(field_names))  # type: ignore[arg-type]

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """``tuple`` of these types."""
        return TupleTypeInfo(field_types)  # type: ignore[arg-type]

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> PrimitiveArrayTypeInfo:
        """``list`` of numbers without None; of bytes: ``bytes``."""
        return PrimitiveArrayTypeInfo(checked_type(element_type, "the element type"))

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInfo:
        """``list`` of single values, which may be None."""
        return BasicArrayTypeInfo(checked_type(element_type, "the element type"))

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInfo:
        """``list`` of values of any type, which may be None."""
        return ObjectArrayTypeInfo(checked_type(element_type, "the element type"))

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInfo:
        """``dict``; values may be None."""
        key = checked_type(key_type_info, "the key type")
        return MapTypeInfo(key, checked_type(value_type_info, "the value type"))

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInfo:
        """``list``; elements may be None."""
        return ListTypeInfo(checked_type(element_type_info, "the element type"))
