"""JobGraph ↔ JSON text.

Decides nothing: it follows the type hints of the dataclasses, so a new operator needs no
code here.  Where a field may hold one of several classes the object carries its class name
as ``"type"``; bytes are base64.  Loading checks every value against its hint.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import json
import types
import typing
from typing import Any, Final, TypeVar, cast

from yarnflow.errors import GraphError
from yarnflow.graph.job_graph import JobGraph

#: of the format; raised when an old reader could not understand a new text
VERSION: Final = 1
_TAG: Final = "type"

T = TypeVar("T")


def job_graph_to_json(graph: JobGraph) -> str:
    """The text a :class:`~yarnflow.core.messages.JobSubmission` carries."""
    return json.dumps({"version": VERSION, "job_graph": to_plain(graph, JobGraph)}, separators=(",", ":"))


def job_graph_from_json(text: str) -> JobGraph:
    """Read what :func:`job_graph_to_json` wrote.

    Raises
    ------
    GraphError
        The text is no job graph of this version; the message says where it differs.
    """
    try:
        document = json.loads(text)
    except ValueError as exc:
        raise GraphError(f"the job graph is not JSON: {exc}") from exc
    version = document.get("version") if isinstance(document, dict) else None
    if version != VERSION:
        raise GraphError(f"the job graph has format version {version}, this yarnflow reads {VERSION}")
    return from_plain(document.get("job_graph"), JobGraph, "job_graph")


def to_plain(value: object, hint: object) -> Any:
    """A value of the hinted type as dicts, lists and scalars JSON can hold."""
    hint = _plain_hint(hint)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = _field_hints(cast(Any, type(value)))
        plain = {name: to_plain(getattr(value, name), field_hint) for name, field_hint in hints.items()}
        return {_TAG: type(value).__name__, **plain} if _is_choice(hint) else plain
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (tuple, list)):
        item_hints = _item_hints(_member_hint(hint, tuple), len(value))
        return [to_plain(item, item_hint) for item, item_hint in zip(value, item_hints, strict=True)]
    if isinstance(value, dict):
        _, element = typing.get_args(hint)
        return {str(key): to_plain(item, element) for key, item in value.items()}
    return value


def from_plain(plain: Any, hint: type[T], where: str) -> T:
    """The value :func:`to_plain` took apart.  Raises GraphError naming the place."""
    return cast(T, _load(plain, hint, where))


def _load(plain: Any, hint: Any, where: str) -> Any:
    hint = _plain_hint(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _load_choice(plain, arguments, where)
    if origin is tuple:
        items = _expect(plain, list, where)
        item_hints = _item_hints(hint, len(items))
        if len(item_hints) != len(items):
            raise GraphError(f"{where}: expected {len(item_hints)} values, found {len(items)}")
        pairs = enumerate(zip(items, item_hints, strict=True))
        return tuple(_load(item, item_hint, f"{where}[{i}]") for i, (item, item_hint) in pairs)
    if origin is dict:
        items = _expect(plain, dict, where).items()
        return {key: _load(item, arguments[1], f"{where}.{key}") for key, item in items}
    if hint is bytes:
        try:
            return base64.b64decode(_expect(plain, str, where), validate=True)
        except ValueError as exc:
            raise GraphError(f"{where}: not base64") from exc
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        try:
            return hint(plain)
        except ValueError as exc:
            raise GraphError(f"{where}: {plain!r} is no {hint.__name__}") from exc
    if dataclasses.is_dataclass(hint):
        return _load_dataclass(_expect(plain, dict, where), cast("type[Any]", hint), where)
    return _expect(plain, hint, where)


def _load_choice(plain: Any, members: tuple[Any, ...], where: str) -> Any:
    if plain is None and type(None) in members:
        return None
    classes = {m.__name__: m for m in members if isinstance(m, type) and dataclasses.is_dataclass(m)}
    if classes:
        tag = _expect(plain, dict, where).get(_TAG)
        if tag not in classes:
            raise GraphError(f"{where}: unknown {_TAG} {tag!r}")
        return _load_dataclass({k: v for k, v in plain.items() if k != _TAG}, classes[tag], where)
    (member,) = (m for m in members if m is not type(None))
    return _load(plain, member, where)


def _load_dataclass(plain: dict[str, Any], cls: type[Any], where: str) -> Any:
    hints = _field_hints(cast(Any, cls))
    unknown = sorted(plain.keys() - hints.keys())
    if unknown:
        raise GraphError(f"{where}: {cls.__name__} has no field {unknown[0]!r}")
    values = {name: _load(item, hints[name], f"{where}.{name}") for name, item in plain.items()}
    try:
        return cls(**values)
    except TypeError as exc:
        raise GraphError(f"{where}: {exc}") from exc


def _expect(plain: Any, kind: Any, where: str) -> Any:
    # bool is an int to isinstance, but not to a reader of the text
    if type(plain) is not kind and not (kind is float and type(plain) is int):
        raise GraphError(f"{where}: expected {kind.__name__}, found {type(plain).__name__}")
    return plain


def _item_hints(hint: Any, count: int) -> tuple[Any, ...]:
    """The hints of a tuple's items: ``tuple[T, ...]`` has any number of one, ``tuple[A, B]`` these."""
    arguments = typing.get_args(hint)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return (arguments[0],) * count
    return arguments


def _member_hint(hint: Any, origin: type) -> Any:
    """The member of a union that has this origin; a hint that is no union is its own."""
    members = [m for m in typing.get_args(hint) if typing.get_origin(m) is origin]
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return members[0] if is_union and members else hint


def _plain_hint(hint: Any) -> Any:
    while isinstance(hint, typing.NewType):
        hint = hint.__supertype__
    return hint


def _is_choice(hint: Any) -> bool:
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return False
    return any(dataclasses.is_dataclass(m) for m in typing.get_args(hint))


@functools.cache
def _field_hints(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}
