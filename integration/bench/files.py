"""What the driver's small questions about files cost, beside the same asked in the way py4j offers first.

``path``: a Java ``Path`` by the class's full name ÷ by ``jvm.org.apache.hadoop.fs.Path``, whose packages
the JVM looks for in every jar.  ``missing``: a look into a directory that is not there, as a new query makes
some ÷ the same with Java's error, about which PySpark asks dozens of questions.  Below 1 is faster.  Local
files, one JVM with Spark's class path, medians; prints one line of JSON::

    scripts/bench files --calls 300
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from integration.spark.translate_support import make_session
from yarnflow.spark.hadoop_files import HadoopFiles

#: the JVM compiles what it does often
WARM_UP: Final = 50


def median_ms(ask: Callable[[], object], calls: int) -> float:
    """Of one call."""
    times_s = []
    for number in range(WARM_UP + calls):
        begin_s = time.perf_counter()
        ask()
        if number >= WARM_UP:
            times_s.append(time.perf_counter() - begin_s)
    return statistics.median(times_s) * 1000


def measure(directory: Path, calls: int) -> dict[str, Any]:
    """All figures."""
    spark = make_session("local[1]")
    files = HadoopFiles(spark)
    jvm: Any = spark._jvm
    there, missing = f"{directory}/there", f"{directory}/missing"
    files.write(there, b"content")

    def error_of_java() -> None:
        try:
            files.system(missing).listStatus(files.path(missing))
        except Py4JJavaError:
            pass

    asked: dict[str, Callable[[], object]] = {
        "path": lambda: files.path(there),
        "path_by_packages": lambda: jvm.org.apache.hadoop.fs.Path(there),
        "missing": lambda: files.entries(missing),
        "missing_by_error": error_of_java,
        "exists": lambda: files.exists(there),
        "read": lambda: files.read(there),
        "entries": lambda: files.entries(str(directory)),
    }
    found = {name: median_ms(ask, calls) for name, ask in asked.items()}
    spark.stop()
    return {
        "bench": "files",
        "calls": calls,
        "median_ms": {name: round(value, 3) for name, value in found.items()},
        "path": round(found["path"] / found["path_by_packages"], 3),
        "missing": round(found["missing"] / found["missing_by_error"], 3),
    }


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps(measure(Path(directory), arguments.calls)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
