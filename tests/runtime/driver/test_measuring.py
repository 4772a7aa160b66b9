"""Measurements travel with reports, and never hold one up or end a job."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE
from tests.runtime.driver.driver_harness import Harness
from yarnflow.core.messages import DriverPhase, MetricDump
from yarnflow.core.metrics import ScopeKind
from yarnflow.runtime.driver.measuring import Measurements

ONE = (MetricDump(ScopeKind.JOB, counts={"a": 1}),)


@pytest.fixture
def harness() -> Iterator[Harness]:
    made = Harness()
    yield made
    made.close()


def test_each_measurement_is_sent_once() -> None:
    came = threading.Event()

    def measure(_last: bool) -> tuple[MetricDump, ...]:
        came.set()
        return ONE

    measurements = Measurements(measure, 1)
    measurements.start()
    assert came.wait(PATIENCE.thread_s)
    measurements.stop()
    measurements.last()
    assert measurements.take() == ONE
    assert measurements.take() == ()


def test_without_an_interval_nothing_is_measured() -> None:
    def measure(_last: bool) -> tuple[MetricDump, ...]:
        raise AssertionError("nobody asked")

    measurements = Measurements(measure, 0)
    measurements.start()
    measurements.last()
    assert measurements.take() == ()


def test_a_slow_measurement_holds_nobody_up() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def measure(_last: bool) -> tuple[MetricDump, ...]:
        begun.set()
        assert may_end.wait(PATIENCE.thread_s)
        return ONE

    measurements = Measurements(measure, 1)
    measurements.start()
    assert begun.wait(PATIENCE.thread_s)
    assert measurements.take() == ()
    measurements.stop()
    may_end.set()


def test_the_report_of_the_end_has_what_was_counted(harness: Harness) -> None:
    harness.start()
    harness.deploy(1)
    harness.backend.await_program(1).end()
    harness.job_master.await_phase(1, DriverPhase.FINISHED)
    sent = [dump for report in harness.job_master.reports for dump in report.metrics]
    assert [dump.counts["last"] for dump in sent][-1] == 1


def test_a_metric_that_cannot_be_measured_ends_nothing(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.backend.metrics_error = RuntimeError("Spark is not there")
    harness.start()
    harness.deploy(1)
    harness.backend.await_program(1).end()
    harness.job_master.await_phase(1, DriverPhase.FINISHED)
    assert not any(report.metrics for report in harness.job_master.reports)
    assert "could not be measured" in caplog.text
