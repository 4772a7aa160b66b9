"""The same faults under plain Spark on YARN: what a team has without yarnflow.

``spark-submit --deploy-mode cluster`` with a second attempt allowed, jars on HDFS as one archive;
the script has the queries of the numbered job, with their state and files on HDFS.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Final

import psutil
import pyspark

from integration.commits import Look, await_more, commits_below, first_after_s, gaps_s, newest
from integration.conftest import wait_until
from integration.faults.records import KEYS
from integration.hadoop import HadoopCluster
from integration.processes import EXECUTOR, kill

#: those that plain Spark has, by the names they have here
PEER_FAULTS: Final = ("driver_killed", "executor_killed")
QUERIES: Final = 2
WATCHED: Final = 8
#: between the starts of two batches
INTERVAL_S: Final = 2
_MASTER: Final = "org.apache.spark.deploy.yarn.ApplicationMaster"

_SCRIPT: Final = """
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.appName("peer").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 50).option("numPartitions", 1).load()

def start(frame, name):
    (frame.writeStream.format("parquet").option("path", "{home}/out-" + name)
        .option("checkpointLocation", "{home}/checkpoints/query-" + name)
        .trigger(processingTime="{interval_s} seconds").start())

start(rows, "rows")
start(
    rows.withWatermark("timestamp", "1 second")
        .groupBy((F.col("value") % {keys}).alias("part"), F.window("timestamp", "5 seconds"))
        .agg(F.sum("value"), F.count("*")),
    "sums",
)
spark.streams.awaitAnyTermination()
"""


def run_peer(
    hadoop: HadoopCluster, scratch: Path, faults: list[str], rounds: int
) -> dict[str, list[dict[str, float]]]:
    """Fault → what each round measured; each round has an application of its own."""
    home = "/bench-peer"
    client = hadoop.hdfs.client
    client.makedirs(home)
    archive = scratch / "spark-jars.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as jars:
        for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar"):
            jars.write(jar, jar.name)
    client.upload(f"{home}/spark-jars.zip", str(archive))
    found: dict[str, list[dict[str, float]]] = {fault: [] for fault in faults}
    for number in range(rounds):
        place = f"{home}/{number}"
        application = _submit(hadoop, scratch, place, f"{home}/spark-jars.zip")
        try:
            # the executor first: a lost ApplicationMaster leaves an attempt that is as new as any
            for fault in sorted(faults, reverse=True):
                print(f"peer: {fault} {number + 1} of {rounds}", file=sys.stderr, flush=True)
                found[fault].append(_measure(hadoop, application, place, fault))
                print(json.dumps(found[fault][-1]), file=sys.stderr, flush=True)
        finally:
            hadoop.kill_application(application)
            wait_until(lambda: not hadoop.containers(application), "its containers to end")
    client.delete(home, recursive=True)
    return found


def _submit(hadoop: HadoopCluster, scratch: Path, place: str, archive: str) -> str:
    script = scratch / "peer.py"
    script.write_text(_SCRIPT.format(home=place, keys=KEYS, interval_s=INTERVAL_S))
    before = {app["id"] for app in hadoop.yarn_applications()}
    command = [
        *(str(Path(sys.executable).parent / "spark-submit"), "--master", "yarn", "--deploy-mode", "cluster"),
        *("--driver-memory", "1200m", "--executor-memory", "1g", "--num-executors", "1"),
        *("--executor-cores", "1", "--conf", f"spark.yarn.archive=hdfs://{archive}"),
        *("--conf", f"spark.pyspark.python={sys.executable}", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.sql.shuffle.partitions=1", "--conf", "spark.yarn.maxAppAttempts=2"),
        *("--conf", "spark.yarn.submit.waitAppCompletion=false", str(script)),
    ]
    with (scratch / "peer.log").open("ab") as log:
        subprocess.run(command, check=True, stdout=log, stderr=log, env={**os.environ, **hadoop.env()})
    (application,) = {app["id"] for app in hadoop.yarn_applications()} - before
    return str(application)


def _measure(hadoop: HadoopCluster, application: str, place: str, fault: str) -> dict[str, float]:
    look: Look = lambda: commits_below(hadoop.hdfs.client, f"{place}/checkpoints")  # noqa: E731
    await_more(look, WATCHED, QUERIES)
    before = look()
    usual_s = statistics.median(gaps_s(before, before[-1].at_ms - 20_000))
    had = newest(before)
    what = _MASTER if fault == "driver_killed" else EXECUTOR
    victim = next(
        process
        for process in hadoop.container_processes(application.removeprefix("application_"))
        if _is_java(process, what)
    )
    fault_ms = time.time_ns() // 1_000_000
    kill(victim)
    dead_ms = time.time_ns() // 1_000_000
    commit_s = wait_until(lambda: first_after_s(look(), had, fault_ms, dead_ms), "commits of the peer")
    assert commit_s is not None
    await_more(look, 3, QUERIES)
    largest_s = max(gaps_s(look(), fault_ms))
    return {
        "commit_s": commit_s,
        "largest_gap_s": largest_s,
        "usual_gap_s": usual_s,
        "gap_ratio": largest_s / usual_s,
    }


def _is_java(process: psutil.Process, main_class: str) -> bool:
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    # on YARN the executor's class has a prefix; shells that start a JVM have the words as well
    return bool(words) and words[0].endswith("java") and any(word.endswith(main_class) for word in words)
