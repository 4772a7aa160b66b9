"""Alerts reach the log and whoever is posted to."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import StreamRequestHandler, TCPServer
from typing import Any

import pytest

from tests.metrics.cluster import JOB, Cluster, details, registry
from tests.patience import PATIENCE
from yarnflow.config.configuration import Configuration
from yarnflow.core.checkpoint.messages import JobCheckpoints
from yarnflow.core.messages import QueryProgress
from yarnflow.core.monitoring.alerts import AlertSettings
from yarnflow.core.states import JobStatus
from yarnflow.errors import InvalidOption
from yarnflow.metrics import webhook as webhook_module
from yarnflow.metrics.alerting import Alerting, alert_settings, webhook_of
from yarnflow.metrics.webhook import Webhook
from yarnflow.testing.runtime import ManualClock

SECRET_URL = "https://hooks.example.com/services/T000/SeCrEt?token=abc"


def alerting(cluster: Cluster, clock: ManualClock, sent: list[Mapping[str, Any]], **limits: int) -> Alerting:
    return Alerting(AlertSettings(**limits), cluster, registry(cluster), clock, "mine", sent.append)


def test_a_job_without_checkpoints_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster, clock, sent = Cluster(), ManualClock(10_000), list[Mapping[str, Any]]()
    # a checkpoint of every batch
    cluster.checkpoints = JobCheckpoints(JOB, interval_ms=0)
    cluster.all_jobs = [replace(details(), queries=(QueryProgress("q"),))]
    watch = alerting(cluster, clock, sent, checkpoint_max_age_ms=15_000)
    watch.look()
    assert sent == []
    clock.advance(10_000)
    watch.look()
    assert sent == [], "it may have had nothing to do"
    clock.advance(15_000)
    watch.look()
    watch.look()
    assert sent == [
        {
            "alert": "NO_CHECKPOINT",
            "state": "firing",
            "cluster": "mine",
            "job_id": JOB,
            "job_name": "flights",
            "text": "no checkpoint has what it did in the last 35 s",
            "at": 35_000,
            "since": 20_000,
        }
    ]
    assert f"Alert NO_CHECKPOINT of job flights ({JOB}): no checkpoint" in caplog.text
    cluster.all_jobs = []
    watch.look()
    assert [(one["state"], one["job_name"]) for one in sent] == [
        ("firing", "flights"),
        ("resolved", "flights"),
    ]


def test_a_job_that_takes_no_checkpoints_is_not_missed() -> None:
    """As one whose input is one batch; it has no query that reports."""
    cluster, clock, sent = Cluster(), ManualClock(10_000), list[Mapping[str, Any]]()
    cluster.checkpoints = JobCheckpoints(JOB, interval_ms=1_000)
    watch = alerting(cluster, clock, sent, checkpoint_max_age_ms=15_000)
    clock.advance(60_000)
    watch.look()
    assert sent == []
    cluster.all_jobs = [details(status=JobStatus.CREATED)]
    watch.look()
    clock.advance(15_000)
    watch.look()
    assert [one["alert"] for one in sent] == ["NO_CHECKPOINT"], "nobody knows yet what it will be"


def test_restarts_and_task_managers() -> None:
    cluster, clock, sent = Cluster(), ManualClock(10_000), list[Mapping[str, Any]]()
    watch = alerting(cluster, clock, sent, restarts=2, no_task_managers_ms=5_000)
    watch.look()
    cluster.all_jobs, cluster.hosts = [details(restarts=2)], {}
    clock.advance(1_000)
    watch.look()
    assert [one["alert"] for one in sent] == ["RESTART_LOOP"]
    clock.advance(5_000)
    watch.look()
    assert [one["alert"] for one in sent] == ["RESTART_LOOP", "NO_TASK_MANAGERS"]
    assert sent[1]["job_id"] == "" and sent[1]["since"] == 11_000


def test_options_are_limits() -> None:
    values = {
        "alerts.checkpoint.max-age": "5 min",
        "alerts.restarts.threshold": "0",
        "alerts.lag.growing-for": "1 min",
    }
    found = alert_settings(Configuration.from_dict(values, "test"))
    assert (found.checkpoint_max_age_ms, found.restarts, found.lag_window_ms) == (300_000, 0, 60_000)


def test_a_webhook_must_be_an_address() -> None:
    with pytest.raises(InvalidOption, match="alerts.webhook.url is no URL") as raised:
        webhook_of(Configuration.from_dict({"alerts.webhook.url": "ftp://SeCrEt"}, "test"))
    assert "SeCrEt" not in str(raised.value)
    assert webhook_of(Configuration.empty()) is None


class Posts:
    """Fails some times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.bodies: list[Any] = []

    def __call__(self, url: str, body: bytes, timeout_s: float) -> None:
        self.bodies.append(json.loads(body))
        if len(self.bodies) <= self.failures:
            raise OSError(f"cannot reach {url}")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_module, "_FIRST_PAUSE_S", 0.0)


def test_a_post_is_tried_again_and_the_log_has_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    posts = Posts(failures=2)
    hook = Webhook(SECRET_URL, 1_000, 3, posts)
    hook.start()
    hook.send({"n": 1})
    assert hook.await_sent(PATIENCE.thread_s)
    assert posts.bodies == [{"n": 1}] * 3
    assert caplog.text.count("did not reach https://hooks.example.com/****** (OSError)") == 2
    assert "SeCrEt" not in caplog.text and "abc" not in caplog.text


def test_a_post_that_never_succeeds_does_not_hold_up_the_next() -> None:
    posts = Posts(failures=2)
    hook = Webhook(SECRET_URL, 1_000, 2, posts)
    hook.start()
    hook.send({"n": 1})
    hook.send({"n": 2})
    assert hook.await_sent(PATIENCE.thread_s)
    assert posts.bodies == [{"n": 1}, {"n": 1}, {"n": 2}]


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(webhook_module, "MAX_WAITING", 2)
    posts = Posts(failures=0)
    hook = Webhook(SECRET_URL, 1_000, 1, posts)
    for number in range(5):
        hook.send({"n": number})
    hook.start()
    assert hook.await_sent(PATIENCE.thread_s)
    assert posts.bodies == [{"n": 0}, {"n": 1}]
    assert "this one is left out" in caplog.text


def test_a_real_server_gets_json() -> None:
    got: list[tuple[str, str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, self.headers["Content-Type"], json.loads(body)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        hook = Webhook(f"http://127.0.0.1:{server.server_port}/hook", 5_000, 1)
        hook.start()
        hook.send({"text": "täxt"})
        sent = hook.await_sent(PATIENCE.thread_s)
        server.shutdown()
        serving.join()
    assert sent and got == [("/hook", "application/json", {"text": "täxt"})]


@pytest.mark.parametrize(
    "answer, reason",
    [
        (b"HELLO\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "302"),
    ],
    ids=["noise", "elsewhere"],
)
def test_an_answer_that_is_no_success_is_told_and_ends_nothing(
    answer: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[bytes] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            head = self.rfile.readline()
            while (line := self.rfile.readline().lower()) != b"\r\n":
                if line.startswith(b"content-length:"):
                    length = int(line.split()[1])
            asked.append(head + self.rfile.read(length))
            self.wfile.write(answer)

    with TCPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        hook = Webhook(f"http://127.0.0.1:{server.server_address[1]}/hook", 5_000, 1)
        hook.start()
        for number in range(2):
            hook.send({"n": number})
            assert hook.await_sent(PATIENCE.thread_s)
        server.shutdown()
        serving.join()
    assert asked == [b'POST /hook HTTP/1.1\r\n{"n": %d}' % number for number in range(2)]
    assert caplog.text.count(f"/****** ({reason}), try 1 of 1") == 2
