"""The command of each engine for a case."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from integration.bench.pyflink.engines import Command, pyflink_command, yarnflow_command
from integration.bench.stream.cases import (
    FLINK_PANDAS,
    FLINK_SQL,
    PROCESS,
    SPARK,
    SPARK_ARROW,
    THREAD,
    YARNFLOW,
    Case,
)
from integration.bench.stream.inputs import Bids

_PROGRAMS: Final = Path(__file__).parent / "programs"
_PYFLINK_MODES: Final = {PROCESS: "process", THREAD: "thread"}


def command(engine: str, case: Case, bids: Bids, out: Path, directory: Path) -> Command:
    """The command that runs a case on an engine.

    Parameters
    ----------
    engine : str
    case : Case
        Has a program for the engine.
    bids : Bids
    out : Path
        Where results go.
    directory : Path
        An empty folder for whatever else the run leaves.
    """
    words = [str(_PROGRAMS / case.programs[engine]), case.pipeline, str(out), *bids.arguments]
    if engine == YARNFLOW:
        return yarnflow_command([*words, *(["process"] if case.pipeline == "rows" else [])], directory)
    if engine in (SPARK, SPARK_ARROW):
        arrow = ["arrow"] if engine == SPARK_ARROW else []
        return spark_command(2, [*(spark_kafka() if case.kafka else []), *words, *arrow], directory)
    if engine in (FLINK_SQL, FLINK_PANDAS):
        words += [str(flink_kafka_jar()), *(["pandas"] if engine == FLINK_PANDAS else [])]
    else:
        words.append(_PYFLINK_MODES[engine])
    return pyflink_command(words, directory)


def spark_command(threads: int, words: Sequence[str], directory: Path) -> Command:
    """``spark-submit`` of options, a program and its arguments, in one process."""
    submit = Path(sys.executable).with_name("spark-submit")
    return Command(
        [str(submit), "--master", f"local[{threads}]", "--driver-memory", "2g", *words],
        directory,
        {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": ""},
    )


def spark_kafka() -> list[str]:
    """Options of spark-submit for its connector and what that needs."""
    return ["--jars", ",".join(str(jar) for jar in _jars() if not jar.name.startswith("flink"))]


def flink_kafka_jar() -> Path:
    """Flink's connector, which has all in itself."""
    return next(jar for jar in _jars() if jar.name.startswith("flink"))


@cache
def _jars() -> list[Path]:
    """Fetched once per machine."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache_directory = base / "yarnflow/bench-peers"
    if not (cache_directory / ".complete").exists():
        subprocess.run(
            [
                *("mvn", "-q", "-B", "-f", str(Path(__file__).with_name("pom.xml"))),
                *("dependency:copy-dependencies", f"-DoutputDirectory={cache_directory}"),
                "-DincludeScope=runtime",
            ],
            check=True,
            stdout=sys.stderr,
        )
        (cache_directory / ".complete").touch()
    return sorted(cache_directory.glob("*.jar"))
