"""Dumps under construction: values by scope and operator, and a bound on their number."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Final

from yarnflow.core.ids import VertexId
from yarnflow.core.messages import MetricDump
from yarnflow.core.metrics import MetricValue, ScopeKind

logger = logging.getLogger(__name__)

#: values of one report, and about what they take on the wire: the report is a heartbeat, too
MAX_VALUES: Final = 20_000
MAX_BYTES: Final = 1024 * 1024
#: of a value and what frames its name
_VALUE_BYTES: Final = 12

#: of a name; a longer one is cut
_MAX_NAME: Final = 300
#: of whole numbers on the wire
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1

_Key = tuple[ScopeKind, VertexId, int, str]


class DumpBuilder:
    """Collects values; thread-confined."""

    def __init__(self) -> None:
        self._values: dict[_Key, dict[str, MetricValue]] = {}

    def job(self, name: str, value: MetricValue) -> None:
        """Of the job as a whole."""
        self._put((ScopeKind.JOB, VertexId(""), -1, ""), name, value)

    def vertex(
        self,
        vertex_id: VertexId,
        name: str,
        value: int | float | None,
        together: Callable[[tuple[int | float, int | float]], int | float] = sum,
    ) -> None:
        """Of a vertex as a whole; None = it is not known.

        ``together`` makes one value of those of several queries that share it.
        """
        if value is None:
            return
        values = self._values.setdefault((ScopeKind.VERTEX, vertex_id, -1, ""), {})
        known = values.get(name)
        values[name] = value if not isinstance(known, (int, float)) else together((known, value))

    def subtask(
        self, vertex_id: VertexId, subtask: int, name: str, value: int | float | None, operator: str = ""
    ) -> None:
        """Of a subtask, or of one operator in it; None = it is not known."""
        if value is not None:
            self._put((ScopeKind.SUBTASK, vertex_id, subtask, operator), name, value)

    def _put(self, key: _Key, name: str, value: MetricValue) -> None:
        self._values.setdefault(key, {})[name] = value

    def dumps(self) -> tuple[MetricDump, ...]:
        """All of it; what is too much is left out, operators of subtasks first."""
        found: list[MetricDump] = []
        room, room_bytes = MAX_VALUES, MAX_BYTES
        for key in sorted(self._values, key=lambda key: (key[3] != "", key[2])):
            values = self._values[key]
            size = sum(_VALUE_BYTES + len(_name(name).encode()) for name in values)
            if len(values) > room or size > room_bytes:
                logger.warning("Too many metric values for a report; the rest is left out.")
                break
            room -= len(values)
            room_bytes -= size
            found.append(_dump(key, values))
        return tuple(found)


def _dump(key: _Key, values: Mapping[str, MetricValue]) -> MetricDump:
    """Values as they can travel; a user's function may give any number and any name."""
    counts: dict[str, int] = {}
    rates: dict[str, float] = {}
    for name, value in values.items():
        shown = _name(name)
        if isinstance(value, int) and _SMALLEST <= value <= _LARGEST:
            counts[shown] = value
        elif isinstance(value, (int, float)) and abs(value) <= sys.float_info.max:
            rates[shown] = float(value)
    kind, vertex_id, subtask, operator = key
    return MetricDump(kind, vertex_id, subtask, operator, counts, rates)


def _name(name: str) -> str:
    short = name if len(name) <= _MAX_NAME else name[:_MAX_NAME]
    return short if short.isascii() else short.encode(errors="replace").decode()
