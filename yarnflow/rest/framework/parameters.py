"""Parameters of paths and queries: one typed declaration each.

Flink counterparts: ``MessagePathParameter``, ``MessageQueryParameter``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
E = TypeVar("E")

#: a longer value of any parameter is none
MAX_CHARACTERS: Final = 4_096


@dataclass(frozen=True)
class Parameter(Generic[T]):
    """One parameter.

    Attributes
    ----------
    name : str
        Flink's.
    parse : callable
        Text → value; raises ``ValueError``.
    schema : mapping
        JSON Schema of the text.
    default : T, optional
        Of a query parameter that is not given.
    is_list : bool
        Several values, separated by commas or given by several parameters of the name.
    """

    name: str
    parse: Callable[[str], T]
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"}, hash=False)
    default: T | None = None
    is_list: bool = False


def text(name: str, description: str, pattern: str) -> Parameter[str]:
    """A text of a form."""
    form = re.compile(pattern)

    def parse(value: str) -> str:
        if form.fullmatch(value) is None:
            raise ValueError(f"a text of the form {pattern}")
        return value

    return Parameter(name, parse, description, {"type": "string", "pattern": f"^{pattern}$"})


def hexadecimal(name: str, description: str) -> Parameter[str]:
    """32 hexadecimal digits, as Flink's ids; in lower case from here on."""

    def parse(value: str) -> str:
        if re.fullmatch("[0-9a-fA-F]{32}", value) is None:
            raise ValueError("32 hexadecimal digits")
        return value.lower()

    return Parameter(name, parse, description, {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"})


def number(name: str, description: str, default: int | None = None) -> Parameter[int]:
    """A whole number of at most 18 digits, 0 or more."""

    def parse(value: str) -> int:
        if re.fullmatch("[0-9]{1,18}", value) is None:
            raise ValueError("a whole number, 0 or more")
        return int(value)

    schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999_999}
    return Parameter(name, parse, description, schema, default)


def choice(name: str, description: str, values: Sequence[str], default: str) -> Parameter[str]:
    """One of several words."""

    def parse(value: str) -> str:
        if value.lower() not in values:
            raise ValueError(f"one of {', '.join(values)}")
        return value.lower()

    return Parameter(name, parse, description, {"type": "string", "enum": list(values)}, default)


def words(name: str, description: str, each: Parameter[E] | None = None) -> Parameter[tuple[Any, ...]]:
    """Several values; none when it is not given.

    Parameters
    ----------
    each : Parameter, optional
        The form of one value.
    """

    def parse(value: str) -> tuple[Any, ...]:
        found = [part.strip() for part in value.split(",") if part.strip()]
        return tuple(found if each is None else [each.parse(part) for part in found])

    item = {"type": "string"} if each is None else dict(each.schema)
    return Parameter(name, parse, description, {"type": "array", "items": item}, (), is_list=True)
