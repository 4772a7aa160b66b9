"""A job on a local cluster, measured from a function in a Python worker to what Prometheus gets."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from pathlib import Path

from integration.conftest import Commands, wait_until

_SAMPLE = re.compile(r"^(\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
MEASURED = """
from pyflink.common import Types
from pyflink.datastream import MapFunction, KeyedProcessFunction, StreamExecutionEnvironment
from yarnflow.api import RateSource

class Count(MapFunction):
    def open(self, context):
        group = context.get_metrics_group().add_group("mine")
        self.seen = group.counter("seen")
        self.odd = group.meter("odd", 30)
        self.sizes = group.distribution("sizes")
        self.last = 0
        group.gauge("last", lambda: self.last)

    def map(self, row):
        self.seen.inc()
        self.last = row[1]
        if row[1] % 2:
            self.odd.mark_event()
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
rows = env.from_source(RateSource(rows_per_second=20))
numbers = rows.map(Count(), output_type=Types.LONG()).name("count them")
numbers.key_by(lambda number: number % 5).process(Sum(), output_type=Types.STRING()).name("sum").print()
env.execute("measured")
"""

Samples = dict[str, list[tuple[dict[str, str], float]]]


def scrape(port: int) -> Samples:
    """Metric → labels and value of each of its series; empty while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, OSError):
        return {}
    found: Samples = {}
    for name, labels, value in _SAMPLE.findall(text):
        found.setdefault(name, []).append((dict(_LABEL.findall(labels)), float(value)))
    return found


def total(found: Samples, name: str, **labels: str) -> float:
    """Sum over the series that have these labels."""
    return sum(value for of, value in found.get(name, []) if labels.items() <= of.items())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_what_functions_count_reaches_prometheus(yarnflow: Commands, tmp_path: Path) -> None:
    program, port = tmp_path / "measured.py", free_port()
    program.write_text(MEASURED)
    here = f"-Dio.tmp.dirs={tmp_path}"
    submit = yarnflow.start(
        "submit",
        here,
        "-Dtaskmanager.numberOfTaskSlots=2",
        "-Dmetrics.fetcher.update-interval=2 s",
        "-Dmetrics.reporter.prom.factory.class=org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        f"-Dmetrics.reporter.prom.port={port}",
        program,
    )

    def measured() -> Samples | None:
        assert submit.process.poll() is None, submit.stderr
        found = scrape(port)
        # each of two measurements, so that there are rates, and of a batch that was committed
        least = {
            "flink_taskmanager_job_task_operator_mine_seen": 60,
            "flink_taskmanager_job_task_operator_elements": 1,
            "flink_jobmanager_job_task_numRecordsInPerSecond": 0.1,
            "flink_jobmanager_job_numExecutors": 1,
            "flink_jobmanager_job_lastCommitTimestamp": 1,
            "flink_taskmanager_Status_Python_Workers_Count": 2,
        }
        return found if all(total(found, name) >= value for name, value in least.items()) else None

    found = wait_until(measured, "measurements of the job", 600, 1.0)
    operator, task, job = (
        "flink_taskmanager_job_task_operator", "flink_taskmanager_job_task", "flink_jobmanager_job",
    )  # fmt: skip
    seen = total(found, f"{operator}_mine_seen", operator_name="count them")
    assert seen == total(found, f"{operator}_numRecordsIn", operator_name="count them")
    assert {of["subtask_index"] for of, _ in found[f"{operator}_mine_seen"]} == {"0", "1"}
    assert 0.4 * seen <= total(found, f"{operator}_mine_odd_count") <= 0.6 * seen
    assert total(found, f"{operator}_mine_sizes_count") == seen
    assert max(value for _, value in found[f"{operator}_mine_sizes_max"]) >= seen - 1
    assert max(value for _, value in found[f"{operator}_mine_last"]) >= seen - 1
    # the keyed operator gets in the same batch what the first one emits
    assert 0 < total(found, f"{operator}_elements", operator_name="sum") <= seen

    vertices = {of["task_name"]: value for of, value in found[f"{job}_task_numRecordsIn"]}
    assert len(vertices) == 2 and max(vertices.values()) == seen
    for of, busy in found[f"{task}_busyTimeMsPerSecond"]:
        rest = sum(
            total(
                found,
                f"{task}_{kind}TimeMsPerSecond",
                task_id=of["task_id"],
                subtask_index=of["subtask_index"],
            )
            for kind in ("idle", "backPressured")
        )
        assert 0 <= busy <= 1_000 and abs(busy + rest - 1_000) < 1
    labels = found[f"{task}_numRecordsIn"][0][0]
    assert labels["job_name"] == "measured" and labels["tm_id"] and labels["host"]

    assert total(found, "flink_jobmanager_numRegisteredTaskManagers") == 1
    assert total(found, f"{job}_uptime") > 0 and total(found, f"{job}_numRestarts") == 0
    assert total(found, f"{job}_numExecutors") == 1 and total(found, f"{job}_numCompletedTasks") > 0
    assert (
        0
        < total(found, f"{job}_Status_JVM_Memory_Heap_Used")
        <= total(found, f"{job}_Status_JVM_Memory_Heap_Max")
    )
    assert total(found, "flink_taskmanager_Status_JVM_Count") == 1
    assert total(found, "flink_taskmanager_Status_Python_Workers_Count") >= 2
    assert 0 <= total(found, f"{job}_secondsSinceLastCommit") < 120

    canceled = yarnflow.run("cancel", labels["job_id"], here)
    assert canceled.process.returncode == 0, canceled.stderr
    submit.wait(60)
