"""A real driver process with a real JVM and real executors, against a recording JobMaster."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.spark.driver_harness import DriverProcess
from tests.patience import PATIENCE
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import DriverPhase

WORDS = """
import sys
from pyspark.sql import SparkSession, functions as F
from helper import shout
builder = SparkSession.builder.master("local[7]").appName("mine")
spark = builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
print("partitions", spark.conf.get("spark.sql.shuffle.partitions"), "args", sys.argv[1:])
print("sum", spark.range(100).repartition(4).agg(F.sum("id")).first()[0])
print("shout", [r[0] for r in spark.range(2).select(F.udf(shout, "string")("id")).collect()])
spark.stop()
again = SparkSession.builder.getOrCreate()
print("again", again.range(5).count())
"""

STREAM = """
import os
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
def show(frame, batch):
    frame.count()
rates.writeStream.queryName("rates").foreachBatch(show).trigger(processingTime="200 milliseconds").start()
"""

BAD_ROW = """
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.getOrCreate()
def parse(n):
    if n == 7:
        raise ValueError("bad row")
    return n
spark.range(10).select(F.udf(parse, "long")("id")).collect()
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverProcess]:
    with DriverProcess(tmp_path_factory.mktemp("driver")) as process:
        process.assign()
        process.await_registration()
        process.start_executor(0)
        yield process


@pytest.mark.gate
def test_registration_says_what_executors_need_and_tells_no_secret(driver: DriverProcess) -> None:
    registration = driver.await_registration()
    assert registration.driver_url.startswith("spark://CoarseGrainedScheduler@127.0.0.1:")
    assert "-Dspark.authenticate=true" in registration.java_options
    for secret in (driver.spark_secret, driver.secret):
        assert secret not in to_json(registration)
    jvms = Path(f"/proc/{driver.process.pid}/task/{driver.process.pid}/children").read_text().split()
    for pid in jvms:
        assert driver.spark_secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.gate
def test_script_runs_unmodified_and_finishes(driver: DriverProcess) -> None:
    driver.script(1, WORDS, argv=("a", "b"), helper=b"def shout(x):\n    return f'{x}!'\n")
    report = driver.job_master.await_phase(1, DriverPhase.FINISHED, DriverPhase.FAILED)
    assert report.phase is DriverPhase.FINISHED, report.error
    output = driver.output_text()
    for line in ("partitions 3 args ['a', 'b']", "sum 4950", "shout ['0!', '1!']", "again 5"):
        assert line in output
    # nothing but what the program printed
    assert len(output.splitlines()) == 4, output
    steps = {"DRIVER_STARTED", "JVM_UP", "SESSION_UP", "EXECUTORS_UP", "QUERY_STARTED"}
    assert steps <= set(report.milestones_ms)
    assert "0" in report.executor_ids


@pytest.mark.gate
def test_failure_of_user_code_is_one_line_with_the_users_traceback(driver: DriverProcess) -> None:
    driver.script(2, BAD_ROW)
    report = driver.job_master.await_phase(2, DriverPhase.FAILED, DriverPhase.FINISHED)
    assert report.error is not None
    assert report.error.code == "USER_CODE"
    assert report.error.message == "ValueError: bad row (in function parse, job.py:6)"
    assert 'raise ValueError("bad row")' in report.error.details
    assert "pyspark" not in report.error.details and "\tat " not in report.error.details
    assert not report.driver_unusable


@pytest.mark.gate
@pytest.mark.parametrize(
    ("attempt", "line", "code", "message"),
    [
        (3, "spark.read.csv('/nowhere/x.csv')", "SOURCE_NOT_FOUND", "/nowhere/x.csv"),
        (4, "spark.range(3).selectExpr('idd + 1')", "INVALID_EXPRESSION", "idd"),
        (5, "raise KeyError('k')", "PROGRAM_FAILED", "KeyError: 'k' (job.py:3)"),
        (6, "import sys; sys.exit(3)", "PROGRAM_FAILED", "status 3"),
        (7, "def f(:", "PROGRAM_SYNTAX", "job.py, line 3"),
    ],
)
def test_other_failures_are_one_line(
    driver: DriverProcess, attempt: int, line: str, code: str, message: str
) -> None:
    head = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
    driver.script(attempt, f"{head}{line}\n")
    report = driver.job_master.await_phase(attempt, DriverPhase.FAILED, DriverPhase.FINISHED)
    assert report.error is not None
    assert report.error.code == code, report.error
    assert message in report.error.message
    assert "\n" not in report.error.message


@pytest.mark.gate
def test_streaming_queries_are_adopted_reported_and_canceled(driver: DriverProcess) -> None:
    driver.script(8, STREAM)
    driver.job_master.await_phase(8, DriverPhase.RUNNING)
    reports = driver.job_master.reports
    wait_until(lambda: any(q.total_input_rows > 20 for r in reports for q in r.queries), "rows")
    assert {q.query for q in reports[-1].queries} == {"rates"}
    assert "FIRST_BATCH" in driver.job_master.reports[-1].milestones_ms
    driver.gateway.cancel()
    driver.job_master.await_phase(8, DriverPhase.CANCELED)


@pytest.mark.gate
def test_cancel_interrupts_a_main_that_only_sleeps(driver: DriverProcess) -> None:
    driver.script(9, "import time\nprint('asleep', flush=True)\ntime.sleep(600)\n")
    wait_until(lambda: "asleep" in driver.output_text(), "the main to sleep")
    driver.gateway.cancel()
    driver.job_master.await_phase(9, DriverPhase.CANCELED)


def test_attempt_that_replaces_another_keeps_its_queries(driver: DriverProcess) -> None:
    driver.script(20, STREAM)
    driver.job_master.await_phase(20, DriverPhase.RUNNING)
    driver.script(21, STREAM.replace("rates", "newer"))
    driver.job_master.await_phase(21, DriverPhase.RUNNING)
    reports = driver.job_master.reports
    wait_until(lambda: any(q.query == "newer" and q.batch_id > 8 for q in reports[-1].queries), "batches")
    assert reports[-1].phase is DriverPhase.RUNNING
    driver.gateway.cancel()
    driver.job_master.await_phase(21, DriverPhase.CANCELED)


@pytest.mark.gate
def test_executor_that_dies_is_replaced_without_a_failure(driver: DriverProcess) -> None:
    driver.script(30, STREAM)
    driver.job_master.await_phase(30, DriverPhase.RUNNING)
    old = next(p for p in driver._executors if p.poll() is None)
    old.kill()
    old.wait()
    driver.start_executor(1)
    before = len(driver.job_master.reports)
    reports = driver.job_master.reports
    wait_until(lambda: any(r.executor_ids == ("1",) and r.queries for r in reports[before:]), "the next one")
    batch = max(q.batch_id for q in reports[-1].queries)
    wait_until(lambda: max(q.batch_id for q in reports[-1].queries) > batch + 1, "its batches")
    assert reports[-1].phase is DriverPhase.RUNNING
    driver.gateway.cancel()
    driver.job_master.await_phase(30, DriverPhase.CANCELED)


@pytest.mark.gate
def test_shut_down_ends_the_process_and_its_executors(driver: DriverProcess) -> None:
    driver.gateway.shut_down()
    assert driver.process.wait(PATIENCE.condition_s) == 0
    for executor in driver._executors:
        executor.wait(PATIENCE.condition_s)


@pytest.mark.gate
def test_spare_ends_with_its_owner(tmp_path: Path) -> None:
    with DriverProcess(tmp_path) as spare:
        children = Path(f"/proc/{spare.process.pid}/task/{spare.process.pid}/children")
        jvm = int(wait_until(lambda: children.read_text().split(), "the JVM")[0])
        spare.process.send_signal(signal.SIGKILL)
        spare.process.wait()
        wait_until(lambda: not _alive(jvm), "the end of the JVM")


def _alive(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
