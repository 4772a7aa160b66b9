"""``lookup_join``: what it asks, by which keys, and what its options say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from yarnflow.api.building.definitions import Inputs, Resolved, known_columns
from yarnflow.api.building.output_types import element_columns
from yarnflow.api.origin import definition_origin
from yarnflow.config import parsers
from yarnflow.errors import GraphError, SchemaError
from yarnflow.graph.closures import make_closure
from yarnflow.graph.connectors.lookups import FunctionLookup, JdbcLookup, Lookup, LookupOptions
from yarnflow.graph.operators import LookupJoin
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.stream_graph import Definition
from yarnflow.graph.types import checked_schema, parse_type
from yarnflow.operators.functions.lookup import AsyncLookupFunction, LookupFunction

#: what is looked up: described, or a function of the program
Looked = JdbcLookup | LookupFunction | AsyncLookupFunction
#: ``"id"``, ``["id", "region"]`` or ``{"field of the stream": "column of the table"}``
On = str | Sequence[str] | Mapping[str, str]

INNER: Final = "inner"
LEFT: Final = "left"
_CACHE: Final = "lookup.cache"
_PARTIAL: Final = "lookup.partial-cache."
_ASYNC: Final = "table.exec.async-lookup."
#: Flink's key → the field it sets, and how its text is read
_OPTIONS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    f"{_PARTIAL}max-rows": ("max_rows", parsers.integer(at_least=1)),
    f"{_PARTIAL}expire-after-write": ("expire_after_write_ms", parsers.duration_at_least("1 ms")),
    f"{_PARTIAL}expire-after-access": ("expire_after_access_ms", parsers.duration_at_least("1 ms")),
    f"{_PARTIAL}cache-missing-key": ("cache_missing_key", parsers.boolean),
    "lookup.max-retries": ("max_retries", parsers.integer(at_least=0)),
    f"{_ASYNC}buffer-capacity": ("capacity", parsers.integer(at_least=1)),
    f"{_ASYNC}timeout": ("timeout_ms", parsers.duration_ms),
}
#: what has no equality of its own in databases and functions alike
_NO_KEYS: Final = ("array", "map", "struct", "variant", "void")


def lookup_join(
    lookup: Looked,
    on: On,
    how: str,
    output_type: object | None,
    options: Mapping[str, object] | None,
    origin: str,
) -> Definition:
    """``lookup_join``; what is wrong with the call itself is raised now, without its line.

    Raises
    ------
    GraphError
        ``on``, ``how`` or ``options`` are none.
    SchemaError
        The columns that the table has are not known.
    UnserializableFunction
        The function cannot be sent to the workers.
    """
    keys = _keys(on)
    if how not in (INNER, LEFT):
        raise GraphError(f"how={how!r} is neither '{INNER}' nor '{LEFT}'")
    found = _described(lookup, output_type, origin)
    asked = lookup_options(options or {}, asynchronous=isinstance(lookup, AsyncLookupFunction))

    def define(inputs: Inputs) -> Resolved:
        stream = known_columns(inputs[0])
        pairs = tuple((_key_field(stream, mine).name, theirs) for mine, theirs in keys)
        _check_no_duplicates(stream, found)
        operator = LookupJoin(found, pairs, how == LEFT, asked)
        return operator, checked_schema((*stream.fields, *found.columns.fields))

    return define


def lookup_options(options: Mapping[str, object], asynchronous: bool = False) -> LookupOptions:
    """Options by Flink's keys; values may be texts or what texts stand for.

    Raises
    ------
    GraphError
        A key is not known or says nothing here, or a value is none of its form.
    """
    cached = _cached(str(options.get(_CACHE, "NONE")))
    fields: dict[str, Any] = {}
    for key, value in options.items():
        if key == _CACHE:
            continue
        if key not in _OPTIONS:
            known = ", ".join((_CACHE, *_OPTIONS))
            raise GraphError(f"lookup_join has no option '{key}'; it has {known}")
        if key.startswith(_PARTIAL) and not cached:
            raise GraphError(f"'{key}' says nothing without a cache; add '{_CACHE}': 'PARTIAL'")
        if key.startswith(_ASYNC) and not asynchronous:
            raise GraphError(f"'{key}' is for an AsyncLookupFunction, which this is not; leave it out")
        name, parse = _OPTIONS[key]
        try:
            fields[name] = parse(str(value).lower() if isinstance(value, bool) else str(value))
        except ValueError as error:
            raise GraphError(f"option '{key}' is {value!r}, and must be {error}") from None
    return replace(LookupOptions(cached=cached), **fields)


def _cached(kind: str) -> bool:
    match kind.strip().upper():
        case "NONE":
            return False
        case "PARTIAL":
            return True
        case "FULL":
            raise GraphError(
                f"'{_CACHE}': 'FULL' is not possible; join a table that is read whole by env.sql('SELECT … "
                "FROM stream JOIN table ON …')"
            )
    raise GraphError(f"option '{_CACHE}' is {kind!r}, and must be NONE or PARTIAL")


def _keys(on: On) -> tuple[tuple[str, str], ...]:
    if isinstance(on, str):
        pairs: tuple[Any, ...] = ((on, on),)
    elif isinstance(on, Mapping):
        pairs = tuple(on.items())
    else:
        pairs = tuple((name, name) for name in on)
    if not pairs or not all(isinstance(name, str) and name for pair in pairs for name in pair):
        raise GraphError(
            f"on={on!r} must be a field, a list of fields or a mapping of fields to the table's columns"
        )
    for side, what in ((0, "field of the stream"), (1, "column of the table")):
        seen: set[str] = set()
        for pair in pairs:
            if pair[side].lower() in seen:
                raise GraphError(f"on={on!r} names the {what} '{pair[side]}' twice")
            seen.add(pair[side].lower())
    return pairs


def _described(lookup: object, output_type: object | None, origin: str) -> Lookup:
    if isinstance(lookup, JdbcLookup):
        if output_type is not None:
            raise GraphError("output_type is for functions; a JdbcLookup has its columns")
        return lookup
    if isinstance(lookup, (LookupFunction, AsyncLookupFunction)):
        asynchronous = isinstance(lookup, AsyncLookupFunction)
        schema = element_columns(lookup, "async_lookup" if asynchronous else "lookup", output_type)
        found = checked_columns(schema)
        return FunctionLookup(found, make_closure(lookup, definition_origin(lookup, origin)), asynchronous)
    shown = f"; make an object of it: {lookup.__name__}()" if isinstance(lookup, type) else ""
    raise GraphError(
        f"a JdbcLookup, a LookupFunction or an AsyncLookupFunction is needed, not {lookup!r}{shown}"
    )


def checked_columns(schema: Schema) -> Schema:
    """The columns of a table as a join adds them.

    Raises
    ------
    SchemaError
        They have no names, or no types.
    """
    untyped = [one.name for one in schema.fields if one.type is None]
    if schema.scalar or not schema.fields or untyped:
        raise SchemaError("a lookup's columns need names and types, such as 'name STRING, city STRING'")
    return Schema(schema.fields)


def _key_field(stream: Schema, name: str) -> Field:
    from yarnflow.graph.sql.expressions import unknown_field

    found = stream.find(name)
    if found is None:
        raise unknown_field(name, stream)
    if found.type is not None and (kind := parse_type(found.type)).name in _NO_KEYS:
        raise SchemaError(f"field '{found.name}' is of type {kind.ddl()}, by which nothing can be looked up")
    return found


def _check_no_duplicates(stream: Schema, lookup: Lookup) -> None:
    twice = [one.name for one in lookup.columns.fields if stream.find(one.name) is not None]
    if twice:
        names = ", ".join(f"'{name}'" for name in twice)
        has = "has it" if len(twice) == 1 else "has them"
        raise SchemaError(
            f"{lookup.what} gives {names}, and the stream {has} already; leave out what the stream has, or "
            "give it another name by select(…) before"
        )
