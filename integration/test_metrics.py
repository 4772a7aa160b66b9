"""A job on a local cluster, measured from a function in a Python worker to those who are told of it."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from integration.conftest import Commands, Started, commands_in, wait_until
from integration.servers import free_port
from tests.patience import PATIENCE

#: fails once when there is a file of this name in the working directory
FAIL = "fail-now"
MEASURED = """
import os
from pyflink.common import Types
from pyflink.datastream import MapFunction, KeyedProcessFunction, StreamExecutionEnvironment
from yarnflow.api import RateSource

class Count(MapFunction):
    def open(self, context):
        group = context.get_metrics_group().add_group("mine")
        self.seen = group.counter("seen")
        self.half = group.meter("half", 30)
        self.sizes = group.distribution("sizes")
        self.last = 0
        group.gauge("last", lambda: self.last)

    def map(self, row):
        if os.path.exists({flag!r}):
            os.remove({flag!r})
            raise RuntimeError("as it was told")
        self.seen.inc()
        self.last = row[1]
        # Spark deals the numbers in turn, so that one subtask has the odd ones: this is half of those of each
        if row[1] // 2 % 2:
            self.half.mark_event()
        self.sizes.update(row[1])
        return row[1]

class Sum(KeyedProcessFunction):
    def open(self, context):
        self.elements = context.get_metrics_group().counter("elements")

    def process_element(self, value, ctx):
        self.elements.inc()
        yield str(value)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
rows = env.from_source(RateSource(rows_per_second=20)).name("first")
others = env.from_source(RateSource(rows_per_second=4)).name("second").map(lambda row: row[1], Types.LONG())
numbers = rows.map(Count(), output_type=Types.LONG()).name("count them").union(others.name("others"))
numbers.key_by(lambda number: number % 5).process(Sum(), output_type=Types.STRING()).name("sum").print()
env.execute("measured")
"""

FLINKS_PROMETHEUS = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
Samples = dict[str, list[tuple[dict[str, str], float]]]
OPERATOR, TASK, JOB = (
    "flink_taskmanager_job_task_operator", "flink_taskmanager_job_task", "flink_jobmanager_job",
)  # fmt: skip


def scrape(port: int) -> tuple[Samples, list[str]]:
    """Metric → labels and value of each of its series; and what Prometheus would not like."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE.answer_s) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, OSError):
        return {}, []
    found: Samples = {}
    wrong = []
    for family in text_string_to_metric_families(text):
        if family.name in found or not family.documentation:
            wrong.append(f"{family.name}: {family.documentation!r}")
        found[family.name] = [(dict(sample.labels), sample.value) for sample in family.samples]
        series = [tuple(sorted(labels.items())) for labels, _ in found[family.name]]
        if len(set(series)) < len(series):
            wrong.append(f"{family.name} has a series twice")
    return found, wrong


def total(found: Samples, name: str, **labels: str) -> float:
    """Sum over the series that have these labels."""
    return sum(value for of, value in found.get(name, []) if labels.items() <= of.items())


@dataclass
class Receiver:
    """What was posted to an HTTP server, by path."""

    port: int
    bodies: dict[str, list[bytes]] = field(default_factory=dict)

    def alerts(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies.get("/alerts", [])]

    def open_telemetry(self) -> dict[str, Any]:
        """Name → metric, as they came last."""
        found: dict[str, Any] = {}
        for body in self.bodies.get("/v1/metrics", []):
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    found |= {metric.name: metric for metric in scope.metrics}
        return found


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A collector for OpenTelemetry and alerts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.bodies.setdefault(self.path, []).append(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received = Receiver(server.server_port)
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        yield received
        server.shutdown()
        serving.join()


@dataclass
class Measured:
    """The job, and who is told of it."""

    commands: Commands
    submit: Started
    directory: Path
    prometheus_port: int
    received: Receiver

    @property
    def here(self) -> str:
        """Where commands find the cluster."""
        return f"-Dio.tmp.dirs={self.directory}"

    def samples(self, **least: float) -> Samples:
        """What Prometheus gets, once each of some metrics is as large."""

        def look() -> Samples | None:
            assert self.submit.process.poll() is None, self.submit.stderr
            found, wrong = scrape(self.prometheus_port)
            assert wrong == []
            return found if all(total(found, name) >= value for name, value in least.items()) else None

        return wait_until(look, f"measurements: {least}", PATIENCE.job_s, 1.0)

    def job_id(self) -> str:
        return self.samples(**{f"{JOB}_uptime": 1})[f"{JOB}_uptime"][0][0]["job_id"]

    def logs(self, pattern: str) -> list[dict[str, Any]]:
        """Lines of log files, each of which is JSON."""
        return [
            json.loads(line)
            for path in self.directory.rglob("logs/*")
            if path.match(pattern)
            for line in whole_lines(path)
            # what Spark's own Python workers print goes to the JVM's output
            if line.startswith("{") or not path.match("*.jvm.log")
        ]


def whole_lines(path: Path) -> list[str]:
    """Of a file that is being written."""
    text = path.read_bytes()
    return text[: text.rfind(b"\n") + 1].decode().splitlines()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    """One job for all tests."""
    directory = tmp_path_factory.mktemp("measured")
    program, port = directory / "measured.py", free_port()
    program.write_text(MEASURED.format(flag=str(directory / FAIL)))
    options = {
        "io.tmp.dirs": str(directory),
        "taskmanager.numberOfTaskSlots": "2",
        "yarnflow.log.format": "json",
        "metrics.fetcher.update-interval": "2 s",
        "metrics.reporters": "prom,otel",
        "metrics.reporter.prom.factory.class": FLINKS_PROMETHEUS,
        "metrics.reporter.prom.port": str(port),
        "metrics.reporter.otel.factory.class": "otel",
        "metrics.reporter.otel.interval": "2 s",
        # drivers that start batches are busy
        "rpc.ask.timeout": "60 s",
        # the first is due after the tests
        "execution.checkpointing.interval": "1 h",
        "alerts.checkpoint.max-age": "1 s",
        "alerts.restarts.threshold": "1",
        # a failure of a function is one of the query at once
        "spark.task.maxFailures": "1",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "0 s",
        "restart-strategy.fixed-delay.attempts": "100",
    }
    with receiver() as received, commands_in(directory) as commands:
        options["metrics.reporter.otel.exporter.endpoint"] = f"http://127.0.0.1:{received.port}/v1/metrics"
        options["alerts.webhook.url"] = f"http://127.0.0.1:{received.port}/alerts"
        submit = commands.start("submit", *(f"-D{key}={value}" for key, value in options.items()), program)
        job = Measured(commands, submit, directory, port, received)
        yield job
        canceled = commands.run("cancel", job.job_id(), job.here)
        assert canceled.process.returncode == 0, canceled.stderr
        submit.wait()


def test_what_functions_count_reaches_prometheus(measured: Measured) -> None:
    found = measured.samples(
        **{
            # each of two measurements, so that there are rates, and of a batch that was committed
            f"{OPERATOR}_mine_seen": 60,
            f"{OPERATOR}_elements": 1,
            f"{JOB}_task_numRecordsInPerSecond": 0.1,
            f"{JOB}_numExecutors": 1,
            f"{JOB}_lastCommitTimestamp": 1,
            "flink_taskmanager_Status_Python_Workers_Count": 2,
        }
    )
    seen = total(found, f"{OPERATOR}_mine_seen", operator_name="count them")
    assert seen == total(found, f"{OPERATOR}_numRecordsIn", operator_name="count them")
    assert {of["subtask_index"] for of, _ in found[f"{OPERATOR}_mine_seen"]} == {"0", "1"}
    assert 0.4 * seen <= total(found, f"{OPERATOR}_mine_half_count") <= 0.6 * seen
    assert total(found, f"{OPERATOR}_mine_sizes_count") == seen
    assert max(value for _, value in found[f"{OPERATOR}_mine_sizes_max"]) >= seen - 1
    assert max(value for _, value in found[f"{OPERATOR}_mine_last"]) >= seen - 1

    vertices = {of["task_name"]: value for of, value in found[f"{JOB}_task_numRecordsIn"]}
    (first,), (second,) = ([name for name in vertices if name.startswith(of)] for of in ("first", "second"))
    assert vertices[first] == seen
    # of each source subtasks have the records, though Spark numbers the partitions of both in a row
    for name in (first, second):
        of_subtasks = [of for of, _ in found[f"{TASK}_numRecordsIn"] if of["task_name"] == name]
        assert {of["subtask_index"] for of in of_subtasks} == {"0", "1"}
        assert total(found, f"{TASK}_numRecordsIn", task_name=name) == vertices[name] > 0
    # the keyed operator gets in the same batch what the others emit
    summed = total(found, f"{OPERATOR}_elements", operator_name="sum")
    assert 0 < summed <= vertices[first] + vertices[second]

    for of, busy in found[f"{TASK}_busyTimeMsPerSecond"]:
        same = {key: of[key] for key in ("task_id", "subtask_index")}
        rest = sum(
            total(found, f"{TASK}_{kind}TimeMsPerSecond", **same) for kind in ("idle", "backPressured")
        )
        assert 0 <= busy <= 1_000 and abs(busy + rest - 1_000) < 1
    labels = found[f"{TASK}_numRecordsIn"][0][0]
    assert labels["job_name"] == "measured" and labels["tm_id"] and labels["host"]


@pytest.mark.may_rerun("measurements come at intervals")
def test_cluster_and_processes_are_measured(measured: Measured) -> None:
    found = measured.samples(
        **{f"{JOB}_numCompletedTasks": 1, "flink_taskmanager_Status_Python_Workers_Count": 2}
    )
    assert total(found, "flink_jobmanager_numRegisteredTaskManagers") == 1
    assert total(found, f"{JOB}_uptime") > 0 and total(found, f"{JOB}_numRestarts") >= 0
    assert total(found, f"{JOB}_slotsAllocated") == total(found, f"{JOB}_slotsRequired") == 2
    assert total(found, "flink_jobmanager_taskSlotsTotal") == 2
    assert total(found, "flink_jobmanager_taskSlotsAvailable") == 0
    # there was none: since the job was submitted, or waited for its first numbers
    assert total(found, f"{JOB}_checkpointAge") > 0
    assert total(found, f"{JOB}_numberOfCompletedCheckpoints") == 0
    assert total(found, f"{JOB}_numExecutors") == 1
    used, most = (total(found, f"{JOB}_Status_JVM_Memory_Heap_{name}") for name in ("Used", "Max"))
    assert 0 < used <= most
    assert total(found, "flink_taskmanager_Status_JVM_Count") == 1
    assert 0 <= total(found, f"{JOB}_secondsSinceLastCommit") < 600
    # a source that is no Kafka is behind nothing
    assert f"{JOB}_task_pendingRecords" not in found


@pytest.mark.may_rerun("measurements come at intervals")
def test_open_telemetry_is_told_the_same(measured: Measured) -> None:
    name = "flink.taskmanager.job.task.operator.mine.seen"

    def told() -> dict[str, Any] | None:
        found = measured.received.open_telemetry()
        return found if name in found else None

    found = wait_until(told, "user metrics at the collector")
    seen = found[name]
    points = seen.gauge.data_points or seen.sum.data_points
    labels = {each.key: each.value.string_value for each in points[0].attributes}
    assert labels["operator_name"] == "count them" and labels["job_name"] == "measured"
    assert found["flink.taskmanager.job.task.numRecordsIn"].sum.is_monotonic
    (uptime,) = found["flink.jobmanager.job.uptime"].gauge.data_points
    assert uptime.as_int > 0 or uptime.as_double > 0


@pytest.mark.gate
def test_alerts_are_told_to_the_log_and_to_a_webhook(measured: Measured) -> None:
    # a restart of the query, which has committed before
    measured.samples(**{f"{JOB}_lastCommitTimestamp": 1})
    (measured.directory / FAIL).touch()

    def fired() -> dict[str, dict[str, Any]] | None:
        alerts = {alert["alert"]: alert for alert in measured.received.alerts()}
        return alerts if {"NO_CHECKPOINT", "RESTART_LOOP"} <= set(alerts) else None

    alerts = wait_until(fired, "both alerts", pause_s=0.5)
    job_id = measured.job_id()
    for alert in (alerts["NO_CHECKPOINT"], alerts["RESTART_LOOP"]):
        assert (alert["state"], alert["job_id"], alert["job_name"]) == ("firing", job_id, "measured")
        said = [line for line in measured.logs("jobmanager*.log") if alert["text"] in line["message"]]
        assert said and said[0]["log.level"] == "WARN" and alert["alert"] in said[0]["message"]
    assert total(measured.samples(), f"{JOB}_numRestarts") == 1


def test_lines_of_logs_are_objects_that_name_the_job(measured: Measured) -> None:
    job_id = measured.job_id()
    for pattern in ("jobmanager*.log", "driver*.log", "taskmanager*.log"):
        lines = measured.logs(pattern)
        assert lines and all({"@timestamp", "log.level", "message"} <= set(line) for line in lines)
        assert any(line.get("flink-job-id") == job_id for line in lines), pattern


def test_level_is_changed_while_the_job_runs(measured: Measured) -> None:
    logger = "org.apache.spark.sql.execution.streaming"
    batches = [line for line in measured.logs("driver*.jvm.log") if line["log.level"] == "INFO"]
    assert not batches, "the test needs a level that is not the default"
    done = measured.commands.run("log-level", logger, "info", measured.here, "--json")
    assert done.process.returncode == 0, done.stderr
    assert not any(process["error"] for process in json.loads(done.stdout)["processes"])
    wait_until(
        lambda: any(
            line["log.level"] == "INFO" and logger in line["log.logger"]
            for line in measured.logs("driver*.jvm.log")
        ),
        "lines of the level that was wanted",
        pause_s=0.5,
    )
