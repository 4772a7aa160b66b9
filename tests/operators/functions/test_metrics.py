"""Metrics of users' functions as the runner reads them."""

from __future__ import annotations

import pytest

from yarnflow.operators.functions.metrics import RecordedMetrics


def test_all_kinds_are_read_by_their_names() -> None:
    metrics = RecordedMetrics()
    counter = metrics.counter("records")
    counter.inc()
    counter.inc(5)
    counter.dec(2)
    metrics.gauge("level", lambda: 7)
    metrics.add_group("io").meter("events").mark_event(3)
    sizes = metrics.add_group("table", "users").distribution("sizes")
    for size in (3, 1, 8):
        sizes.update(size)
    assert metrics.read() == {
        "records": 4,
        "level": 7,
        "io.events": 3,
        "table.users.sizes": {"count": 3, "sum": 12, "min": 1, "max": 8},
    }
    assert metrics.add_group("table", "users").variables == {"table": "users"}


def test_one_name_is_one_metric() -> None:
    metrics = RecordedMetrics()
    assert metrics.counter("n") is metrics.counter("n")
    assert metrics.add_group("g") is metrics.add_group("g")
    with pytest.raises(ValueError, match="metric 'n' is a Counter already, so it cannot be a Meter"):
        metrics.meter("n")


def test_a_gauge_that_fails_is_left_out() -> None:
    metrics = RecordedMetrics()
    metrics.gauge("broken", lambda: 1 // 0)
    metrics.counter("n")
    assert metrics.read() == {"n": 0}
