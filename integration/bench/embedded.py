"""How long ``execute()`` takes in a plain ``python job.py``: the first of a process, and the later ones.

The job is as small as can be (two rows, a Python function, a print sink), so that its start is all there
is.  Later ones find JobManager, TaskManager, and the driver and executor of the one before; with
``driver.idle-timeout`` 0 a spare driver instead, which becomes warm in the time between them,
``--pause``.  The ratio is later ÷ first.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROGRAM = """
import json, sys, time
from yarnflow.api import StreamExecutionEnvironment

def shout(text):
    return text.upper()

jobs, pause_s = int(sys.argv[1]), float(sys.argv[2])
seconds = []
for number in range(jobs):
    time.sleep(pause_s if number else 0)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(["a", "b"]).map(shout, output_type="STRING").print()
    began = time.monotonic()
    client = env.execute_async(f"job {number}")
    accepted = time.monotonic()
    net_s = client.get_job_execution_result().result().get_net_runtime() / 1000
    ended = time.monotonic()
    # net is from RUNNING to the end
    seconds.append([accepted - began, ended - accepted - net_s, net_s, ended - began])
print(json.dumps(seconds))
"""
_PARTS = ("accepted", "until_running", "running", "execute")


def main() -> None:
    """Run the rounds and print the medians as JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench embedded")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS")
    arguments = parser.parse_args()
    runs: list[list[list[float]]] = []
    with tempfile.TemporaryDirectory(prefix="yarnflow-bench-") as name:
        program = Path(name) / "job.py"
        program.write_text(PROGRAM)
        command = [sys.executable, str(program), str(arguments.jobs), str(arguments.pause)]
        environment = {**os.environ, "YARNFLOW_CONF_IO_TMP_DIRS": name}
        for _ in range(arguments.rounds):
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
    first, later = _median([run[0] for run in runs]), _median([job for run in runs for job in run[1:]])
    result: dict[str, Any] = {
        "bench": "embedded",
        "pause_s": arguments.pause,
        "first_s": first,
        "later_s": later,
        "ratio": round(later["execute"] / first["execute"], 3),
        "runs": runs,
    }
    print(json.dumps(result))


def _median(jobs: list[list[float]]) -> dict[str, float]:
    columns = zip(*jobs, strict=True)
    return {part: round(statistics.median(column), 2) for part, column in zip(_PARTS, columns, strict=True)}


if __name__ == "__main__":
    main()
