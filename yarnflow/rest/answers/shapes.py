"""Parts that several answers have, and numbers made of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from yarnflow.core.states import ExecutionState


class Kebab(msgspec.Struct, rename="kebab"):
    """Names with hyphens, as most of Flink's answers."""


class Camel(msgspec.Struct, rename="camel"):
    """Names with capitals, as Flink's answers about TaskManagers."""


class Snake(msgspec.Struct):
    """Names with underscores, as Flink's answers about checkpoints."""


class Empty(msgspec.Struct):
    """``{}``."""


#: Flink gives its quantiles no number when there is nothing to take them of
NotANumber = Literal["NaN"]
NAN: Final[NotANumber] = "NaN"
_STATES: Final = tuple(state.name for state in ExecutionState)
_LOWER_STATES: Final = {name: name.lower() for name in _STATES}


class Statistics(Snake):
    """Of several subtasks; null where nobody has measured.  Flink: ``MetricStatistics``."""

    min: int | None = None
    max: int | None = None
    avg: int | None = None
    sum: int | None = None
    median: int | None = None
    p25: int | None = None
    p75: int | None = None
    p95: int | None = None


def statistics(values: Sequence[float]) -> Statistics:
    """Of any number of values."""
    if not values:
        return Statistics()
    ordered = sorted(int(value) for value in values)
    return Statistics(
        min=ordered[0],
        max=ordered[-1],
        avg=sum(ordered) // len(ordered),
        sum=sum(ordered),
        median=quantile(ordered, 0.5),
        p25=quantile(ordered, 0.25),
        p75=quantile(ordered, 0.75),
        p95=quantile(ordered, 0.95),
    )


def quantile(ordered: Sequence[int], part: float) -> int:
    """The smallest value that so large a part does not exceed."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def duration_ms(start_ms: int, end_ms: int, now_ms: int) -> int:
    """-1 = it has not begun."""
    if start_ms < 0:
        return -1
    return max(0, (now_ms if end_ms < 0 else end_ms) - start_ms)


def state_counts(states: Iterable[ExecutionState]) -> dict[str, int]:
    """Name of each state → how many are in it."""
    # made for each of a thousand jobs: members of enums are slow as keys
    counts = dict.fromkeys(_STATES, 0)
    for state in states:
        counts[state.name] += 1
    return counts


def lower_state_counts(states: Iterable[ExecutionState]) -> dict[str, int]:
    """The same with names in lower case."""
    counts = dict.fromkeys(_LOWER_STATES.values(), 0)
    for state in states:
        counts[_LOWER_STATES[state.name]] += 1
    return counts
