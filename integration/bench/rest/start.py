"""What a JobManager takes until it serves, and its memory: this version's and an earlier one's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.request import Request, urlopen

import psutil

from integration.bench.rest.flink import headers

#: below the temporary directory
_TOKENS: Final = "yarnflow-*/standalone-*/rest-tokens.json"
_LIMIT_S: Final = 180.0
#: not the installed one, which belongs to one version
_COMMAND: Final = "import sys; from yarnflow.cli.main import main; sys.exit(main())"
#: after which no library is still being loaded
_SETTLED_S: Final = 8.0


def measure_starts(checkouts: dict[str, Path], rounds: int) -> dict[str, dict[str, float]]:
    """Medians by version; versions take turns.

    Parameters
    ----------
    checkouts : dict
        Name of a version → folder with its package.
    """
    found: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for _ in range(rounds):
        for name, folder in checkouts.items():
            found[name].append(_one(folder))
    return {
        name: {key: round(median(each[key] for each in of), 2) for key in of[0]} for name, of in found.items()
    }


def _one(checkout: Path) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as scratch:
        began = time.monotonic()
        process = subprocess.Popen(
            [
                sys.executable, "-c", _COMMAND, "jobmanager", f"-Dio.tmp.dirs={scratch}",
                "-Djobmanager.rpc.port=0", "-Drest.port=0",
            ],
            cwd=scratch, env={**os.environ, "PYTHONPATH": str(checkout)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            end = began + _LIMIT_S
            told = _published(Path(scratch), end)
            serves_s = time.monotonic() - began
            master = psutil.Process(told["pid"])
            serves_cpu_s = _cpu_s(master)
            _ask(Path(scratch), told["web_address"], end)
            answers_s = time.monotonic() - began
            time.sleep(_SETTLED_S)
            settled_cpu_s = _cpu_s(master)
            for _ in range(20):
                _ask(Path(scratch), told["web_address"], end)
            asked_mib = master.memory_info().rss / (1 << 20)
            package = Path(master.environ()["PYTHONPATH"])
            if package != checkout:
                raise SystemExit(f"rest: {package} was measured instead of {checkout}")
            return {
                "serves_s": serves_s,
                "rest_answers_s": answers_s,
                "serves_cpu_s": serves_cpu_s,
                "settled_cpu_s": settled_cpu_s,
                "rss_mib": asked_mib,
            }
        finally:
            process.terminate()
            process.wait(60)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _published(scratch: Path, end: float) -> dict[str, Any]:
    while time.monotonic() < end:
        for file in scratch.glob("yarnflow-*/standalone-*/jobmanager.json"):
            return dict(json.loads(file.read_text()))
        time.sleep(0.01)
    raise SystemExit("rest: no JobManager serves")


def _ask(scratch: Path, address: str, end: float) -> None:
    while True:
        try:
            # an earlier version has none
            token = next((json.loads(file.read_text())["read"] for file in scratch.glob(_TOKENS)), "")
            request = Request(f"{address}/overview", headers=headers(token))
            with urlopen(request, timeout=20) as response:
                response.read()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
