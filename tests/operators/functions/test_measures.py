"""What tasks tell is what was added since they told last, and sums of it are sums over all tasks."""

from __future__ import annotations

from yarnflow.operators.functions.measures import (
    MAX_USER_METRICS,
    Measures,
    OperatorMeasures,
    Spread,
    UserMetricsReader,
    add_measures,
)
from yarnflow.operators.functions.metrics import RecordedMetrics


def read(reader: UserMetricsReader) -> OperatorMeasures:
    measures = OperatorMeasures()
    reader.read_into(measures)
    return measures


def test_counts_are_told_as_what_was_added() -> None:
    metrics = RecordedMetrics()
    reader = UserMetricsReader(metrics)
    counter, meter = metrics.add_group("a").counter("seen"), metrics.meter("odd", 5)
    counter.inc(3)
    meter.mark_event(2)
    first = read(reader)
    assert (first.counters, first.meters, first.spans_s) == ({"a.seen": 3}, {"odd": 2}, {"odd": 5})
    counter.dec()
    assert read(reader).counters == {"a.seen": -1}
    assert read(reader).counters == {"a.seen": 0}


def test_a_distribution_without_news_is_not_told() -> None:
    metrics = RecordedMetrics()
    reader, sizes = UserMetricsReader(metrics), metrics.distribution("sizes")
    assert read(reader).distributions == {}
    sizes.update(4)
    sizes.update(2)
    assert read(reader).distributions == {"sizes": Spread(2, 6, 2, 4)}
    assert read(reader).distributions == {}
    sizes.update(9)
    assert read(reader).distributions == {"sizes": Spread(1, 9, 2, 9)}


def test_a_gauge_that_raises_or_gives_no_number_is_left_out() -> None:
    metrics = RecordedMetrics()
    metrics.gauge("broken", lambda: 1 // 0)
    metrics.gauge("text", lambda: "much")  # type: ignore[arg-type, return-value]
    metrics.gauge("good", lambda: 7)
    assert read(UserMetricsReader(metrics)).gauges == {"good": 7}


def test_a_function_cannot_have_any_number_of_metrics() -> None:
    metrics = RecordedMetrics()
    for number in range(MAX_USER_METRICS + 5):
        metrics.counter(f"c{number}").inc()
    assert len(read(UserMetricsReader(metrics)).counters) == MAX_USER_METRICS


def test_two_workers_of_one_subtask_add_up() -> None:
    sums: Measures = {}
    for worker in range(2):
        metrics = RecordedMetrics()
        metrics.counter("seen").inc(5)
        metrics.gauge("last", lambda worker=worker: worker)  # type: ignore[misc]
        metrics.distribution("sizes").update(10 + worker)
        told = OperatorMeasures(elements_in=5, elements_out=2, busy_ns=7, watermark_ms=100 - worker)
        UserMetricsReader(metrics).read_into(told)
        add_measures(sums, {(1, 0): told})
    measures = sums[1, 0]
    assert (measures.elements_in, measures.elements_out, measures.busy_ns) == (10, 4, 14)
    assert measures.watermark_ms == 100, "it never goes back"
    assert measures.counters == {"seen": 10}
    assert measures.gauges == {"last": 1}, "that of the worker that told last"
    assert measures.distributions == {"sizes": Spread(2, 21, 10, 11)}


def test_what_was_told_is_not_changed_by_adding() -> None:
    told = OperatorMeasures(elements_in=1, counters={"seen": 1})
    sums: Measures = {}
    add_measures(add_measures(sums, {(1, 0): told}), {(1, 0): told})
    assert told.counters == {"seen": 1} and sums[1, 0].counters == {"seen": 2}
