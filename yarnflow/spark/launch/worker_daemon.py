"""The process that Python workers are forked from, with the slow imports done once.

Spark's own daemon imports nothing of what a vectorised function needs, so every worker it forks
spends most of a second of CPU time on importing pandas and pyarrow again.  Here they are there
before the first fork.  Runs on TaskManagers, as ``spark.python.daemon.module``.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Final

_PRELOADED: Final = (
    "pyspark.worker",
    "pyarrow",
    "pandas",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.conversion",
)


def preload() -> None:
    """Import what workers need; a worker that misses something reports it itself."""
    # threads do not survive a fork, and a worker has one core anyway
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in _PRELOADED:
        try:
            importlib.import_module(name)
        except Exception as error:
            print(f"{name} could not be imported ahead: {error}", file=sys.stderr)


if __name__ == "__main__":
    from pyspark.daemon import manager

    preload()
    manager()
