"""Dumps under construction: values by scope and operator, and a bound on their number."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final

from yarnflow.core.ids import VertexId
from yarnflow.core.messages import MetricDump
from yarnflow.core.metrics import MetricValue, ScopeKind

logger = logging.getLogger(__name__)

#: values of one report: some hundred KiB on the wire
MAX_VALUES: Final = 20_000

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
        value: int | float,
        together: Callable[[tuple[int | float, int | float]], int | float] = sum,
    ) -> None:
        """Of a vertex as a whole; ``together`` makes one value of those of several queries that share it."""
        values = self._values.setdefault((ScopeKind.VERTEX, vertex_id, -1, ""), {})
        known = values.get(name)
        values[name] = value if not isinstance(known, (int, float)) else together((known, value))

    def subtask(
        self, vertex_id: VertexId, subtask: int, name: str, value: MetricValue, operator: str = ""
    ) -> None:
        """Of a subtask, or of one operator in it."""
        self._put((ScopeKind.SUBTASK, vertex_id, subtask, operator), name, value)

    def _put(self, key: _Key, name: str, value: MetricValue) -> None:
        self._values.setdefault(key, {})[name] = value

    def dumps(self) -> tuple[MetricDump, ...]:
        """All of it; what is too much is left out, operators of subtasks first."""
        found: list[MetricDump] = []
        room = MAX_VALUES
        for key in sorted(self._values, key=lambda key: (key[3] != "", key[2])):
            values = self._values[key]
            if len(values) > room:
                logger.warning("More than %d metric values; the rest is left out.", MAX_VALUES)
                break
            room -= len(values)
            kind, vertex_id, subtask, operator = key
            found.append(
                MetricDump(
                    kind,
                    vertex_id,
                    subtask,
                    operator,
                    {name: value for name, value in values.items() if isinstance(value, int)},
                    {
                        name: value
                        for name, value in values.items()
                        if isinstance(value, float) and math.isfinite(value)
                    },
                )
            )
        return tuple(found)
