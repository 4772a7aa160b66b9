"""Makes this machine's class-data archives: ``python -m yarnflow.entrypoint.cds``.

Takes about half a minute, once per machine, Java and Spark.  Safe to start any number of times:
one process works, the others leave at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from yarnflow.errors import YarnflowError
from yarnflow.process.spawn import wrap_command
from yarnflow.spark.class_data_sharing import build_archives, default_cache_dir
from yarnflow.spark.java import find_java
from yarnflow.spark.jvm import DRIVER_JVM_FLAGS

#: nobody waits for this process, so it must end by itself whatever happens
_LIMIT_S: Final = 600


def start_in_background() -> None:
    """Start making the archives in a process of its own, at the lowest priority.

    It is no child that ends with this process, because the best time is when a job has just
    ended; it ends by itself after some minutes at the latest.
    """
    subprocess.Popen(
        [sys.executable, "-m", "yarnflow.entrypoint.cds", "--quiet"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        start_new_session=True,
        preexec_fn=_lowest_priority,
    )


def _lowest_priority() -> None:
    os.nice(19)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the archives if there are none; returns the exit status."""
    parser = argparse.ArgumentParser(prog="yarnflow.entrypoint.cds")
    parser.add_argument("--cache-dir", type=Path)
    parser.add_argument("--quiet", action="store_true")
    parsed = parser.parse_args(arguments)
    signal.alarm(_LIMIT_S)
    try:
        from yarnflow.spark.training import train

        java = find_java()
        cache_dir = parsed.cache_dir or default_cache_dir()
        made = build_archives(
            java, cache_dir, lambda flags: train(java, list(DRIVER_JVM_FLAGS), flags, wrap_command)
        )
    except YarnflowError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    if not parsed.quiet:
        print(f"class-data archives {'made' if made else 'are there already, or being made,'} in {cache_dir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
