"""What a user function returns, as a schema.

Decides between what the call says (``output_type``) and the function's own annotation; never
runs the function.  PyFlink asks for ``output_type`` always; here an annotation is as good.
"""

from __future__ import annotations

import functools
import inspect
import typing
from typing import Any, Final

from yarnflow.errors import SchemaError
from yarnflow.graph.closures import function_name
from yarnflow.graph.rows import Row
from yarnflow.graph.schema import Schema
from yarnflow.graph.types import DataType, element_hint, parse_type, to_schema, type_of_hint

_MISSING: Final = object()


def record_columns(function: Any, method: str, output_type: object | None) -> Schema:
    """Schema of the records of ``map``-like functions.  Raises SchemaError saying what to add."""
    if output_type is not None:
        return _checked(output_type, "output_type")
    hint = _return_hint(function, method)
    if hint is _MISSING or hint is Row:
        raise _no_type(function, "output_type", "its return type")
    return _checked(hint, f"the return type of '{function_name(function)}'")


def element_columns(function: Any, method: str, output_type: object | None) -> Schema:
    """Schema of the elements of ``flat_map``-like functions, from ``Iterable[T]`` and its kin."""
    if output_type is not None:
        return _checked(output_type, "output_type")
    hint = _return_hint(function, method)
    element = None if hint is _MISSING else element_hint(hint)
    if hint is not _MISSING and element is None and hint is not Any:
        name = function_name(function)
        raise SchemaError(
            f"'{name}' returns {getattr(hint, '__name__', hint)}, but must return an iterable of records; "
            "annotate Iterable[T] or add output_type="
        )
    if element is None or element is Row:
        raise _no_type(function, "output_type", "Iterable[T] as its return type")
    return _checked(element, f"the return type of '{function_name(function)}'")


def key_type(function: Any, declared: object | None) -> str:
    """DDL type of a key function's result."""
    if declared is not None:
        schema = _checked(declared, "key_type")
        if schema.scalar and schema.fields[0].type is not None:
            return schema.fields[0].type
        children = tuple((field.name, parse_type(field.type or "void")) for field in schema.fields)
        return DataType("struct", children=children).ddl()
    hint = _return_hint(function, "get_key")
    if hint is _MISSING:
        raise _no_type(function, "key_type", "its return type")
    try:
        return type_of_hint(hint).ddl()
    except SchemaError as exc:
        raise SchemaError(f"the return type of '{function_name(function)}': {exc.message}") from exc


def _checked(spec: object, what: str) -> Schema:
    try:
        return to_schema(spec)
    except SchemaError as exc:
        raise SchemaError(f"{what}: {exc.message}") from exc


def _no_type(function: Any, argument: str, annotation: str) -> SchemaError:
    return SchemaError(
        f"the type of what '{function_name(function)}' returns is not known; "
        f"annotate {annotation} or add {argument}='…' (for example {argument}='STRING')"
    )


def _return_hint(function: Any, method: str) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        # int, str, a NamedTuple or dataclass called as a function returns itself
        return function
    target = function
    if not (inspect.isroutine(function)):
        target = getattr(function, method, None) or type(function).__call__
    try:
        hints = typing.get_type_hints(target)
    except NameError as exc:
        raise SchemaError(f"the annotations of '{function_name(function)}' cannot be read: {exc}") from exc
    except TypeError:  # builtins have no annotations
        return _MISSING
    hint = hints.get("return", _MISSING)
    return _MISSING if hint is Any else hint
