"""Sends metrics by OTLP over HTTP.  Flink counterpart: ``OpenTelemetryMetricReporter``.

The values come and go with jobs, and so do their names; so they are given to the library's exporter as they
are, not by its instruments, which are for ever.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from yarnflow import __version__
from yarnflow.config.secrets import masked_urls
from yarnflow.core.monitoring.declarations import METRICS_BY_NAME, MetricKind, Unit
from yarnflow.metrics.registry import LabeledMetrics
from yarnflow.metrics.reporters.names import otel_name
from yarnflow.metrics.reporters.settings import ReporterSettings

logger = logging.getLogger(__name__)

_TIMEOUT_S: Final = 10.0
#: in the codes of UCUM, as OpenTelemetry wants them
_UNITS: Final = {
    Unit.MILLISECONDS: "ms",
    Unit.NANOSECONDS: "ns",
    Unit.SECONDS: "s",
    Unit.BYTES: "By",
    Unit.EPOCH_MILLISECONDS: "ms",
    Unit.RECORDS: "{record}",
    Unit.RECORDS_PER_SECOND: "{record}/s",
    Unit.BYTES_PER_SECOND: "By/s",
    Unit.MILLISECONDS_PER_SECOND: "ms/s",
    Unit.SHARE: "1",
}


class OpenTelemetryReporter:
    """Sends all values every interval, in a thread of its own.

    Parameters
    ----------
    settings : ReporterSettings
    everything : callable
        All values there are now.
    """

    def __init__(
        self, settings: ReporterSettings, everything: Callable[[], Iterable[LabeledMetrics]]
    ) -> None:
        self._settings = settings
        self._everything = everything
        self._exporter = OTLPMetricExporter(endpoint=settings.endpoint, timeout=_TIMEOUT_S)
        attributes = {"service.name": settings.service_name, "service.version": settings.service_version}
        self._resource = Resource({key: value for key, value in attributes.items() if value})
        self._scope = InstrumentationScope("yarnflow", __version__)
        self._began_ns = time.time_ns()
        self._stopped = threading.Event()
        self._failing = False

    def start(self) -> None:
        """Send from now on."""
        threading.Thread(target=self._run, name="metrics-otel", daemon=True).start()
        logger.info("Metrics are sent to %s.", masked_urls(self._settings.endpoint))

    def stop(self) -> None:
        """Send no more; a request under way is not waited for."""
        self._stopped.set()
        self._exporter.shutdown(timeout_millis=0)

    def _run(self) -> None:
        while not self._stopped.wait(self._settings.interval_ms / 1000):
            try:
                failed = self._exporter.export(self.data()) is not MetricExportResult.SUCCESS
            except Exception:  # the cluster must not end for a metric
                logger.exception("The metrics could not be sent")
                failed = True
            if failed and not self._failing:
                logger.warning("Metrics do not reach %s.", masked_urls(self._settings.endpoint))
            self._failing = failed

    def data(self) -> MetricsData:
        """All values, as the exporter takes them."""
        now_ns = time.time_ns()
        points: dict[str, tuple[str, list[NumberDataPoint]]] = {}
        settings = self._settings
        for found in self._everything():
            attributes = settings.variables(found.variables)
            for name, value in found.metrics.values.items():
                if isinstance(value, str) or not settings.wants(name):
                    continue
                point = NumberDataPoint(attributes, self._began_ns, now_ns, value)
                points.setdefault(otel_name(found.metrics, name), (name, []))[1].append(point)
        metrics = [
            _metric(full_name, name, found_points) for full_name, (name, found_points) in points.items()
        ]
        scope = ScopeMetrics(self._scope, metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])


def _metric(full_name: str, name: str, points: list[NumberDataPoint]) -> Metric:
    declared = METRICS_BY_NAME.get(name)
    if declared is None:
        # of a user's function, where nobody knows whether it can go down
        return Metric(full_name, None, None, Gauge(points))
    unit = _UNITS.get(declared.unit)
    if declared.kind is not MetricKind.COUNTER:
        return Metric(full_name, declared.description, unit, Gauge(points))
    total = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Metric(full_name, declared.description, unit, total)
