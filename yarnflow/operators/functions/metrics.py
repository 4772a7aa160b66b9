"""Metrics of users' functions: plain objects, read by the runner after each batch.

Names and signatures are PyFlink's.  Nothing here knows a clock: a meter's rate is made by who reads it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar


class Metric(ABC):
    """Base of the metrics."""


M = TypeVar("M", bound=Metric)


class Counter(Metric):
    """A number that is counted up and down."""

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Count up."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Count down."""
        self._count -= n

    def get_count(self) -> int:
        """The present number."""
        return self._count


class Meter(Metric):
    """Events, of which the rate is wanted."""

    def __init__(self, time_span_in_seconds: int = 60) -> None:
        self.time_span_s = time_span_in_seconds
        self._count = 0

    def mark_event(self, value: int = 1) -> None:
        """Note events."""
        self._count += value

    def get_count(self) -> int:
        """Events so far."""
        return self._count


class Distribution(Metric):
    """Statistics of whole numbers."""

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0
        self.min: int | None = None
        self.max: int | None = None

    def update(self, value: int) -> None:
        """Note a number."""
        self.count += 1
        self.sum += value
        self.min = value if self.min is None else min(self.min, value)
        self.max = value if self.max is None else max(self.max, value)


@dataclass(frozen=True, slots=True)
class GaugeMetric(Metric):
    """A number that is asked for when it is read."""

    read: Callable[[], int]


class MetricGroup(ABC):
    """A named group of metrics and further groups."""

    @abstractmethod
    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group in this one; with ``extra`` a key and the value of a user's variable."""

    @abstractmethod
    def counter(self, name: str) -> Counter:
        """A counter; the same one for the same name."""

    @abstractmethod
    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """A function that is asked when the metrics are read."""

    @abstractmethod
    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """A meter; the same one for the same name."""

    @abstractmethod
    def distribution(self, name: str) -> Distribution:
        """A distribution; the same one for the same name."""


@dataclass(slots=True)
class RecordedMetrics(MetricGroup):
    """A group that only remembers.

    Attributes
    ----------
    scope : tuple of str
        Names of the groups above and of this one.
    variables : dict
        Keys and values of ``add_group(key, value)`` above.
    metrics : dict
        Name → Counter, Meter, Distribution or GaugeMetric.
    groups : dict
        Name → group below.
    """

    scope: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)
    groups: dict[str, RecordedMetrics] = field(default_factory=dict)

    def add_group(self, name: str, extra: str | None = None) -> RecordedMetrics:
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = RecordedMetrics((*self.scope, name), dict(self.variables))
        if extra is None:
            return group
        value_group = group.groups.get(extra)
        if value_group is None:
            value_group = group.groups[extra] = RecordedMetrics(
                (*group.scope, extra), {**group.variables, name: extra}
            )
        return value_group

    def counter(self, name: str) -> Counter:
        return self._metric(name, Counter)

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        self.metrics[name] = GaugeMetric(obj)

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        return self._metric(name, Meter, time_span_in_seconds)

    def distribution(self, name: str) -> Distribution:
        return self._metric(name, Distribution)

    def _metric(self, name: str, kind: type[M], *arguments: Any) -> M:
        found = self.metrics.get(name)
        if found is None:
            made = self.metrics[name] = kind(*arguments)
            return made
        if not isinstance(found, kind):
            raise ValueError(
                f"metric '{name}' is a {type(found).__name__} already, so it cannot be a {kind.__name__}"
            )
        return found

    @property
    def is_empty(self) -> bool:
        """Nothing was registered."""
        return not self.metrics and not self.groups

    def items(self) -> Iterator[tuple[str, Metric]]:
        """All metrics of this group and those below it, by ``group.group.name``."""
        for name, metric in self.metrics.items():
            # a name that is no text must not end the job
            yield ".".join(map(str, (*self.scope, name))), metric
        for group in self.groups.values():
            yield from group.items()

    def read(self) -> dict[str, Any]:
        """Values by ``group.group.name``: numbers of counters, meters and gauges, dicts of distributions.

        A gauge that raises is left out: a metric must not end the job.
        """
        found: dict[str, Any] = {}
        for full_name, metric in self.items():
            if isinstance(metric, (Counter, Meter)):
                found[full_name] = metric.get_count()
            elif isinstance(metric, Distribution):
                found[full_name] = {
                    "count": metric.count, "sum": metric.sum, "min": metric.min, "max": metric.max
                }  # fmt: skip
            elif isinstance(metric, GaugeMetric):
                try:
                    found[full_name] = metric.read()
                except Exception:  # whatever the user's function raises
                    continue
        return found
