"""Short forms of :class:`ConfigOption` for the declarations under ``config/options``.

A default is written as a user would write it and goes through the option's own parser, so
that a wrong one cannot be imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from yarnflow.config import parsers
from yarnflow.config.option import ConfigOption, Scope

T = TypeVar("T")


def _option(
    key: str,
    default: str,
    scope: Scope,
    description: str,
    parse: Callable[[str], T],
    type_name: str,
    unit: str = "",
    deprecated_keys: tuple[str, ...] = (),
) -> ConfigOption[T]:
    return ConfigOption(
        key=key,
        parse=parse,
        default=parse(default),
        type_name=type_name,
        description=" ".join(description.split()),
        scope=scope,
        unit=unit,
        deprecated_keys=deprecated_keys,
        default_text=default,
    )


def duration(
    key: str,
    default: str,
    scope: Scope,
    description: str,
    at_least: str = "0 ms",
    deprecated_keys: tuple[str, ...] = (),
) -> ConfigOption[int]:
    """A duration; its value is in milliseconds."""
    parse = parsers.duration_at_least(at_least)
    return _option(key, default, scope, description, parse, "Duration", "ms", deprecated_keys)


def memory(
    key: str, default: str, scope: Scope, description: str, deprecated_keys: tuple[str, ...] = ()
) -> ConfigOption[int]:
    """A memory size; its value is in MiB."""
    return _option(key, default, scope, description, parsers.memory_mib, "MemorySize", "MiB", deprecated_keys)


def size(
    key: str, default: str, scope: Scope, description: str, deprecated_keys: tuple[str, ...] = ()
) -> ConfigOption[int]:
    """A size of data; its value is in bytes."""
    parse = parsers.memory_bytes
    return _option(key, default, scope, description, parse, "MemorySize", "bytes", deprecated_keys)


def integer(
    key: str,
    default: int,
    scope: Scope,
    description: str,
    at_least: int | None = None,
    at_most: int | None = None,
    deprecated_keys: tuple[str, ...] = (),
) -> ConfigOption[int]:
    """A whole number within bounds."""
    parse = parsers.integer(at_least, at_most)
    return _option(key, str(default), scope, description, parse, "Integer", "", deprecated_keys)


def decimal(
    key: str,
    default: float,
    scope: Scope,
    description: str,
    at_least: float = 0.0,
    below: float | None = None,
) -> ConfigOption[float]:
    """A decimal number within bounds."""
    return _option(key, str(default), scope, description, parsers.decimal(at_least, below), "Double")


def boolean(
    key: str, default: bool, scope: Scope, description: str, deprecated_keys: tuple[str, ...] = ()
) -> ConfigOption[bool]:
    """``true`` or ``false``."""
    default_text = str(default).lower()
    return _option(key, default_text, scope, description, parsers.boolean, "Boolean", "", deprecated_keys)


def string(
    key: str, default: str, scope: Scope, description: str, deprecated_keys: tuple[str, ...] = ()
) -> ConfigOption[str]:
    """Any text."""
    return _option(key, default, scope, description, parsers.text, "String", "", deprecated_keys)


def secret(key: str, default: str, scope: Scope, description: str) -> ConfigOption[str]:
    """Any text, which is shown to nobody."""
    return replace(string(key, default, scope, description), secret=True)


def ports(key: str, default: str, scope: Scope, description: str) -> ConfigOption[str]:
    """A port, a range or a list of them, kept as text; see ``parsers.port_candidates``."""
    return _option(key, default, scope, description, parsers.port_range, "Ports")


def choice(
    key: str,
    default: str,
    choices: tuple[str, ...],
    scope: Scope,
    description: str,
    older: Mapping[str, str] | None = None,
    deprecated_keys: tuple[str, ...] = (),
) -> ConfigOption[str]:
    """One word of a fixed set.

    Parameters
    ----------
    older : mapping, optional
        Earlier words of Flink's for some of them.
    """
    form = f"Enum ({', '.join(choices)})"
    parse = parsers.one_of(*choices, older=older or {})
    return _option(key, default, scope, description, parse, form, "", deprecated_keys)
