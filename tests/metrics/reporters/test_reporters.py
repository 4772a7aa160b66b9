"""What Prometheus and OpenTelemetry get."""

from __future__ import annotations

import socket
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.metrics.cluster import Cluster, registry
from tests.patience import PATIENCE
from yarnflow.config.configuration import Configuration
from yarnflow.errors import ConfigError, InvalidOption, PortUnavailable, UnknownOption
from yarnflow.metrics.reporters.settings import ReporterKind, ReporterSettings, reporter_settings
from yarnflow.metrics.service import make_reporter

PROMETHEUS = ReporterSettings("prom", ReporterKind.PROMETHEUS, host="127.0.0.1", ports="0")


def settings(values: dict[str, str]) -> tuple[ReporterSettings, ...]:
    return reporter_settings(Configuration.from_dict(values, "test"))


def test_flinks_options_are_read() -> None:
    flinks = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
    (found,) = settings(
        {
            "metrics.reporter.prom.factory.class": flinks,
            "metrics.reporter.prom.port": "9250-9260",
            "metrics.reporter.prom.filter.includes": "num*;uptime",
            "metrics.reporter.prom.scope.variables.excludes": "<host>;task_id",
            "metrics.reporter.prom.scope.variables.additional": "region:eu,team:a",
        }
    )
    assert (found.kind, found.ports) == (ReporterKind.PROMETHEUS, "9250-9260")
    assert [found.wants(name) for name in ("numRestarts", "uptime", "downtime")] == [True, True, False]
    assert found.variables({"host": "h", "tm_id": "t"}) == {"tm_id": "t", "region": "eu", "team": "a"}


def test_no_options_are_no_reporters() -> None:
    assert settings({}) == ()


def test_only_those_that_are_named_start() -> None:
    both = {f"metrics.reporter.{name}.factory.class": name for name in ("prometheus", "otel")}
    assert [one.name for one in settings(both)] == ["prometheus", "otel"]
    assert [one.name for one in settings({**both, "metrics.reporters": "otel"})] == ["otel"]


@pytest.mark.parametrize(
    "values, said",
    [
        ({"metrics.reporters": "prom"}, "there is no metrics.reporter.prom.factory.class"),
        ({"metrics.reporter.x.factory.class": "org.apache.flink.Jmx"}, "expected one of"),
        ({"metrics.reporter.x.port": "9249"}, "factory.class is ''"),
        (
            {"metrics.reporter.x.factory.class": "prometheus", "metrics.reporter.x.port": "many"},
            "metrics.reporter.x.port is 'many'; expected a port",
        ),
        (
            {"metrics.reporter.x.factory.class": "otel", "metrics.reporter.x.exporter.endpoint": "collector"},
            "exporter.endpoint is 'collector'; expected a URL",
        ),
        (
            {"metrics.reporter.x.factory.class": "otel", "metrics.reporter.x.interval": "5"},
            "interval is '5'; expected a duration of 1 s or more",
        ),
    ],
)
def test_wrong_options_are_told(values: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidOption, match=said.replace(".", r"\.")):
        settings(values)


def test_an_unknown_option_of_a_reporter_is_an_error() -> None:
    with pytest.raises(UnknownOption):
        Configuration.from_dict({"metrics.reporter.x.prot": "1"}, "test")


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yarnflow.metrics.reporters.prometheus", None)
    with pytest.raises(ConfigError, match=r"pip install 'yarnflow\[prometheus\]'"):
        make_reporter(PROMETHEUS, registry(Cluster()), "")


def scraped(reporter_settings: ReporterSettings = PROMETHEUS) -> str:
    pytest.importorskip("prometheus_client")
    reporter: Any = make_reporter(reporter_settings, registry(Cluster()), "")
    reporter.start()
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{reporter.port}/metrics", timeout=PATIENCE.answer_s
        ) as answer:
            return str(answer.read().decode())
    finally:
        reporter.stop()


def test_prometheus_gets_flinks_names_and_labels() -> None:
    text = scraped()
    assert 'flink_jobmanager_numRegisteredTaskManagers{host="master-1"} 1.0' in text
    assert 'flink_taskmanager_Status_JVM_Count{host="worker-1",tm_id="tm-1"} 1.0' in text
    assert "# TYPE flink_taskmanager_job_task_numRecordsIn gauge" in text
    line = next(
        line for line in text.splitlines() if line.startswith("flink_taskmanager_job_task_operator_mine")
    )
    assert line.startswith("flink_taskmanager_job_task_operator_mine_seen{") and line.endswith("} 7.0")
    for label in ('operator_name="my map"', 'task_name="map -> sink"', 'subtask_index="1"', 'tm_id="tm-1"'):
        assert label in line
    assert "lastCheckpointExternalPath" not in text, "a text is no number"


def test_prometheus_can_read_what_it_gets() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    families = list(parser.text_string_to_metric_families(scraped()))
    names = [family.name for family in families]
    assert len(names) == len(set(names)) and all(family.documentation for family in families)
    series = [
        (sample.name, frozenset(sample.labels.items())) for family in families for sample in family.samples
    ]
    # two of the user's metrics have one name here: the first counts
    assert len(series) == len(set(series))
    said = {family.name: family.documentation for family in families}
    assert said["flink_jobmanager_job_uptime"].endswith("Unit: ms.")


def test_prometheus_gets_what_is_asked_for_only() -> None:
    text = scraped(
        ReporterSettings(
            "p", ReporterKind.PROMETHEUS, "127.0.0.1", "0", includes=("num*",), excludes=("numRestarts",),
            hidden_variables=frozenset({"host"}), further_variables={"region": "eu"},
        )
    )  # fmt: skip
    names = {line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")}
    assert names and all("_num" in name for name in names) and "flink_jobmanager_job_numRestarts" not in names
    assert 'flink_jobmanager_numRunningJobs{region="eu"} 1.0' in text


def test_a_port_that_is_taken_is_told() -> None:
    pytest.importorskip("prometheus_client")
    first: Any = make_reporter(PROMETHEUS, registry(Cluster()), "")
    first.start()
    try:
        taken = ReporterSettings("x", ReporterKind.PROMETHEUS, "127.0.0.1", str(first.port))
        with pytest.raises(PortUnavailable, match="metrics.reporter.x.port: no port of"):
            make_reporter(taken, registry(Cluster()), "").start()
    finally:
        first.stop()


def _status(url: str) -> int:
    """A place is free a moment after its client is gone."""
    for _ in range(3_000):
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE.answer_s) as answer:
                return int(answer.status)
        except OSError:
            threading.Event().wait(0.01)
    raise AssertionError("no place is free")


def test_silent_clients_hold_prometheus_port_neither_many_nor_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """1. all places are taken  2. one more is closed at once  3. the silent ones are given up."""
    prometheus = pytest.importorskip("yarnflow.metrics.reporters.prometheus")
    monkeypatch.setattr(prometheus, "MAX_CLIENTS", 2)
    monkeypatch.setattr(prometheus, "CLIENT_TIMEOUT_S", 0.2)
    reporter: Any = make_reporter(PROMETHEUS, registry(Cluster()), "")
    reporter.start()
    silent = [
        socket.create_connection(("127.0.0.1", reporter.port), timeout=PATIENCE.answer_s) for _ in range(3)
    ]
    try:
        assert [client.recv(1) for client in reversed(silent)] == [b"", b"", b""]
        assert _status(f"http://127.0.0.1:{reporter.port}/metrics") == 200
    finally:
        for client in silent:
            client.close()
        reporter.stop()


def test_open_telemetry_is_sent_otlp() -> None:
    pytest.importorskip("opentelemetry.sdk")
    proto = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    bodies: list[bytes] = []
    came = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            came.set()

        def log_message(self, *_args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1/metrics"
        otel = ReporterSettings(
            "otel", ReporterKind.OPEN_TELEMETRY, endpoint=endpoint, interval_ms=1, service_name="mine"
        )
        reporter = make_reporter(otel, registry(Cluster()), "")
        reporter.start()
        sent = came.wait(PATIENCE.thread_s)
        reporter.stop()
        server.shutdown()
        serving.join()
    assert sent
    request = proto.ExportMetricsServiceRequest.FromString(bodies[0])
    (resource,) = request.resource_metrics
    assert {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"] == "mine"
    found = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    records = found["flink.taskmanager.job.task.numRecordsIn"]
    assert records.sum.is_monotonic and records.sum.data_points[0].as_int == 5
    assert found["flink.taskmanager.job.task.busyTimeMsPerSecond"].gauge.data_points[0].as_double == 2.5
    labels = {a.key: a.value.string_value for a in records.sum.data_points[0].attributes}
    assert (labels["job_name"], labels["subtask_index"]) == ("flights", "1")
