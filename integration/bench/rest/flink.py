"""A real JobManager of Flink with many jobs that run as far as they can without TaskManagers."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

import psutil

from integration.bench.pyflink.engines import peer
from integration.servers import free_ports

_START_S: Final = 180.0
_SUBMIT_S: Final = 1_800.0
#: as Flink's own scripts start a JobManager whose memory is the default, 1600m
_MEMORY: Final = ("-Xmx1073741824", "-Xms1073741824", "-XX:MaxMetaspaceSize=268435456")
_OPENED: Final = tuple(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("util", "lang"))
_ENTRYPOINT: Final = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"


@dataclass(frozen=True)
class FlinkJobManager:
    """One that serves."""

    url: str
    process: psutil.Process
    seconds_until_it_serves: float
    classes: str
    port: int

    @property
    def rss_mib(self) -> int:
        """What it has resident."""
        return int(self.process.memory_info().rss >> 20)

    def cpu_s(self) -> float:
        """What it has had of a processor."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def submit(self, jobs: int) -> list[str]:
        """Their ids, when all of them run and wait for slots."""
        program = Path(__file__).with_name("SubmitJobs.java")
        subprocess.run(
            ["java", "-Xmx512m", *_OPENED, "-cp", self.classes, str(program), str(self.port), str(jobs)],
            check=True, stdout=subprocess.DEVNULL, timeout=_SUBMIT_S,
        )  # fmt: skip
        end = time.monotonic() + _START_S
        while True:
            told = get(f"{self.url}/jobs")["jobs"]
            running = [job["id"] for job in told if job["status"] == "RUNNING"]
            if len(running) == jobs:
                return running
            if time.monotonic() > end:
                raise SystemExit(f"rest: only {len(running)} of {jobs} jobs of Flink run")
            time.sleep(0.2)


@contextmanager
def flink_job_manager(directory: Path) -> Iterator[FlinkJobManager]:
    """Started, and ended with the block."""
    flink = next(peer("pyflink").glob("lib/python3*/site-packages/pyflink"))
    classes = f"{flink / 'lib'}/*"
    rest, rpc = free_ports(2)
    (directory / "config.yaml").write_text(
        f"jobmanager.rpc.address: 127.0.0.1\njobmanager.rpc.port: {rpc}\nrest.port: {rest}\n"
        "rest.address: 127.0.0.1\nrest.bind-address: 127.0.0.1\nslot.request.timeout: 24 h\n"
    )
    began = time.monotonic()
    with (directory / "flink.log").open("wb") as log:
        process = subprocess.Popen(
            ["java", *_MEMORY, *_OPENED, "-cp", classes, _ENTRYPOINT, "--configDir", str(directory)],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    url = f"http://127.0.0.1:{rest}"
    try:
        while True:
            try:
                get(f"{url}/overview")
                break
            except OSError:
                if process.poll() is not None or time.monotonic() - began > _START_S:
                    raise SystemExit(f"rest: {(directory / 'flink.log').read_text()[-2000:]}") from None
                time.sleep(0.05)
        took_s = time.monotonic() - began
        yield FlinkJobManager(url, psutil.Process(process.pid), took_s, classes, rest)
    finally:
        process.kill()
        process.wait()


def get(url: str, token: str = "") -> Any:
    """The JSON that a server answers."""
    with urlopen(Request(url, headers=headers(token)), timeout=60) as response:
        return json.load(response)


def headers(token: str) -> dict[str, str]:
    """With which a request says who asks; none where nobody wants to know."""
    return {"Authorization": f"Bearer {token}"} if token else {}
