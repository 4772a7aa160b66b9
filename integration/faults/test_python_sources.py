"""Data sources of users: kill -9 of the driver, and scripts that bring theirs along."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import ROOT, Commands, wait_until
from integration.processes import kill_driver

DATA_SOURCES = ROOT / "integration" / "spark" / "data_sources.py"
#: fifty rows in each batch
_PROGRAM = """
import sys
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.python import PythonSink, PythonSource
from data_sources import Numbers, NumbersStream

env = StreamExecutionEnvironment.get_execution_environment()
source = PythonSource(Numbers, {"rows": 600, "batch": 50})
rows = env.from_source(source, None, "numbers")
doubled = rows.map(
    lambda row: (row.n * 2, row.text), Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])
)
doubled.sink_to(PythonSink(Numbers, {"path": sys.argv[1]}))
env.execute("numbers")
"""
_SCRIPT = """
import sys
from pyspark.sql import SparkSession
from data_sources import Numbers, Polled

spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(Numbers)
spark.dataSource.register(Polled)
print("rows", spark.read.format("numbers").option("rows", 6).load().count())
numbers = spark.readStream.format("numbers").option("rows", 20).load()
query = numbers.writeStream.format("numbers").option("path", sys.argv[1])
query.option("checkpointLocation", sys.argv[2]).trigger(availableNow=True).start().awaitTermination()
"""


def _written(path: Path) -> list[list[Any]]:
    files = sorted(path.glob("*.json"))
    return [row for file in files for row in json.loads(file.read_text() or "[]")]


@pytest.mark.drill
def test_driver_killed(yarnflow: Commands, tmp_path: Path) -> None:
    """Each row comes once, though batches are read and committed again."""
    out = tmp_path / "out"
    shutil.copy(DATA_SOURCES, tmp_path)
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    started = yarnflow.start("submit", "-p", "2", "-Dexecution.micro-batch.interval=1 s", program, out)
    wait_until(lambda: len(list(out.glob("*.json"))) >= 2, "two batches")
    assert started.process.poll() is None, started.stderr
    kill_driver(yarnflow.mark)
    wait_until(lambda: len(_written(out)) >= 600, "all rows")
    assert started.stderr.count("to RESTARTING") == 1
    assert sorted(_written(out)) == sorted([n * 2, f"row {n}"] for n in range(600))
    started.process.send_signal(signal.SIGINT)
    started.wait()


def test_a_script_registers_what_it_brings(yarnflow: Commands, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    found = yarnflow.run("submit", "-pyfs", DATA_SOURCES, script, out, checkpoint)
    assert found.wait() == 0, found.stderr
    assert "rows 6" in found.stdout
    assert _written(out) == [[n, f"row {n}"] for n in range(20)]
