"""How long a user waits: submit → RUNNING → first result, against plain ``spark-submit``.

The same query (hourly windows of the flights) runs as the example under ``yarnflow submit`` and
as a PySpark script under ``spark-submit``: in one JVM (``local[2]``) and with an executor process
of its own (``local-cluster[1,2,1024]``), which is what yarnflow runs.  Rounds alternate, medians
are compared; the ratio is yarnflow ÷ spark-submit, below 1 is faster.
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
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from integration.living_files import files_below

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent

SCRIPT = """
import sys
from pyspark.sql import SparkSession, functions as F
sys.path.insert(0, {root!r})
flight = {flight!r}
scheduled = {scheduled!r}
spark = SparkSession.builder.appName("flights").config("spark.sql.shuffle.partitions", "2").getOrCreate()
flights = (spark.readStream.schema(flight).option("header", True).option("nullValue", "NA")
           .option("maxFilesPerTrigger", 1).csv({source!r})
           .selectExpr(scheduled, "origin", "carrier", "dep_delay").withWatermark("scheduled", "1 hour"))
windows = (flights.groupBy("origin", "carrier", F.window("scheduled", "1 hour"))
           .agg(F.count("*").alias("flights"), F.count("dep_delay"), F.avg("dep_delay"),
                F.expr("avg(CAST(dep_delay > 15 AS INT))")))
windows = windows.toDF("origin", "carrier", "window", "flights", "departed", "mean_dep_delay", "share_late")
query = (windows.writeStream.format("parquet").option("path", {output!r})
         .option("checkpointLocation", {output!r} + "-checkpoint").trigger(availableNow=True).start())
query.awaitTermination()
"""


def _has_rows(path: Path) -> bool:
    """Spark writes files without rows as well; a file that is not complete yet has no footer."""
    try:
        return bool(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException):
        return False


def first_result_s(output: Path, process: subprocess.Popen[Any], start: float) -> float:
    """Seconds until the first row stands in ``output``."""
    ended = False
    while not ended:
        ended = process.poll() is not None
        if any(_has_rows(path) for path in files_below(output, "part-*.parquet")):
            return time.monotonic() - start
        time.sleep(0.05)
    raise SystemExit("the job ended without a result")


def run(command: list[str], output: Path, log: Path, environment: dict[str, str]) -> dict[str, Any]:
    """One submit; times in seconds since the command was typed."""
    start = time.monotonic()
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, cwd=ROOT, env={**os.environ, **environment}
        )
        first = first_result_s(output, process, start)
        status = process.wait()
    if status != 0:
        raise SystemExit(f"{' '.join(command)} ended with status {status}:\n{log.read_text()[-2000:]}")
    return {"first_result_s": round(first, 2), "end_s": round(time.monotonic() - start, 2)}


def breakdown(log: Path) -> dict[str, float]:
    """Milestones the command printed with ``--verbose``, in seconds since the job was submitted."""
    found = re.findall(r"^\s*(-?\d+\.\d+) s\s+([A-Z_]+)$", log.read_text(), re.M)
    return {name: float(seconds) for seconds, name in found}


def main() -> None:
    """Run the rounds and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    text = (ROOT / "examples" / "flight_delays.py").read_text()
    flight = re.search(r'FLIGHT = """(.*?)"""', text, re.S)
    scheduled = re.search(r'SCHEDULED = "(.*?)"', text)
    assert flight and scheduled
    results: dict[str, list[dict[str, Any]]] = {
        "yarnflow": [],
        "yarnflow_unprepared": [],
        "spark_local": [],
        "spark_local_cluster": [],
    }
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        for number in range(arguments.rounds):
            # without the archives of `yarnflow prepare`: a cache directory that has none
            for name, environment in (("yarnflow", {}), ("yarnflow_unprepared", {"XDG_CACHE_HOME": scratch})):
                output, log = directory / f"{name}-{number}", directory / f"{name}-{number}.log"
                command = [str(BIN / "yarnflow"), "submit", "--verbose", "-p", "2"]
                command += ["examples/flight_delays.py", "--output", str(output)]
                result = run(command, output, log, environment)
                result["milestones_s"] = breakdown(log)
                results[name].append(result)
            for name, master in (
                ("spark_local", "local[2]"),
                ("spark_local_cluster", "local-cluster[1,2,1024]"),
            ):
                output, log = directory / f"{name}-{number}", directory / f"{name}-{number}.log"
                script = directory / f"{name}-{number}.py"
                script.write_text(
                    SCRIPT.format(
                        root=str(ROOT),
                        flight=flight[1],
                        scheduled=scheduled[1],
                        source=str(ROOT / "data/flights"),
                        output=str(output),
                    )
                )
                spark = [str(BIN / "spark-submit"), "--master", master, "--conf", "spark.ui.enabled=false"]
                results[name].append(
                    run([*spark, str(script)], output, log, {"PYSPARK_PYTHON": sys.executable})
                )
    median = {name: statistics.median(r["first_result_s"] for r in runs) for name, runs in results.items()}
    print(
        json.dumps(
            {
                "bench": "start",
                "rounds": arguments.rounds,
                "median_first_result_s": median,
                "ratio_unprepared_to_spark_local": round(
                    median["yarnflow_unprepared"] / median["spark_local"], 3
                ),
                "ratio_to_spark_local": round(median["yarnflow"] / median["spark_local"], 3),
                "ratio_to_spark_local_cluster": round(median["yarnflow"] / median["spark_local_cluster"], 3),
                "runs": results,
            }
        )
    )


if __name__ == "__main__":
    main()
