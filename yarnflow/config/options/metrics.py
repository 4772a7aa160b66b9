"""Options of metrics, their reporters, and alerts."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

_CLUSTER = Scope.CLUSTER

UPDATE_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "metrics.fetcher.update-interval",
    "10 s",
    _CLUSTER,
    "Time between two measurements of drivers and TaskManagers, which travel with the next report or "
    "heartbeat. 0 = nothing is measured there.",
)
REPORTERS: Final[ConfigOption[str]] = declare.string(
    "metrics.reporters",
    "",
    _CLUSTER,
    "Names of the reporters to start, separated by commas; empty = all for which there are "
    "metrics.reporter.<name>.* options. The leading JobManager has the metrics of the whole cluster and is "
    "the only process that reports them. Of each reporter: factory.class is "
    "org.apache.flink.metrics.prometheus.PrometheusReporterFactory or prometheus (options port, a port or a "
    "range, 9249 by default, and host, the address to listen at), or "
    "org.apache.flink.metrics.otel.OpenTelemetryMetricReporterFactory or otel (options exporter.endpoint, a "
    "URL of OTLP over HTTP, interval, 60 s by default, service.name, service.version); "
    "filter.includes and filter.excludes are names of metrics with * as wildcard, separated by semicolons; "
    "scope.variables.excludes are labels to leave out; scope.variables.additional are further labels, as "
    "key1:value1,key2:value2.",
)
ALERT_WEBHOOK: Final[ConfigOption[str]] = declare.secret(
    "alerts.webhook.url",
    "",
    _CLUSTER,
    "Address that gets an HTTP POST with a JSON object when an alert begins or ends: alert, state (firing or "
    "resolved), cluster, job_id, job_name, text, at and since (ms since the epoch). Empty = only the log.",
)
ALERT_WEBHOOK_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "alerts.webhook.timeout", "10 s", _CLUSTER, "How long one POST may take.", at_least="1 ms"
)
ALERT_WEBHOOK_ATTEMPTS: Final[ConfigOption[int]] = declare.integer(
    "alerts.webhook.attempts",
    3,
    _CLUSTER,
    "How often a POST is tried, with a pause that doubles from 1 s, until the alert is only in the log.",
    at_least=1,
    at_most=10,
)
ALERT_CHECKPOINT_MAX_AGE_MS: Final[ConfigOption[int]] = declare.duration(
    "alerts.checkpoint.max-age",
    "0 ms",
    _CLUSTER,
    "Alert when a job with periodic checkpoints has completed none for this long, and had something to do; "
    "it is told when this has been so for 2 min more (or the same time, if that is shorter), as a new leader "
    "has to hear of its jobs first. 0 = off.",
)
ALERT_RESTARTS: Final[ConfigOption[int]] = declare.integer(
    "alerts.restarts.threshold",
    5,
    _CLUSTER,
    "Alert when a job was restarted so often within alerts.restarts.window. 0 = off.",
    at_least=0,
)
ALERT_RESTARTS_WINDOW_MS: Final[ConfigOption[int]] = declare.duration(
    "alerts.restarts.window", "10 min", _CLUSTER, "See alerts.restarts.threshold.", at_least="1 s"
)
ALERT_LAG_WINDOW_MS: Final[ConfigOption[int]] = declare.duration(
    "alerts.lag.growing-for",
    "0 ms",
    _CLUSTER,
    "Alert when the messages that a job's Kafka sources have not read have become more over this time, and "
    "were never fewer in between than at its beginning. 0 = off.",
)
ALERT_LAG_RECORDS: Final[ConfigOption[int]] = declare.integer(
    "alerts.lag.min-records",
    10_000,
    _CLUSTER,
    "Growth over alerts.lag.growing-for below this is no alert.",
    at_least=1,
)
ALERT_NO_TASK_MANAGERS_MS: Final[ConfigOption[int]] = declare.duration(
    "alerts.no-taskmanagers.for",
    "5 min",
    _CLUSTER,
    "Alert when there are jobs and no TaskManager was registered for this long. 0 = off.",
)
