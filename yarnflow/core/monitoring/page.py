"""``docs/metrics.md``, made from the declarations; see ``scripts/gen-docs``."""

from __future__ import annotations

from typing import Final

from yarnflow.core.metrics import ScopeKind
from yarnflow.core.monitoring.declarations import ALL_METRICS, MetricDeclaration

_HEAD: Final = """\
<!-- Written by scripts/gen-docs from yarnflow/core/monitoring; do not edit. -->
# Metrics

The leading JobManager has the newest value of every metric of the cluster. It knows jobs, checkpoints and
slots itself; drivers and TaskManagers measure every `metrics.fetcher.update-interval` (10 s) and send what
they measured with their next report or heartbeat. Nothing is kept on disk; a new leader has all values
after one interval.

Where they can be read:

- Flink's REST interface: `/jobmanager/metrics`, `/taskmanagers/:id/metrics`, `/jobs/:id/metrics`,
  `/jobs/:id/vertices/:id/metrics` and `/jobs/:id/vertices/:id/subtasks/metrics`;
- [Prometheus](#prometheus) and [OpenTelemetry](#opentelemetry);
- [alerts](#alerts) in the log and by a webhook.

## How vertices are measured

Records run in micro-batches. What can be measured depends on how a vertex runs:

| | operators on elements (PyFlink's functions) | native operators (columns, SQL) | scripts |
|---|---|---|---|
| records in and out | counted for each operator and subtask by the Python workers | for the vertex as a whole: of sources and sinks from Spark's progress; between vertices that stand in a row from Spark's stages, as long as each has one stage in every batch | of all queries together |
| watermark | of each subtask | Spark's, of the query | the earliest of all queries |
| busy time | measured for each subtask in the Python workers | from the run time of Spark's stages, **an estimate** | likewise |
| user metrics | yes | no | no |

A value that is not measured is missing; it is never 0 instead. Counters begin at 0 with each attempt of a
job. A task that Spark runs again after it had ended well counts twice.

**Busy** (`busyTimeMsPerSecond`) is the share of the time in which tasks of the vertex ran, between the last
two measurements. Of operators on elements it is the time in which Python workers ran the level that the
operator is part of: vertices that run in one Spark stage have the time of the stage. Of native operators it
is the run time of the stages of the query's batches, divided by time and parallelism: if each batch had as
many stages as the query has vertices, each vertex has its own stage's, else all vertices have the query's,
and all subtasks of a vertex have the same value.

**Back-pressured** (`backPressuredTimeMsPerSecond`) are sources whose input had to wait for the batch before
it. With `execution.micro-batch.interval`, it is the share of the last batch by which it was longer than the
interval. Without one, it is how much of a batch was left to be read behind the last one, 1000 at most; that
is known of Kafka only, and 0 elsewhere. It is 0 for all vertices behind sources: nothing waits between
vertices of one batch.

**Idle** is the rest of each second. The three add up to 1000. Of a vertex as a whole they are the mean of its
subtasks, and the `accumulate…` metrics are sums over them.

## User metrics

`runtime_context.get_metrics_group()` in `open()` gives PyFlink's `MetricGroup`: `counter`, `gauge`,
`meter`, `distribution` and `add_group`. Values are those of the subtask, under `<operator
name>.<group>.<metric>`. Counters and meters are sums over all workers that have run the subtask; a gauge is
that of the worker that has run it last. The value of a meter is its rate over its time span, with the
number of events in `<metric>_count`. A distribution gives `<metric>_count`, `_min`, `_max` and `_mean`. An
operator may have 200 metrics. `add_group(key, value)` puts both words into the name.

## Prometheus

```
pip install 'yarnflow[prometheus]'
metrics.reporter.prom.factory.class: org.apache.flink.metrics.prometheus.PrometheusReporterFactory
metrics.reporter.prom.port: 9249
```

Only the leading JobManager answers, for the whole cluster: let Prometheus scrape all masters; standbys
refuse the connection. Names are Flink's, `flink_` + scope + `_` + metric, and so are the labels, so that
boards made for Flink find them: `host`, `tm_id`, `job_id`, `job_name`, `task_id`, `task_name`,
`subtask_index`, `task_attempt_num`, `operator_name`. As in Flink, counters are gauges. Values that are
texts are left out.

| Scope | Name begins with |
|---|---|
| JobManager | `flink_jobmanager_` |
| TaskManager | `flink_taskmanager_` |
| job | `flink_jobmanager_job_` |
| vertex as a whole | `flink_jobmanager_job_task_` |
| subtask | `flink_taskmanager_job_task_` |
| operator in a subtask | `flink_taskmanager_job_task_operator_` |

`conf/grafana-yarnflow.json` is a board, `conf/prometheus-alerts.yaml` are rules for Prometheus. Flink's
`metrics.scope.*` formats are for reporters without labels; there are none here, so these options do not
exist.

## OpenTelemetry

```
pip install 'yarnflow[otel]'
metrics.reporter.otel.factory.class: org.apache.flink.metrics.otel.OpenTelemetryMetricReporterFactory
metrics.reporter.otel.exporter.endpoint: http://collector:4318/v1/metrics
metrics.reporter.otel.interval: 60 s
```

OTLP over HTTP, with names such as `flink.taskmanager.job.task.numRecordsIn` and the same labels as
attributes. Counters are cumulative sums, all else gauges.

## Alerts

| Alert | Begins when | Options |
|---|---|---|
| `NO_CHECKPOINT` | a job with periodic checkpoints has completed none for a time, and had something to do | `alerts.checkpoint.max-age` |
| `RESTART_LOOP` | a job was restarted too often within a time | `alerts.restarts.threshold`, `alerts.restarts.window` |
| `LAG_GROWING` | what a job's Kafka sources have not read has grown over a time | `alerts.lag.growing-for`, `alerts.lag.min-records` |
| `NO_TASK_MANAGERS` | there are jobs, and no TaskManager is registered for a time | `alerts.no-taskmanagers.for` |

Each is told once when it begins and once when it ends: as a line in the JobManager's log, and as a POST of
JSON to `alerts.webhook.url`:

```json
{"alert": "NO_CHECKPOINT", "state": "firing", "cluster": "default", "job_id": "…", "job_name": "flights",
 "text": "no checkpoint has what it did in the last 700 s", "at": 1795206868564, "since": 1795206808564}
```

The leader looks every `metrics.fetcher.update-interval`. A new leader tells an alert again that still
holds.

## All metrics

*Here* = Flink has no such metric. JVM and Python of scope *job* are those of its driver."""  # noqa: E501 - tables

_TITLES: Final = {
    ScopeKind.JOB_MANAGER: "JobManager",
    ScopeKind.TASK_MANAGER: "TaskManager",
    ScopeKind.JOB: "Job",
    ScopeKind.VERTEX: "Vertex as a whole",
    ScopeKind.SUBTASK: "Subtask",
}


def metrics_markdown() -> str:
    """The page."""
    parts = [_HEAD]
    for scope, title in _TITLES.items():
        parts.append(f"\n### {title}\n\n| Metric | Kind | Unit | Meaning | |\n|---|---|---|---|---|\n")
        parts.extend(_row(metric) for metric in ALL_METRICS if scope in metric.scopes)
    return "".join(parts)


def _row(metric: MetricDeclaration) -> str:
    kind = "Text" if metric.is_text else metric.kind.value
    here = "" if metric.of_flink else "here"
    return f"| `{metric.name}` | {kind} | {metric.unit.value} | {metric.description} | {here} |\n"
