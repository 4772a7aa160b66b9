"""What the operators of a level counted in one task, on its way to the driver, and sums of that.

A task tells what was added since the last one told, because Spark gives the work of a subtask now to this
worker and now to that.  Values that are no counts are those of the worker that told them last.

Flink counterparts: ``TaskIOMetricGroup``, ``OperatorMetricGroup``.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from yarnflow.operators.elements import MIN_WATERMARK_MS
from yarnflow.operators.functions.metrics import (
    Counter,
    Distribution,
    GaugeMetric,
    Meter,
    RecordedMetrics,
)

#: metrics that the functions of one operator may have; further ones are left out
MAX_USER_METRICS: Final = 200
#: node id, number of the subtask
Place = tuple[int, int]


def source_node(number: int) -> int:
    """Stands for the node id of a query's source, by its number."""
    return -1 - number


@dataclass(frozen=True, slots=True)
class Spread:
    """Statistics of the numbers of a distribution."""

    count: int
    sum: int | float
    min: int | float
    max: int | float

    def with_later(self, later: Spread) -> Spread:
        """Both together."""
        return Spread(
            self.count + later.count,
            self.sum + later.sum,
            min(self.min, later.min),
            max(self.max, later.max),
        )


@dataclass(slots=True)
class OperatorMeasures:
    """Of one operator in one subtask."""

    elements_in: int = 0
    elements_out: int = 0
    #: that the level worked, for all its operators
    busy_ns: int = 0
    watermark_ms: int = MIN_WATERMARK_MS
    #: of a source: messages that could not be read, or not all of them
    errors: int = 0
    #: the user's, by name: ``group.group.name``
    counters: dict[str, int | float] = field(default_factory=dict)
    #: name → events
    meters: dict[str, int | float] = field(default_factory=dict)
    #: name → seconds over which its rate is wanted
    spans_s: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, int | float] = field(default_factory=dict)
    distributions: dict[str, Spread] = field(default_factory=dict)

    def add(self, later: OperatorMeasures) -> None:
        """Take over what was told later."""
        self.elements_in += later.elements_in
        self.elements_out += later.elements_out
        self.errors += later.errors
        self.busy_ns += later.busy_ns
        self.watermark_ms = max(self.watermark_ms, later.watermark_ms)
        for mine, theirs in ((self.counters, later.counters), (self.meters, later.meters)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.spans_s.update(later.spans_s)
        self.gauges.update(later.gauges)
        for name, spread in later.distributions.items():
            known = self.distributions.get(name)
            self.distributions[name] = spread if known is None else known.with_later(spread)


Measures = dict[Place, OperatorMeasures]


def add_measures(sums: Measures, later: Mapping[Place, OperatorMeasures]) -> Measures:
    """Take over what was told later, in place."""
    for place, measures in later.items():
        known = sums.get(place)
        if known is None:
            known = sums[place] = OperatorMeasures()
        known.add(measures)
    return sums


class UserMetricsReader:
    """What the functions of one opened operator added since the last look.

    Parameters
    ----------
    metrics : RecordedMetrics
        Where they register them.
    """

    def __init__(self, metrics: RecordedMetrics) -> None:
        self._metrics = metrics
        self._told: dict[str, tuple[int, int]] = {}

    def read_into(self, measures: OperatorMeasures) -> None:
        """Add it; a gauge that raises is left out, as a metric must not end the job."""
        if self._metrics.is_empty:
            return
        for number, (name, metric) in enumerate(self._metrics.items()):
            if number == MAX_USER_METRICS:
                return
            if isinstance(metric, Counter):
                measures.counters[name] = self._news(name, metric.get_count())
            elif isinstance(metric, Meter):
                measures.meters[name] = self._news(name, metric.get_count())
                measures.spans_s[name] = metric.time_span_s
            elif isinstance(metric, Distribution):
                count, total = self._told.get(name, (0, 0))
                self._told[name] = metric.count, metric.sum
                least, most, added = _number(metric.min), _number(metric.max), _number(metric.sum - total)
                if least is not None and most is not None and added is not None and metric.count > count:
                    measures.distributions[name] = Spread(metric.count - count, added, least, most)
            elif isinstance(metric, GaugeMetric):
                value = _read(metric)
                if value is not None:
                    measures.gauges[name] = value

    def _news(self, name: str, count: int) -> int | float:
        before, _ = self._told.get(name, (0, 0))
        self._told[name] = count, 0
        return _number(count - before) or 0


def _read(gauge: GaugeMetric) -> int | float | None:
    try:
        value = gauge.read()
    except Exception:  # whatever the user's function raises
        return None
    return _number(value)


def _number(value: Any) -> int | float | None:
    """PyFlink's metrics are whole numbers; anything else that is a number, such as NumPy's, is taken, too."""
    if value is None or isinstance(value, (str, bytes)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        pass
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
