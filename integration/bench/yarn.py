"""How long a user waits on YARN: submit → ApplicationMaster → RUNNING → first committed batch.

The same query (hourly windows of the flights, two task threads in one executor) with input, output
and checkpoint on HDFS, as ``yarnflow submit --target yarn-per-job`` and as a PySpark script under
``spark-submit --master yarn --deploy-mode cluster`` whose jars lie on HDFS as one archive.  "First
commit" is the same mark for both: Spark's ``commits/0`` in the query's checkpoint directory.  Rounds
alternate on one cluster; the ratio is yarnflow ÷ spark-submit, below 1 is faster.

The first submit of yarnflow uploads what containers need; later ones find it in YARN's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests
from hdfs import InsecureClient
from hdfs.util import HdfsError

from integration.bench.start import SCRIPT, breakdown
from integration.hadoop import HadoopCluster
from integration.yarn.jobs import put_flights

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
HOME = "/bench"


class Watch:
    """Looks at HDFS and YARN while a submit runs, and notes when something is first seen."""

    def __init__(self, hdfs: InsecureClient, resource_manager: str, checkpoint: str) -> None:
        self._hdfs = hdfs
        self._apps = f"{resource_manager}/ws/v1/cluster/apps"
        self._checkpoint = checkpoint
        self._session = requests.Session()
        self._session.trust_env = False
        self._before = set(self._states())
        self.seen_s: dict[str, float] = {}

    def run(self, process: subprocess.Popen[Any], start: float) -> None:
        """Watch until the command has ended."""

        while process.poll() is None:
            states = self._states()
            mine = {state for application, state in states.items() if application not in self._before}
            if mine & {"ACCEPTED", "RUNNING"}:
                self._note("application_accepted", start)
            if "RUNNING" in mine:
                self._note("application_master_running", start)
            if self._committed():
                self._note("first_commit", start)
            time.sleep(0.05)
        if self._committed():
            self._note("first_commit", start)

    def _note(self, what: str, start: float) -> None:
        self.seen_s.setdefault(what, round(time.monotonic() - start, 2))

    def _states(self) -> dict[str, str]:
        apps = self._session.get(self._apps, timeout=10).json().get("apps") or {}
        return {app["id"]: app["state"] for app in apps.get("app", [])}

    def _committed(self) -> bool:
        return any(self._exists(f"{query}/commits/0") for query in self._queries(self._checkpoint, 2))

    def _queries(self, path: str, depth: int) -> list[str]:
        """The checkpoint directory itself and directories below it."""
        found = [path]
        if depth:
            try:
                entries = self._hdfs.list(path, status=True)
            except HdfsError:
                return found
            for name, status in entries:
                if status["type"] == "DIRECTORY" and name not in ("commits", "offsets", "state", "sources"):
                    found += self._queries(f"{path}/{name}", depth - 1)
        return found

    def _exists(self, path: str) -> bool:
        return self._hdfs.status(path, strict=False) is not None


def bytes_below(hdfs: InsecureClient, path: str) -> int:
    """Bytes in a directory; 0 when there is none."""
    try:
        return int(hdfs.content(path)["length"])
    except HdfsError:
        return 0


def measure(
    command: list[str], environment: Mapping[str, str], log: Path, watch: Watch
) -> dict[str, Any]:
    """One submit to its end; times in seconds since the command was typed."""
    start = time.monotonic()
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=ROOT, env=dict(environment))
        watcher = threading.Thread(target=watch.run, args=(process, start))
        watcher.start()
        status = process.wait()
        watcher.join()
    if status != 0 or "first_commit" not in watch.seen_s:
        raise SystemExit(f"{' '.join(command)} ended with status {status}:\n{log.read_text()[-4000:]}")
    return {**watch.seen_s, "end": round(time.monotonic() - start, 2)}


def upload_inputs(cluster: HadoopCluster, scratch: Path) -> str:
    """Flights as one file per month, and Spark's jars as one archive; returns the archive's path."""
    import pyspark

    put_flights(cluster, f"{HOME}/flights", scratch / "flights")
    archive = scratch / "spark-jars.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as jars:
        for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar"):
            jars.write(jar, jar.name)
    cluster.hdfs.client.upload(f"{HOME}/spark-jars.zip", str(archive))
    return f"{HOME}/spark-jars.zip"


def main() -> None:
    """Run the rounds and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="use the cluster that scripts/hadoop started there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        own = arguments.directory is None
        cluster = HadoopCluster.start(Path(scratch) / "hadoop") if own else HadoopCluster(arguments.directory)
        try:
            print(json.dumps(run(cluster, Path(scratch), arguments.rounds)))
        finally:
            if own:
                cluster.stop()


def run(cluster: HadoopCluster, scratch: Path, rounds: int) -> dict[str, Any]:
    """All rounds on a running cluster."""
    environment = {**os.environ, **cluster.env()}
    hdfs = cluster.hdfs.client
    hdfs.delete(HOME, recursive=True)
    hdfs.makedirs(HOME)
    jars = upload_inputs(cluster, scratch)
    text = (ROOT / "examples" / "flight_delays.py").read_text()
    flight = re.search(r'FLIGHT = """(.*?)"""', text, re.S)
    scheduled = re.search(r'SCHEDULED = "(.*?)"', text)
    assert flight and scheduled
    staging = f"{HOME}/staging"
    uploaded: list[int] = []
    results: dict[str, list[dict[str, Any]]] = {"yarnflow_first": [], "yarnflow": [], "spark_submit": []}
    for number in range(rounds + 1):
        # the very first one uploads; it is shown, and not among the medians
        name = "yarnflow" if number else "yarnflow_first"
        place, log = f"{HOME}/yarnflow-{number}", scratch / f"yarnflow-{number}.log"
        before = bytes_below(hdfs, f"{staging}/cache")
        result = measure(
            [
                *(str(BIN / "yarnflow"), "submit", "--verbose", "--target", "yarn-per-job", "-p", "2"),
                *("-Dtaskmanager.numberOfTaskSlots=2", f"-Dyarn.staging-directory={staging}"),
                f"-Dexecution.checkpointing.dir={place}/checkpoint",
                *("examples/flight_delays.py", "--input", f"{HOME}/flights", "--output", f"{place}/windows"),
            ],
            environment,
            log,
            Watch(hdfs, cluster.resource_manager, f"{place}/checkpoint"),
        )
        uploaded.append(bytes_below(hdfs, f"{staging}/cache") - before)
        result["milestones_s"] = breakdown(log)
        results[name].append(result)
        if not number:
            continue
        place, log = f"{HOME}/spark-{number}", scratch / f"spark-{number}.log"
        script = scratch / f"spark-{number}.py"
        script.write_text(
            SCRIPT.format(
                root=str(ROOT),
                flight=flight[1],
                scheduled=scheduled[1],
                source=f"{HOME}/flights",
                output=f"{place}/windows",
            )
        )
        results["spark_submit"].append(
            measure(
                [
                    *(str(BIN / "spark-submit"), "--master", "yarn", "--deploy-mode", "cluster"),
                    *("--driver-memory", "1200m", "--executor-memory", "1g", "--num-executors", "1"),
                    *("--executor-cores", "2", "--conf", f"spark.yarn.archive=hdfs://{jars}"),
                    *("--conf", f"spark.pyspark.python={sys.executable}", "--conf", "spark.ui.enabled=false"),
                    *("--conf", "spark.yarn.report.interval=200ms", str(script)),
                ],
                environment,
                log,
                Watch(hdfs, cluster.resource_manager, f"{place}/windows-checkpoint"),
            )
        )
    hdfs.delete(HOME, recursive=True)
    median = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0] if key != "milestones_s"}
        for name, runs in results.items()
        if runs
    }
    return {
        "bench": "yarn",
        "rounds": rounds,
        "median_s": median,
        "ratio_first_commit": round(
            median["yarnflow"]["first_commit"] / median["spark_submit"]["first_commit"], 3
        ),
        "ratio_first_commit_of_first_submit": round(
            median["yarnflow_first"]["first_commit"] / median["spark_submit"]["first_commit"], 3
        ),
        "ratio_end": round(median["yarnflow"]["end"] / median["spark_submit"]["end"], 3),
        "uploaded_bytes": {"first_submit": uploaded[0], "later_submits": uploaded[1:]},
        "runs": results,
    }


if __name__ == "__main__":
    main()
