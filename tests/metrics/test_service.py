"""The parts together: what cannot be had is left out, and wrong options are found early."""

from __future__ import annotations

import sys

import pytest

from tests.metrics.cluster import Cluster, OwnProcess
from yarnflow.config.configuration import Configuration
from yarnflow.errors import InvalidOption
from yarnflow.metrics.service import MetricsService, check_options
from yarnflow.metrics.store import MetricStore
from yarnflow.testing.runtime import ManualClock


def service(cluster: Cluster, **options: str) -> MetricsService:
    configuration = Configuration.from_dict(options, "test")
    return MetricsService(configuration, cluster, MetricStore(), OwnProcess(), ManualClock(10_000))


def test_a_reporter_that_cannot_start_keeps_no_cluster_from_its_jobs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "yarnflow.metrics.reporters.prometheus", None)
    made = service(Cluster(), **{"metrics.reporter.prom.factory.class": "prometheus"})
    made.start()
    made.stop()
    assert "pip install 'yarnflow[prometheus]'" in caplog.text


def test_wrong_options_are_found_before_there_is_a_leader() -> None:
    wrong = Configuration.from_dict({"metrics.reporter.prom.factory.class": "jmx"}, "test")
    with pytest.raises(InvalidOption, match="expected one of"):
        check_options(wrong)
    check_options(Configuration.empty())


def test_a_cluster_that_cannot_be_looked_at_is_looked_at_again(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Cluster):
        looks = 0

        def jobs(self) -> list[object]:  # type: ignore[override]
            self.looks += 1
            raise RuntimeError("not now")

    cluster = Broken()
    made = service(cluster)
    made.look()
    made.look()
    assert cluster.looks == 4, "to tidy and to alert, twice"
    assert "could not be looked at" in caplog.text
