"""Text → value for every kind of option.

Each parser takes what a user wrote and raises ``ValueError`` whose message is the expected
form; :class:`yarnflow.config.configuration.Configuration` adds key, value and source.

Flink counterparts: ``TimeUtils.parseDuration``, ``MemorySize.parse``, ``NetUtils.getPortRangeFromString``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

_NUMBER_AND_UNIT: Final = re.compile(r"\s*(\d+)\s*([A-Za-zµ]*)\s*")
_ISO_DURATION: Final = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<min>\d+)M)?(?:(?P<s>\d+(?:\.\d{1,3})?)S)?)?", re.IGNORECASE
)
_DURATION_UNITS_MS: Final = {
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1000),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
}
_MEMORY_UNITS_BYTES: Final = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kib", "kibibytes"), 1024),
    **dict.fromkeys(("m", "mb", "mib", "mebibytes"), 1024**2),
    **dict.fromkeys(("g", "gb", "gib", "gibibytes"), 1024**3),
    **dict.fromkeys(("t", "tb", "tib", "tebibytes"), 1024**4),
}
_MIB: Final = 1024**2


def text(value: str) -> str:
    """Anything, without surrounding blanks."""
    return value.strip()


def boolean(value: str) -> bool:
    """``true`` or ``false``, in any case."""
    lowered = value.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("true or false")
    return lowered == "true"


def integer(at_least: int | None = None, at_most: int | None = None) -> Callable[[str], int]:
    """Makes a parser for whole numbers within bounds (both included)."""
    if at_least is not None and at_most is not None:
        form = f"a whole number from {at_least} to {at_most}"
    elif at_least is not None:
        form = f"a whole number, {at_least} or more"
    else:
        form = "a whole number"

    def parse(value: str) -> int:
        try:
            number = int(value.strip())
        except ValueError:
            raise ValueError(form) from None
        if (at_least is not None and number < at_least) or (at_most is not None and number > at_most):
            raise ValueError(form)
        return number

    return parse


def decimal(at_least: float, below: float | None = None) -> Callable[[str], float]:
    """Makes a parser for decimal numbers, ``at_least`` included, ``below`` not."""
    form = f"a number, {at_least} or more" + ("" if below is None else f" and below {below}")

    def parse(value: str) -> float:
        try:
            number = float(value.strip())
        except ValueError:
            raise ValueError(form) from None
        # written so that NaN is refused as well
        if not (number >= at_least and (number < below if below is not None else number < float("inf"))):
            raise ValueError(form)
        return number

    return parse


def duration_ms(value: str) -> int:
    """``10 s``, ``5 min``, ``100ms``, ``1 h 30 min`` is not one; ISO ``PT1M30S`` is; no unit = ms."""
    form = "a duration such as 500 ms, 10 s, 5 min, 1 h, 2 d or PT1M30S"
    iso = _ISO_DURATION.fullmatch(value.strip())
    if iso and any(iso.groups()):
        whole = sum(int(iso[unit] or 0) * _DURATION_UNITS_MS[unit] for unit in ("d", "h", "min"))
        return whole + round(float(iso["s"] or 0) * 1000)
    found = _NUMBER_AND_UNIT.fullmatch(value)
    factor = _DURATION_UNITS_MS.get(found[2].lower()) if found else None
    if found is None or factor is None:
        raise ValueError(form)
    return int(found[1]) * factor


def duration_at_least(shortest: str) -> Callable[[str], int]:
    """Makes a parser for durations that are not shorter than one."""
    shortest_ms = duration_ms(shortest)

    def parse(value: str) -> int:
        found_ms = duration_ms(value)
        if found_ms < shortest_ms:
            raise ValueError(f"a duration of {shortest} or more")
        return found_ms

    return parse


def memory_bytes(value: str) -> int:
    """``1728m``, ``1 gb``, ``64 MiB``; units are powers of 1024, no unit = bytes."""
    found = _NUMBER_AND_UNIT.fullmatch(value)
    factor = _MEMORY_UNITS_BYTES.get(found[2].lower()) if found else None
    if found is None or factor is None:
        raise ValueError("a size such as 1728m, 1 gb or 64 MiB")
    return int(found[1]) * factor


def memory_mib(value: str) -> int:
    """A size rounded down to whole MiB; 0, or 1 MiB at least."""
    size = memory_bytes(value)
    # A number without its unit is bytes, and would be 0 MiB without a word.
    if 0 < size < _MIB:
        raise ValueError("a size of 1 MiB or more with its unit, such as 1728m or 1 gb")
    return size // _MIB


def one_of(*choices: str, older: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """Makes a parser for a fixed set of words, in any case; returns the declared spelling.

    Parameters
    ----------
    older : mapping, optional
        Other words, lower-case, that mean one of them.
    """
    by_lower = {**(older or {}), **{choice.lower(): choice for choice in choices}}

    def parse(value: str) -> str:
        found = by_lower.get(value.strip().lower())
        if found is None:
            raise ValueError(f"one of {', '.join(choices)}")
        return found

    return parse


def port_range(value: str) -> str:
    """``6123``, ``50100-50200``, ``50100,50200-50210`` or ``0`` (any); checked, returned as text."""
    stripped = value.strip()
    for _ in port_candidates(stripped):
        pass
    return stripped


def port_candidates(value: str) -> Iterator[int]:
    """The ports of a range text, in order.

    Raises
    ------
    ValueError
        Not of the form :func:`port_range` describes.
    """
    form = "a port (0 to 65535), a range such as 50100-50200, or several with commas"
    for part in value.split(","):
        found = re.fullmatch(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?", part)
        if found is None:
            raise ValueError(form)
        first = int(found[1])
        last = int(found[2] or found[1])
        if not first <= last <= 65535 or (found[2] and first == 0):
            raise ValueError(form)
        yield from range(first, last + 1)
