"""Messages as one line of JSON, for pipes and files.

Decides how each type of :mod:`yarnflow.core.messages` is written: dataclasses as objects with
their own field names, enums by name, bytes as base64, tuples as arrays.  Never decides what a
message means.  A field that is missing takes the dataclass's default and an unknown one is
ignored, so that processes of neighbouring versions understand each other.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import TypeVar, Union, cast, get_args, get_origin, get_type_hints

from yarnflow.errors import RpcProtocolError

T = TypeVar("T")

_Encode = Callable[[object], object]
#: (JSON value, path for messages) → value
_Decode = Callable[[object, str], object]


def to_json(value: object) -> str:
    """Write a message as one line of JSON.

    Parameters
    ----------
    value : object
        An instance of a dataclass of :mod:`yarnflow.core.messages`.

    Raises
    ------
    TypeError
        ``value`` is not a dataclass instance, or a field holds something of another type.
    """
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"to_json takes a dataclass instance, not {type(value).__name__}")
    return json.dumps(_codec(type(value))[0](value), separators=(",", ":"), ensure_ascii=True)


def from_json(cls: type[T], text: str) -> T:
    """Read a message written by :func:`to_json`.

    Raises
    ------
    RpcProtocolError
        The text is not JSON, or a field is missing or of another type; the message names it.
    """
    try:
        raw: object = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise RpcProtocolError(
            f"{cls.__name__}: not JSON: {exc}; check that both processes are of the same yarnflow version"
        ) from exc
    return cast(T, _codec(cast(type, cls))[1](raw, cls.__name__))


def _wrong(path: str, wanted: str, got: object) -> RpcProtocolError:
    return RpcProtocolError(
        f"{path}: expected {wanted}, got {type(got).__name__}; "
        "check that both processes are of the same yarnflow version"
    )


@cache
def _codec(hint: object) -> tuple[_Encode, _Decode]:
    supertype = getattr(hint, "__supertype__", None)
    if supertype is not None:
        return _codec(supertype)
    if hint in (str, bool, int, float):
        return _scalar(cast(type, hint))
    if hint is bytes:
        return _bytes()
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        inner = [arg for arg in args if arg is not NoneType]
        if len(inner) == 1 and len(args) == 2:
            return _optional(_codec(inner[0]))
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _tuple(_codec(args[0]))
    if origin is dict and _codec(args[0]) == _codec(str):
        return _dict(_codec(args[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _dataclass(hint)
    raise TypeError(f"messages cannot hold {hint!r}")


def _scalar(kind: type) -> tuple[_Encode, _Decode]:
    def check(value: object) -> object:
        # a bool is an int in Python, but not in a message
        if isinstance(value, bool) is not (kind is bool):
            raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
        if kind is float and isinstance(value, int):
            return float(value)
        if not isinstance(value, kind):
            raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
        return value

    def decode(raw: object, path: str) -> object:
        try:
            return check(raw)
        except TypeError:
            raise _wrong(path, kind.__name__, raw) from None

    return check, decode


def _bytes() -> tuple[_Encode, _Decode]:
    def encode(value: object) -> object:
        return base64.b64encode(cast(bytes, value)).decode("ascii")

    def decode(raw: object, path: str) -> object:
        if not isinstance(raw, str):
            raise _wrong(path, "base64 text", raw)
        try:
            return base64.b64decode(raw, validate=True)
        except (binascii.Error, ValueError):
            raise _wrong(path, "base64 text", raw) from None

    return encode, decode


def _optional(inner: tuple[_Encode, _Decode]) -> tuple[_Encode, _Decode]:
    encode_inner, decode_inner = inner

    def encode(value: object) -> object:
        return None if value is None else encode_inner(value)

    def decode(raw: object, path: str) -> object:
        return None if raw is None else decode_inner(raw, path)

    return encode, decode


def _tuple(inner: tuple[_Encode, _Decode]) -> tuple[_Encode, _Decode]:
    encode_inner, decode_inner = inner

    def encode(value: object) -> object:
        return [encode_inner(item) for item in cast(tuple[object, ...], value)]

    def decode(raw: object, path: str) -> object:
        if not isinstance(raw, list):
            raise _wrong(path, "an array", raw)
        return tuple(decode_inner(item, f"{path}[{index}]") for index, item in enumerate(raw))

    return encode, decode


def _dict(inner: tuple[_Encode, _Decode]) -> tuple[_Encode, _Decode]:
    encode_inner, decode_inner = inner

    def encode(value: object) -> object:
        return {key: encode_inner(item) for key, item in cast(Mapping[str, object], value).items()}

    def decode(raw: object, path: str) -> object:
        if not isinstance(raw, dict):
            raise _wrong(path, "an object", raw)
        return {key: decode_inner(item, f"{path}.{key}") for key, item in raw.items()}

    return encode, decode


def _enum(cls: type[Enum]) -> tuple[_Encode, _Decode]:
    by_name: Mapping[str, Enum] = cls.__members__

    def encode(value: object) -> object:
        return cast(Enum, value).name

    def decode(raw: object, path: str) -> object:
        member = by_name.get(raw) if isinstance(raw, str) else None
        if member is None:
            raise RpcProtocolError(
                f"{path}: {raw!r} is no {cls.__name__}; "
                "check that both processes are of the same yarnflow version"
            )
        return member

    return encode, decode


def _dataclass(cls: type) -> tuple[_Encode, _Decode]:
    hints = get_type_hints(cls)
    parts = [
        (f.name, *_codec(hints[f.name]), f.default is MISSING and f.default_factory is MISSING)
        for f in fields(cls)
    ]

    def encode(value: object) -> object:
        if type(value) is not cls:
            raise TypeError(f"expected {cls.__name__}, got {type(value).__name__}")
        return {name: encode_field(getattr(value, name)) for name, encode_field, _, _ in parts}

    def decode(raw: object, path: str) -> object:
        if not isinstance(raw, dict):
            raise _wrong(path, "an object", raw)
        found: dict[str, object] = {}
        for name, _, decode_field, required in parts:
            if name in raw:
                found[name] = decode_field(raw[name], f"{path}.{name}")
            elif required:
                raise RpcProtocolError(
                    f"{path}.{name}: missing; check that both processes are of the same yarnflow version"
                )
        return cls(**found)

    return encode, decode
