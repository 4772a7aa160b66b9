"""Between the values of ``core.messages`` and the generated Thrift structs.

One mechanism for every struct, driven by the dataclass's fields and type hints: class ``X`` is
struct ``TX``, field ``start_time_ms`` is ``startTimeMs``.  Converters are built once per type
and cached.  Total: every message class converts both ways; what cannot be converted raises
:class:`RpcProtocolError`, never anything else.

A field missing on the wire takes the dataclass's default; one without a default is an error.
Never looks at what a message means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum, IntEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from yarnflow.errors import RpcProtocolError
from yarnflow.rpc._gen.types import ttypes

M = TypeVar("M")

#: total on values of its type
Convert = Callable[[Any], Any]
_VERSIONS: Final = "check that both processes are of the same yarnflow version"


class Converter(NamedTuple):
    """Both directions for one type; ``None`` stands for "as it is"."""

    to_thrift: Convert | None
    from_thrift: Convert | None


def camel(name: str) -> str:
    """``start_time_ms`` → ``startTimeMs``."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def struct_for(cls: type) -> type:
    """Generated class of a message class or enum.

    Raises
    ------
    RpcProtocolError
        ``thrift/types.thrift`` has no such struct.
    """
    found = getattr(ttypes, f"T{cls.__name__}", None)
    if not isinstance(found, type):
        raise RpcProtocolError(
            f"thrift/types.thrift has no T{cls.__name__}; add it and run scripts/gen-thrift"
        )
    return found


def to_thrift(value: object) -> Any:
    """Generated struct with the content of a message.

    Raises
    ------
    RpcProtocolError
        ``value`` is no message, or a field holds something its type does not allow.
    """
    cls = type(value)
    convert = converter(cls).to_thrift if is_dataclass(cls) else None
    if convert is None:
        raise RpcProtocolError(f"{cls.__name__} is not a message of yarnflow.core.messages")
    return convert(value)


def from_thrift(cls: type[M], struct: object) -> M:
    """Message with the content of a generated struct.

    Raises
    ------
    RpcProtocolError
        A field without default is missing, or an enum's number is unknown here.
    """
    convert = converter(cast(type, cls)).from_thrift
    if convert is None:
        raise RpcProtocolError(f"{cls.__name__} is not a message of yarnflow.core.messages")
    return cast(M, convert(struct))


@cache
def converter(hint: object) -> Converter:
    """Converter for a type hint: scalar, NewType, enum, message, sequence, dict or optional."""
    supertype = getattr(hint, "__supertype__", None)
    if supertype is not None:
        return converter(supertype)
    if hint in (str, bytes, bool, int, float, None, NoneType):
        return Converter(None, None)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        inner = [arg for arg in args if arg is not NoneType]
        if len(inner) == 1 and len(args) == 2:
            return _optional(converter(inner[0]))
    if origin is Sequence or (origin is tuple and len(args) == 2 and args[1] is Ellipsis):
        return _sequence(converter(args[0]))
    if origin is dict:
        return _mapping(converter(args[0]), converter(args[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _message(hint)
    raise RpcProtocolError(f"Thrift messages cannot hold {hint!r}; see yarnflow/rpc/codec.py")


def _optional(inner: Converter) -> Converter:
    def wrap(convert: Convert | None) -> Convert | None:
        if convert is None:
            return None
        return lambda value: None if value is None else convert(value)

    return Converter(wrap(inner.to_thrift), wrap(inner.from_thrift))


def _sequence(inner: Converter) -> Converter:
    to_one, from_one = inner

    def to_list(values: Iterable[Any]) -> list[Any]:
        return list(values) if to_one is None else [to_one(value) for value in values]

    def to_tuple(values: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(values) if from_one is None else tuple([from_one(value) for value in values])

    return Converter(to_list, to_tuple)


def _mapping(key: Converter, item: Converter) -> Converter:
    if key != Converter(None, None):
        raise RpcProtocolError("Thrift messages hold only mappings with plain keys")
    to_one, from_one = item

    def to_map(values: Mapping[Any, Any]) -> dict[Any, Any]:
        return dict(values) if to_one is None else {k: to_one(v) for k, v in values.items()}

    def from_map(values: Mapping[Any, Any]) -> dict[Any, Any]:
        return dict(values) if from_one is None else {k: from_one(v) for k, v in values.items()}

    return Converter(to_map, from_map)


def _enum(cls: type[Enum]) -> Converter:
    generated = cast(type[IntEnum], struct_for(cls))
    if {m.name for m in cls} != {m.name for m in generated}:
        raise RpcProtocolError(
            f"thrift/types.thrift: T{cls.__name__} has other members than {cls.__name__}; "
            "correct it and run scripts/gen-thrift"
        )
    numbers = {member: generated[member.name].value for member in cls}
    members = {number: member for member, number in numbers.items()}

    def to_number(value: Any) -> int:
        try:
            return numbers[value]
        except (KeyError, TypeError):
            raise RpcProtocolError(f"{value!r} is no {cls.__name__}") from None

    def from_number(number: Any) -> Enum:
        try:
            return members[number]
        except KeyError:
            raise RpcProtocolError(f"{cls.__name__} has no member {number}; {_VERSIONS}") from None

    return Converter(to_number, from_number)


def _message(cls: type) -> Converter:
    struct = struct_for(cls)
    hints = get_type_hints(cls)
    declared = fields(cls)
    names = [camel(f.name) for f in declared]
    on_wire = [spec[2] for spec in getattr(struct, "thrift_spec") if spec is not None]
    if names != on_wire:
        raise RpcProtocolError(
            f"thrift/types.thrift: T{cls.__name__} has fields {on_wire}, {cls.__name__} needs {names}; "
            "correct it and run scripts/gen-thrift"
        )
    converters = [converter(hints[f.name]) for f in declared]
    writers = [(f.name, c.to_thrift) for f, c in zip(declared, converters)]
    readers = [(n, c.from_thrift, _default(f)) for n, c, f in zip(names, converters, declared)]

    def to_struct(value: Any) -> Any:
        if type(value) is not cls:
            raise RpcProtocolError(f"expected {cls.__name__}, got {type(value).__name__}")
        # same order as the struct's fields, checked above
        return struct(
            *[
                getattr(value, name) if convert is None else convert(getattr(value, name))
                for name, convert in writers
            ]
        )

    def from_struct(value: Any) -> Any:
        arguments = []
        for name, convert, default in readers:
            raw = getattr(value, name)
            if raw is not None:
                arguments.append(raw if convert is None else convert(raw))
            elif default is not None:
                arguments.append(default())
            else:
                raise RpcProtocolError(f"T{cls.__name__}.{name} is missing; {_VERSIONS}")
        return cls(*arguments)

    return Converter(to_struct, from_struct)


def _default(field: Field[Any]) -> Callable[[], Any] | None:
    if field.default_factory is not MISSING:
        return field.default_factory
    if field.default is not MISSING:
        value = field.default
        return lambda: value
    return None
