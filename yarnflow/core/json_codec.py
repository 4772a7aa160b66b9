"""Messages as one line of JSON, for pipes and files.

Dataclasses are objects with their own field names, enums their values, bytes base64, tuples arrays.
Never decides what a message means.  A field that is missing takes the dataclass's default and an
unknown one is ignored, so that processes of neighbouring versions understand each other.
"""

from __future__ import annotations

import json
import threading
from dataclasses import is_dataclass
from typing import Any, Final, TypeVar

import msgspec

from yarnflow.errors import RpcProtocolError

T = TypeVar("T")

_VERSIONS: Final = "check that both processes are of the same yarnflow version"
#: classes whose fields msgspec has looked up
_known: Final[set[type]] = set()
_looking_up: Final = threading.Lock()


def to_json(value: object) -> str:
    """Write a message as one line of JSON, in ASCII.

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
    raw = msgspec.to_builtins(value)
    try:
        # what could not be read is not written
        _converted(raw, type(value))
    except msgspec.ValidationError as error:
        raise TypeError(_said(type(value), error)) from None
    # the library's own encoder refuses half surrogates, which file names may hold
    return json.dumps(raw, separators=(",", ":"), ensure_ascii=True)


def from_json(cls: type[T], text: str) -> T:
    """Read a message written by :func:`to_json`.

    Raises
    ------
    RpcProtocolError
        The text is not JSON, or a field is missing or of another type; the message names it.
    """
    try:
        raw: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RpcProtocolError(f"{cls.__name__}: not JSON: {error}; {_VERSIONS}") from error
    try:
        return _converted(raw, cls)
    except msgspec.ValidationError as error:
        raise RpcProtocolError(f"{_said(cls, error)}; {_VERSIONS}") from error


def _converted(raw: Any, cls: type[T]) -> T:
    """The value as an instance of a class.

    msgspec 0.22 looks the fields of a dataclass up at its first use, and shows them to other threads before
    it has all of them, which ends the process.
    """
    if cls in _known:
        return msgspec.convert(raw, cls)
    with _looking_up:
        try:
            return msgspec.convert(raw, cls)
        finally:
            _known.add(cls)


def _said(cls: type, error: msgspec.ValidationError) -> str:
    """``Expected `int`, got `str` - at `$.index``` → ``SlotStatus.index: Expected `int`, got `str```."""
    what, _, where = str(error).partition(" - at `$")
    return f"{cls.__name__}{where.removesuffix('`')}: {what}"
