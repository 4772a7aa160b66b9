"""The metrics of one leadership: registry, reporters and alerts, with the thread that keeps them.

Flink counterpart: ``MetricRegistryImpl`` with its reporters.
"""

from __future__ import annotations

import logging
import threading
from typing import Final, Protocol

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import metrics as metric_options
from yarnflow.core.ports import Clock
from yarnflow.errors import ConfigError, YarnflowError
from yarnflow.metrics.alerting import Alerting, alert_settings, webhook_of
from yarnflow.metrics.registry import ClusterKnowledge, MetricRegistry, OwnProcess
from yarnflow.metrics.reporters.settings import ReporterKind, ReporterSettings, reporter_settings
from yarnflow.metrics.store import MetricStore

logger = logging.getLogger(__name__)

#: between two looks, where nothing is measured
_LOOK_MS: Final = 10_000


class Reporter(Protocol):
    """Tells others of the metrics."""

    def start(self) -> None:
        """Begin; raises YarnflowError when that cannot be."""

    def stop(self) -> None:
        """End."""


def check_options(configuration: Configuration) -> None:
    """Find wrong options before there is a leader.

    Raises
    ------
    ConfigError
        Names the option.
    """
    reporter_settings(configuration)
    webhook_of(configuration)


class MetricsService:
    """Of one leadership.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    cluster : ClusterKnowledge
    store : MetricStore
        What was reported.
    own_process : OwnProcess
    clock : Clock
    bind_host : str
        Address that the JobManager listens at; empty = every interface.

    Raises
    ------
    ConfigError
        A reporter or the webhook is not configured as it must be.
    """

    def __init__(
        self,
        configuration: Configuration,
        cluster: ClusterKnowledge,
        store: MetricStore,
        own_process: OwnProcess,
        clock: Clock,
        bind_host: str = "",
    ) -> None:
        get = configuration.get
        self.registry = MetricRegistry(
            store, cluster, own_process, clock, get(cluster_options.JOBMANAGER_RPC_ADDRESS)
        )
        self._webhook = webhook_of(configuration)
        self._alerting = Alerting(
            alert_settings(configuration),
            cluster,
            self.registry,
            clock,
            get(cluster_options.CLUSTER_ID),
            self._webhook.send if self._webhook is not None else lambda _content: None,
        )
        self._interval_s = (get(metric_options.UPDATE_INTERVAL_MS) or _LOOK_MS) / 1000
        self._stopped = threading.Event()
        self._settings = reporter_settings(configuration)
        self._bind_host = bind_host
        self._started: list[Reporter] = []

    def start(self) -> None:
        """Begin; a reporter that cannot is left out and named in the log, as the jobs come first."""
        threading.Thread(target=self._run, name="metrics", daemon=True).start()
        if self._webhook is not None:
            self._webhook.start()
        for settings in self._settings:
            try:
                reporter = make_reporter(settings, self.registry, self._bind_host)
                reporter.start()
                self._started.append(reporter)
            except YarnflowError as error:
                logger.error("%s", error)

    def stop(self) -> None:
        """End."""
        self._stopped.set()
        if self._webhook is not None:
            self._webhook.stop()
        for reporter in self._started:
            reporter.stop()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            self.look()

    def look(self) -> None:
        """Forget what is gone, and look whether somebody has to be told of something."""
        for step in (self.registry.tidy, self._alerting.look):
            try:
                step()
            except Exception:  # the cluster must not end for a metric
                logger.exception("The metrics could not be looked at")


def make_reporter(settings: ReporterSettings, registry: MetricRegistry, bind_host: str) -> Reporter:
    """One reporter; its library is imported here.

    Raises
    ------
    ConfigError
        The library is not installed.
    """
    try:
        if settings.kind is ReporterKind.PROMETHEUS:
            from yarnflow.metrics.reporters.prometheus import PrometheusReporter

            return PrometheusReporter(settings, registry.everything, bind_host)
        from yarnflow.metrics.reporters.otel import OpenTelemetryReporter

        return OpenTelemetryReporter(settings, registry.everything)
    except ImportError as error:
        extra = settings.kind.value
        raise ConfigError(
            f"metrics.reporter.{settings.name}: {error.name or 'its library'} is not installed; "
            f"run pip install 'yarnflow[{extra}]' where the JobManager runs"
        ) from error
