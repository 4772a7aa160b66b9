"""The types that states are declared with, as texts that are kept beside the entries.

Values are stored as Python's own, so a wider number or any object reads what a narrower one has written;
every other change of a type would hand a function values it does not expect.  Flink counterpart:
``TypeSerializerSchemaCompatibility``.
"""

from __future__ import annotations

from typing import Any, Final

#: from narrow to wide; all are one type in Python
_WIDENING: Final = (("Byte", "Short", "Integer", "Long", "BigInteger"), ("Float", "Double"))
_ANYTHING: Final = "PickledByteArrayTypeInfo"


def type_text(type_info: Any) -> str:
    """A declared type, or the pair of a map's, as text; empty = none was declared."""
    if type_info is None:
        return ""
    if isinstance(type_info, tuple):
        return " to ".join(str(part) for part in type_info)
    return str(type_info)


def reads(registered: str, stored: str) -> bool:
    """Whether functions with state of one type can go on with entries of another."""
    if registered in (stored, _ANYTHING):
        return True
    return any(
        stored in widening and registered in widening and widening.index(stored) < widening.index(registered)
        for widening in _WIDENING
    )
