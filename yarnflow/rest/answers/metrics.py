"""Metrics in the shapes of Flink's REST answers, and the few of them that other answers have.

Flink counterparts: ``Metric``, ``AggregatedMetric``, ``MutableIOMetrics``, ``IOMetricsInfo``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from yarnflow.core.metrics import MetricValue
from yarnflow.rest.answers.shapes import NAN, Kebab, NotANumber

AGGREGATIONS: Final = ("min", "max", "sum", "avg", "skew")
Values = Mapping[str, MetricValue]


class Metric(msgspec.Struct, omit_defaults=True):
    """Name of a metric, with its value where it was asked for."""

    id: str
    value: str | None = None


class AggregatedMetric(msgspec.Struct, omit_defaults=True):
    """Of several; only the aggregations that were asked for, none where names were."""

    id: str
    min: float | None = None
    max: float | None = None
    avg: float | None = None
    sum: float | None = None
    #: average deviation from the average, in percent of it
    skew: float | None = None


class IoMetrics(Kebab):
    """What went in and out; ``…-complete`` says whether all of it is known."""

    read_bytes: int
    read_bytes_complete: bool
    write_bytes: int
    write_bytes_complete: bool
    read_records: int
    read_records_complete: bool
    write_records: int
    write_records_complete: bool
    accumulated_backpressured_time: int
    accumulated_idle_time: int
    accumulated_busy_time: float | NotANumber


def names(values: Iterable[Values]) -> list[Metric]:
    """All there are, in order of their names."""
    return [Metric(name) for name in sorted({name for each in values for name in each})]


def chosen(values: Values, wanted: Sequence[str]) -> list[Metric]:
    """Those asked for that there are."""
    return [Metric(name, str(values[name])) for name in dict.fromkeys(wanted) if name in values]


def aggregated(
    values: Sequence[Values], wanted: Sequence[str], aggregations: Sequence[str]
) -> list[AggregatedMetric]:
    """Numbers of several places put together; a metric nobody has, or that is a text, is left out.

    Parameters
    ----------
    aggregations : sequence of str
        Empty = all.
    """
    found = []
    for name in dict.fromkeys(wanted):
        numbers = [float(each[name]) for each in values if isinstance(each.get(name), (int, float))]
        if not numbers:
            continue
        total = sum(numbers)
        made = {
            "min": min(numbers),
            "max": max(numbers),
            "avg": total / len(numbers),
            "sum": total,
            "skew": _skew(numbers),
        }
        found.append(AggregatedMetric(name, **{key: made[key] for key in aggregations or made}))
    return found


def io_metrics(subtasks: Sequence[Values], whole: Values | None = None) -> IoMetrics:
    """Of one vertex or subtask.

    Parameters
    ----------
    subtasks : sequence of mapping
        Metrics of each subtask.
    whole : mapping, optional
        Of the vertex as a whole: what is said there counts.
    """

    def total(name: str) -> tuple[float, bool]:
        if whole and isinstance(value := whole.get(name), (int, float)):
            return value, True
        known = [value for each in subtasks if isinstance(value := each.get(name), (int, float))]
        return sum(known), bool(subtasks) and len(known) == len(subtasks)

    (read_bytes, read_bytes_known), (write_bytes, write_bytes_known) = (
        total("numBytesIn"), total("numBytesOut")
    )  # fmt: skip
    (read, read_known), (written, written_known) = total("numRecordsIn"), total("numRecordsOut")
    busy, busy_known = total("accumulateBusyTimeMs")
    return IoMetrics(
        read_bytes=int(read_bytes),
        read_bytes_complete=read_bytes_known,
        write_bytes=int(write_bytes),
        write_bytes_complete=write_bytes_known,
        read_records=int(read),
        read_records_complete=read_known,
        write_records=int(written),
        write_records_complete=written_known,
        accumulated_backpressured_time=int(total("accumulateBackPressuredTimeMs")[0]),
        accumulated_idle_time=int(total("accumulateIdleTimeMs")[0]),
        accumulated_busy_time=float(busy) if busy_known else NAN,
    )


def _skew(numbers: Sequence[float]) -> float:
    average = sum(numbers) / len(numbers)
    if average == 0:
        return 0.0
    deviation = sum(abs(average - number) for number in numbers) / len(numbers)
    return min(deviation / average * 100, 100.0)
