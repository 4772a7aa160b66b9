"""Submitting to the real cluster as a user does, and seeing what became of it."""

from __future__ import annotations

import io
import re
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil
from hdfs.util import HdfsError

from integration.conftest import ROOT, Commands, Started, wait_until
from integration.flights import assert_every_window_once
from integration.hadoop import HadoopCluster
from integration.processes import kill

EXAMPLES: Final = ROOT / "examples"
FLIGHTS: Final = EXAMPLES / "flight_delays.py"
SCRIPT: Final = EXAMPLES / "plain_pyspark.py"
#: two TaskManagers of one slot each, unless a test says otherwise
TWO_TASK_MANAGERS: Final = ("-p", "2", "-Dtaskmanager.numberOfTaskSlots=1")
WORDS: Final = {"to": 3, "be": 3, "or": 1, "not": 1, "that": 1, "is": 1, "the": 1, "question": 1}


class Yarn:
    """The cluster as tests use it.

    Parameters
    ----------
    hadoop : HadoopCluster
        Where everything runs.
    commands : Commands
        Runs ``yarnflow``.
    """

    def __init__(self, hadoop: HadoopCluster, commands: Commands) -> None:
        self.hadoop = hadoop
        self.hdfs = hadoop.hdfs.client
        self.home = f"/user/{psutil.Process().username()}"
        self._commands = commands

    # --- commands ---

    def start(self, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Started:
        """Start ``yarnflow …`` in the background."""
        return self._commands.start(*arguments, environment={**self.hadoop.env(), **(environment or {})})

    def run(
        self,
        *arguments: str | Path,
        environment: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Started:
        """Run ``yarnflow …`` to its end."""
        started = self.start(*arguments, environment=environment)
        started.wait(timeout_s)
        return started

    # --- YARN ---

    def live(self) -> list[str]:
        """Applications that have not ended."""
        states = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
        return [str(app["id"]) for app in self.hadoop.yarn_applications(states)]

    def ended(self, application_id: str) -> dict[str, Any]:
        """Report of an application once it has ended."""

        def report() -> dict[str, Any] | None:
            found = self.hadoop.yarn_application(application_id)
            return found if found["state"] in ("FINISHED", "FAILED", "KILLED") else None

        found = wait_until(report, f"{application_id} to end")
        assert found is not None
        return found

    def await_running(self, application_id: str, job_id: str) -> None:
        """Until the JobManager has said so.

        Read from the node's disk: a command that asks takes a second of processor time from the job.
        """
        running = f"{job_id}) switched from state CREATED to RUNNING"
        wait_until(
            lambda: any(running in text for text in self.hadoop.container_logs(application_id).values()),
            f"{job_id} to run",
        )

    def containers(self, application_id: str) -> list[str]:
        """Ids of the running containers, the master's first."""
        found = self.hadoop.containers(application_id)
        return sorted(container["id"] for container in found if container["state"] == "RUNNING")

    # --- HDFS ---

    def retained_state(self) -> list[str]:
        """What jobs have left below the default checkpoint directory.

        Not counted are half-written files of processes that were killed, which a sweep takes, and what is
        known of job keys, which stays.
        """
        kept = f"{self.home}/.yarnflow/checkpoints"

        def walk() -> list[list[Any]] | None:
            try:
                return [list(self.hdfs.walk(kept))]
            except HdfsError:
                # a folder went while it was walked; or there is nothing
                return None if self.hdfs.status(kept, strict=False) else [[]]

        (walked,) = wait_until(walk, "a moment in which nothing goes")
        return [
            f"{folder}/{name}"
            for folder, _folders, names in walked
            for name in names
            if not (name.startswith(".") and name.endswith(".tmp")) and "/checkpoints/job-keys" not in folder
        ]

    def drop_retained_state(self) -> None:
        """So that the next test finds none."""
        self.hdfs.delete(f"{self.home}/.yarnflow/checkpoints", recursive=True)

    def fetch(self, path: str, target: Path) -> Path:
        """Copy visible part files of a directory here."""
        target.mkdir(parents=True)
        for name in self.hdfs.list(path):
            if not name.startswith(("_", ".")):
                self.hdfs.download(f"{path}/{name}", str(target / name))
        return target

    def has_parts(self, path: str) -> bool:
        """Whether some part file stands in a directory already."""
        try:
            return any(name.startswith("part-") for name in self.hdfs.list(path))
        except HdfsError:
            return False

    def below(self, path: str) -> list[str]:
        """Entries of a directory; none when there is no such directory."""
        try:
            return list(self.hdfs.list(path))
        except HdfsError:
            return []

    def assert_windows(self, output: str, scratch: Path) -> None:
        """The flight delays are complete and right, window by window."""
        assert_every_window_once(self.fetch(output, scratch / output.rsplit("/", 1)[-1]))

    def assert_words(self, started: Started, output: str) -> None:
        """The word count script wrote what it must."""
        import pyarrow.parquet as pq

        words: Counter[str] = Counter()
        for name in self.hdfs.list(f"{output}/words"):
            if name.startswith("part-"):
                with self.hdfs.read(f"{output}/words/{name}") as reader:
                    table = pq.read_table(io.BytesIO(reader.read()))
                words.update(table["word"].to_pylist())
        assert dict(words) == WORDS, started.stderr

    # --- processes in containers ---

    def processes(self, what: str = "") -> list[psutil.Process]:
        """Processes of containers, oldest first, whose command line names ``what``."""
        found = []
        for process in self.hadoop.container_processes("container_"):
            try:
                if any(what in word for word in process.cmdline()):
                    found.append((process.create_time(), process))
            except psutil.Error:
                continue
        return [process for _time, process in sorted(found, key=lambda pair: pair[0])]

    def kill_one(self, what: str) -> int:
        """``kill -9`` the oldest such process and wait until it is gone; returns its pid."""
        victim = wait_until(lambda: self.processes(what), f"a process of {what}")[0]
        kill(victim)
        return int(victim.pid)

    def _is_empty(self, directory: str) -> bool:
        return not self.below(directory)

    def assert_nothing_left(self) -> None:
        """No application, no process of a container, no directory of an application on HDFS."""
        wait_until(lambda: not self.live(), "every application to end")
        wait_until(lambda: not self.processes(), "every process of a container to end")
        for directory in (f"{self.home}/.yarnflow/applications", f"{self.home}/.skein"):
            wait_until(partial(self._is_empty, directory), f"{directory} to be empty")

    def drop_leftovers(self) -> None:
        """So that what one test has left does not fail the next ones."""
        for directory in (f"{self.home}/.yarnflow/applications", f"{self.home}/.skein"):
            self.hdfs.delete(directory, recursive=True)


def application_id(submit: Started) -> str:
    """The application a submit has named."""
    return _named(submit, r"(application_\d+_\d+)", "an application")


def job_id(submit: Started) -> str:
    """The job a submit has named."""
    return _named(submit, r"JobID ([0-9a-f]{32})", "a job")


def _named(submit: Started, pattern: str, what: str) -> str:
    def named() -> str | None:
        ended = submit.process.poll() is not None
        if found := re.search(pattern, submit.stdout + submit.stderr):
            return found[1]
        assert not ended, f"the command ended without naming {what}: {submit.stderr[-3000:]}"
        return None

    found = wait_until(named, f"the command to name {what}")
    assert found is not None
    return found


def put_flights(hadoop: HadoopCluster, directory: str, scratch: Path) -> str:
    """Input of the flight delays example, one file per month; returns ``directory``."""
    names: dict[str, Any] = {}
    source = FLIGHTS.read_text().split("parser = argparse")[0]
    exec(compile(source, str(FLIGHTS), "exec"), names)
    names["write_monthly_files"](scratch)
    # Spark reads files in order of their times
    start_ms = int(time.time() * 1000) - 60_000
    for number, file in enumerate(sorted(scratch.glob("*.csv"))):
        hadoop.hdfs.put(f"{directory}/{file.name}", file.read_bytes())
        hadoop.hdfs.client.set_times(f"{directory}/{file.name}", modification_time=start_ms + 1000 * number)
    return directory
