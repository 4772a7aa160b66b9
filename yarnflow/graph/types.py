"""Schemas from DDL text and from Python type hints.

Decides which Spark type a piece of DDL or a Python type stands for; never looks at data.
Flink counterpart: ``Types`` / ``TypeInformation``.  Spark counterpart: ``StructType.fromDDL``.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import re
import types
import typing
from dataclasses import dataclass
from typing import Any, Final

from yarnflow.errors import SchemaError
from yarnflow.graph.schema import EVENT_TIME_FIELD, KEY_FIELD, VALUE_FIELD, Field, Schema

#: spelling → Spark's own name
_ATOMIC: Final = {
    "boolean": "boolean", "bool": "boolean",
    "tinyint": "tinyint", "byte": "tinyint", "smallint": "smallint", "short": "smallint",
    "int": "int", "integer": "int", "bigint": "bigint", "long": "bigint",
    "float": "float", "real": "float", "double": "double",
    "decimal": "decimal", "dec": "decimal", "numeric": "decimal",
    "string": "string", "varchar": "varchar", "char": "char", "character": "char", "binary": "binary",
    "date": "date", "timestamp": "timestamp", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz",
    "variant": "variant", "void": "void",
}  # fmt: skip

_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|('(?:[^'\\]|\\.)*')|(\w+)|([<>(),:])|(\S))")
_PLAIN_NAME: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class DataType:
    """A Spark type, taken apart."""

    #: ``bigint``, ``decimal``, ``array``, ``map``, ``struct`` …
    name: str
    #: decimal: precision, scale; varchar and char: length
    numbers: tuple[int, ...] = ()
    #: array: element; map: key, value; struct: its fields
    children: tuple[tuple[str, DataType], ...] = ()

    def ddl(self) -> str:
        """Spark DDL text, lower case but for the names of struct fields."""
        if self.name == "struct":
            return f"struct<{','.join(f'{quote(name)}:{child.ddl()}' for name, child in self.children)}>"
        if self.children:
            return f"{self.name}<{','.join(child.ddl() for _, child in self.children)}>"
        return f"{self.name}({','.join(map(str, self.numbers))})" if self.numbers else self.name


def quote(name: str) -> str:
    """A field name as SQL text, in backticks where it needs them."""
    if _PLAIN_NAME.fullmatch(name) and not name[0].isdigit():
        return name
    return "`" + name.replace("`", "``") + "`"


def parse_schema(text: str) -> Schema:
    """Read a DDL schema such as ``"a INT, b ARRAY<STRING>, `odd name` STRING NOT NULL"``.

    A lone type (``"STRING"``) gives a scalar stream, a lone ``STRUCT<…>`` a stream of its fields.
    Nullability and comments are read and dropped: every field may be null.

    Raises
    ------
    SchemaError
        Naming the part that cannot be read.
    """
    parser = _Parser(text)
    if parser.at_end():
        raise SchemaError("empty schema; write fields as 'name TYPE, name TYPE'")
    if parser.starts_with_type():
        return schema_of_type(parser.whole_type())
    return checked_schema(tuple(Field(name, kind.ddl()) for name, kind in parser.fields(end="")))


def parse_type(text: str) -> DataType:
    """Read one DDL type such as ``ARRAY<STRUCT<x: INT>>``.  Raises SchemaError."""
    return _Parser(text).whole_type()


def schema_of_type(kind: DataType) -> Schema:
    """The schema of a stream of such values: a struct's fields, else one scalar field."""
    if kind.name == "struct":
        return checked_schema(tuple(Field(name, child.ddl()) for name, child in kind.children))
    return Schema((Field(VALUE_FIELD, kind.ddl()),), scalar=True)


def checked_schema(fields: tuple[Field, ...], scalar: bool = False) -> Schema:
    """A schema whose names are all different and none is reserved.  Raises SchemaError."""
    seen: set[str] = set()
    for field in fields:
        lower = field.name.lower()
        if lower in (KEY_FIELD, EVENT_TIME_FIELD):
            raise SchemaError(f"the field name '{field.name}' is reserved; use another")
        if lower in seen:
            raise SchemaError(f"two fields are named '{field.name}'; give one another name with AS")
        seen.add(lower)
    return Schema(fields, scalar)


def to_schema(spec: object) -> Schema:
    """A schema from whatever a program may write for one: DDL text, a Python type, a Schema."""
    if isinstance(spec, Schema):
        return spec
    if isinstance(spec, DataType):
        return schema_of_type(spec)
    if isinstance(spec, str):
        return parse_schema(spec)
    return schema_of_type(type_of_hint(spec))


class _Parser:
    """Recursive descent over DDL tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_TOKEN.finditer(text.rstrip()))
        self.position = 0

    def at_end(self) -> bool:
        return self.position >= len(self.tokens)

    def peek(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.tokens[index][0].strip() if index < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def fail(self, expected: str) -> SchemaError:
        shown = self.peek()
        where = f"at '{shown}'" if shown else "at the end"
        return SchemaError(f"schema '{self.text.strip()}': {expected} expected {where}")

    def starts_with_type(self) -> bool:
        """Whether the text is a lone type: one word, or a word and its parameters."""
        if self.peek().startswith("`"):
            return False
        return self.peek(1) in ("", "<", "(")

    def whole_type(self) -> DataType:
        kind = self.type()
        if not self.at_end():
            raise self.fail("the end of the type")
        return kind

    def fields(self, end: str) -> tuple[tuple[str, DataType], ...]:
        found = []
        while True:
            found.append(self.field())
            if self.peek() == ",":
                self.take()
                continue
            if self.peek() != end:
                raise self.fail(f"',' or '{end}'" if end else "','")
            return tuple(found)

    def field(self) -> tuple[str, DataType]:
        token = self.peek()
        if token.startswith("`") and len(token) > 2:
            name = token[1:-1].replace("``", "`")
        elif _PLAIN_NAME.fullmatch(token):
            name = token
        else:
            raise self.fail("a field name")
        self.take()
        if self.peek() == ":":
            self.take()
        kind = self.type()
        if self.peek().upper() == "NOT" and self.peek(1).upper() == "NULL":
            self.position += 2
        if self.peek().upper() == "COMMENT" and self.peek(1).startswith("'"):
            self.position += 2
        return name, kind

    def type(self) -> DataType:
        word = self.peek().lower()
        if word == "array":
            self.take()
            self.expect("<")
            element = self.type()
            self.expect(">")
            return DataType("array", children=(("element", element),))
        if word == "map":
            self.take()
            self.expect("<")
            key = self.type()
            self.expect(",")
            value = self.type()
            self.expect(">")
            return DataType("map", children=(("key", key), ("value", value)))
        if word == "struct":
            self.take()
            self.expect("<")
            children = self.fields(end=">")
            self.expect(">")
            return DataType("struct", children=children)
        name = _ATOMIC.get(word)
        if name is None:
            raise self.fail("a type")
        self.take()
        numbers = self.numbers() if self.peek() == "(" else ()
        if name == "decimal":
            numbers = (*numbers, *(10, 0)[len(numbers) :])
        allowed = {"decimal": 2, "varchar": 1, "char": 1}.get(name, 0)
        if len(numbers) != allowed:
            raise SchemaError(
                f"schema '{self.text.strip()}': '{word}' takes {allowed} numbers, got {len(numbers)}"
            )
        return DataType(name, numbers)

    def numbers(self) -> tuple[int, ...]:
        self.take()
        found = []
        while True:
            if not self.peek().isdigit():
                raise self.fail("a number")
            found.append(int(self.take()))
            if self.peek() == ")":
                self.take()
                return tuple(found)
            self.expect(",")

    def expect(self, token: str) -> None:
        if self.peek() != token:
            raise self.fail(f"'{token}'")
        self.take()


# --- Python type hints -----------------------------------------------------------

_HINTS: Final[dict[object, DataType]] = {
    str: DataType("string"),
    int: DataType("bigint"),
    float: DataType("double"),
    bool: DataType("boolean"),
    bytes: DataType("binary"),
    bytearray: DataType("binary"),
    datetime.datetime: DataType("timestamp"),
    datetime.date: DataType("date"),
    decimal.Decimal: DataType("decimal", (38, 18)),
}
_SEQUENCES: Final = (list, set, frozenset, collections.abc.Sequence, collections.abc.Set)
_MAPPINGS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def type_of_hint(hint: object) -> DataType:
    """The Spark type of a Python type.

    ``tuple[A, B]`` has the fields f0, f1; a NamedTuple, dataclass or TypedDict its own names;
    ``X | None`` is X.

    Raises
    ------
    SchemaError
        Naming the part that stands for no Spark type.
    """
    if isinstance(hint, DataType):
        return hint
    known = _HINTS.get(hint) if isinstance(hint, type) else None
    if known is not None:
        return known
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated or origin in (typing.Required, typing.NotRequired):
        return type_of_hint(arguments[0])
    if origin in (typing.Union, types.UnionType):
        members = [a for a in arguments if a is not type(None)]
        if len(members) != 1:
            raise SchemaError(f"{_shown(hint)} is no single type; a field has one type, and may be None")
        return type_of_hint(members[0])
    if origin is tuple and arguments:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return DataType("array", children=(("element", type_of_hint(arguments[0])),))
        return DataType("struct", children=tuple((f"f{i}", type_of_hint(a)) for i, a in enumerate(arguments)))
    if origin in _SEQUENCES and arguments:
        return DataType("array", children=(("element", type_of_hint(arguments[0])),))
    if origin in _MAPPINGS and arguments:
        key, value = map(type_of_hint, arguments)
        return DataType("map", children=(("key", key), ("value", value)))
    if isinstance(hint, type) and _has_named_fields(hint):
        named = _resolved_hints(hint)
        if not named:
            raise SchemaError(f"{_shown(hint)} has no fields")
        return DataType("struct", children=tuple((name, type_of_hint(named[name])) for name in named))
    raise SchemaError(
        f"{_shown(hint)} stands for no type of a field; "
        "use str, int, float, bool, bytes, datetime, date, Decimal, list[T], dict[K, V], tuple[A, B], "
        "a NamedTuple, dataclass or TypedDict, or DDL text"
    )


def _has_named_fields(hint: type) -> bool:
    named_tuple = issubclass(hint, tuple) and bool(getattr(hint, "_fields", ()))
    return named_tuple or dataclasses.is_dataclass(hint) or typing.is_typeddict(hint)


def _resolved_hints(hint: type) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(hint)
    except NameError as exc:
        raise SchemaError(f"the fields of {hint.__name__} cannot be read: {exc}") from exc
    if dataclasses.is_dataclass(hint):
        return {field.name: hints[field.name] for field in dataclasses.fields(hint)}
    return {name: hints[name] for name in getattr(hint, "_fields", hints) if name in hints}


def _shown(hint: object) -> str:
    return hint.__qualname__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)


def element_hint(hint: object) -> object | None:
    """``T`` of ``Iterable[T]``, ``Iterator[T]``, ``Generator[T, …]``, ``list[T]`` …, else None."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if not isinstance(origin, type) or not arguments or not issubclass(origin, collections.abc.Iterable):
        return None
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        return None
    if issubclass(origin, collections.abc.Mapping):
        return None
    element: object = arguments[0]
    return element
