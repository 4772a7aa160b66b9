"""What many jobs and many TaskManagers cost one JobManager.

One process is a whole JobManager; the second plays its TaskManagers and the drivers of its jobs,
each over a connection of its own; the third is its clients, each of which waits by long polls for
changes of one job.  The messages are real ones: jobs are submitted, slots requested and offered,
executors asked for, jobs deployed and reported RUNNING.  Prints one line of JSON::

    scripts/bench scale --jobs 500 --task-managers 1000 --clients 256 --seconds 10

Two phases follow, when all jobs run: ``steady``, where each driver reports one batch a second and each
TaskManager sends its heartbeat every 10 s; ``saturated``, where each driver sends its next report as
soon as the last one is answered.  ``cpu_percent`` is the JobManager's, of one core;
``publishes_per_second`` counts new versions of jobs that clients could read, ``changes_per_second``
those that the waiting clients were sent.  ``board`` is the part alone where jobs are published and
waited for, in one process without any network: how often it can be published, with the clients waiting
and without.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import resource
import secrets
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from integration.bench.heartbeats import SECRET, connect, heartbeat_frame, registration_frame
from integration.bench.scale_peers import Driver, Peers, Sender, poll
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import DriverId, JobId, VertexId
from yarnflow.core.messages import (
    DriverAssignment,
    JobDetails,
    JobOverview,
    JobSubmission,
    ProgramKind,
)
from yarnflow.core.states import JobStatus
from yarnflow.entrypoint.ha_services import services_of
from yarnflow.entrypoint.master.job_manager import JobManager
from yarnflow.graph.codec import job_graph_to_json
from yarnflow.graph.job_graph import JobGraph, JobVertex
from yarnflow.process.clock import SystemClock
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.member import Member, Role
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.testing.driver_launcher import FakeDriverLauncher
from yarnflow.testing.resource_provider import FakeResourceProvider

#: of TaskManagers
HEARTBEAT_S: Final = 10.0
#: of drivers
REPORT_S: Final = 1.0
SET_UP_S: Final = 600.0
SLOTS: Final = 4


class _Launcher(FakeDriverLauncher):
    """Tells the other process of each driver that is wanted."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self._pipe = pipe
        self._sending = threading.Lock()
        self._wanted: set[DriverId] = set()

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        with self._sending:
            self._wanted.add(assignment.driver_id)
            self._pipe.send(("launch", (assignment.job_id, assignment.driver_id)))

    def runs(self, driver_id: DriverId) -> bool:
        return driver_id in self._wanted

    def tell(self, what: str, value: object) -> None:
        """Answer a question of the other process."""
        with self._sending:
            self._pipe.send((what, value))


def serve(pipe: Connection, directory: str, settings: Mapping[str, str]) -> None:
    """JobManager process."""
    configuration = Configuration.from_dict(
        {
            "jobmanager.rpc.port": "0",
            "rest.port": "-1",
            # this machine may be too slow for what it plays
            "heartbeat.timeout": "10 min",
            "driver.heartbeat.timeout": "10 min",
            **settings,
        },
        "bench",
    )
    launcher = _Launcher(pipe)
    manager = JobManager(
        configuration,
        Path(directory),
        SECRET,
        launcher,
        FakeResourceProvider(),
        services_of(configuration, SECRET, None),
    )
    thread = threading.Thread(target=manager.run, daemon=True)
    thread.start()
    address_file = Path(directory) / "jobmanager.json"
    while not address_file.exists():
        thread.join(0.01)
    leader = manager.leader_info()
    launcher.tell("leader", (leader.address, leader.fence))
    while pipe.recv() == "usage":
        usage = resource.getrusage(resource.RUSAGE_SELF)
        threads = threading.active_count()
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        launcher.tell(
            "usage",
            (usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024, threads, descriptors),
        )
    manager.ended.set()


class Bench:
    """One run."""

    def __init__(
        self, options: argparse.Namespace, scratch: str, settings: Mapping[str, str] | None = None
    ) -> None:
        self._options = options
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._server = context.Process(target=serve, args=(theirs, scratch, settings or {}), daemon=True)
        self._server.start()
        _, (self._master, self._fence) = self._pipe.recv()
        self._port = int(self._master.rpartition(":")[2])
        self._gateways = ThriftGatewayFactory(Member(Role.CLIENT, SECRET), "bench", timeout_ms=60_000)
        self._dispatcher = self._gateways.dispatcher(self._master)
        self._peers = Peers(self._master, self._fence)
        self._told: queue.Queue[Any] = queue.Queue()
        self._launched: dict[JobId, DriverId] = {}
        threading.Thread(target=self._listen, daemon=True).start()
        self._sender = Sender()
        self._beats: dict[int, tuple[socket.socket, bytes]] = {}
        self._drivers: dict[int, Driver] = {}
        self._clients_pipe, theirs = context.Pipe()
        self._context, self._theirs = context, theirs
        self._clients: Any = None

    def _listen(self) -> None:
        while True:
            try:
                what, value = self._pipe.recv()
            except (EOFError, OSError):
                return
            if what == "launch":
                self._launched[value[0]] = value[1]
                self._peers.launched(*value)
            else:
                self._told.put(value)

    def usage(self) -> tuple[float, int, int, int]:
        """CPU seconds, most resident MiB, threads and descriptors of the JobManager."""
        self._pipe.send("usage")
        found: tuple[float, int, int, int] = self._told.get(timeout=60)
        return found

    def set_up(self) -> float:
        """All jobs RUNNING, all TaskManagers and clients there; seconds until the jobs were."""
        options = self._options
        began = time.monotonic()
        self._peers.register(options.jobs)
        job_ids = [JobId(secrets.token_hex(16)) for _ in range(options.jobs)]
        for number, job_id in enumerate(job_ids):
            vertex = JobVertex(VertexId(f"{number:032x}"), "all", (1,), 1, 128, "default")
            graph = JobGraph(job_id, f"job-{number}", ProgramKind.SCRIPT, vertices=(vertex,))
            self._dispatcher.submit_job(
                JobSubmission(job_id, graph.name, ProgramKind.SCRIPT, job_graph_to_json(graph), {})
            )
        self._await(lambda: len(self._peers.attempts) + len(self._peers.executors) == 2 * options.jobs)
        for job_id in job_ids:
            driver = Driver(self._port, self._fence, job_id, self._launched[job_id], self._peers)
            self._drivers[driver.connection.fileno()] = driver
            self._sender.add(driver.connection)
            driver.report()
        left = options.jobs
        while left:
            left -= len(self._sender.collect(1.0))
        self._await(
            lambda: all(job.status is JobStatus.RUNNING for job in self._dispatcher.list_jobs())
        )
        running_s = time.monotonic() - began
        for index in range(options.task_managers):
            connection = connect(self._port, f"tm-{index}")
            connection.setblocking(True)
            if index:
                connection.sendall(registration_frame(self._fence, index, SLOTS))
                connection.recv(4096)
                frame = heartbeat_frame(self._fence, index, SLOTS)
            else:
                frame = self._peers.heartbeat(options.jobs)
            connection.setblocking(False)
            self._beats[connection.fileno()] = (connection, frame)
            self._sender.add(connection)
        polled = [job_ids[number % options.jobs] for number in range(options.clients)]
        self._clients = self._context.Process(
            target=poll, args=(self._theirs, self._port, self._fence, polled), daemon=True
        )
        self._clients.start()
        self._changes()
        return running_s

    def _await(self, reached: Any) -> None:
        end = time.monotonic() + SET_UP_S
        while not reached():
            if time.monotonic() > end:
                raise SystemExit(
                    f"scale: after {SET_UP_S:g} s {len(self._launched)} drivers, "
                    f"{len(self._peers.slots)} slots, {len(self._peers.executors)} executors, "
                    f"{len(self._peers.attempts)} deployments"
                )
            time.sleep(0.05)

    def _changes(self) -> int:
        self._clients_pipe.send("count")
        return int(self._clients_pipe.recv())

    def _versions(self) -> int:
        return sum(self._dispatcher.job_details(job_id).version for job_id in self._launched)

    def measure(self, saturated: bool) -> dict[str, float]:
        """One phase."""
        versions, changes, (cpu_before, *_) = self._versions(), self._changes(), self.usage()
        self._sender.calls = 0
        began = time.monotonic()
        end = began + self._options.seconds
        drivers, beats = list(self._drivers.values()), list(self._beats.values())
        if saturated:
            for driver in drivers:
                driver.report()
        reports = sent_beats = 0
        while (now := time.monotonic()) < end:
            beats_due = int((now - began) / HEARTBEAT_S * len(beats)) + 1
            for connection, frame in (beats[n % len(beats)] for n in range(sent_beats, beats_due)):
                connection.sendall(frame)
            sent_beats = beats_due
            if not saturated:
                due = int((now - began) / REPORT_S * len(drivers)) + 1
                for number in range(reports, due):
                    drivers[number % len(drivers)].report()
                reports = due
            for fd in self._sender.collect(0.005):
                if saturated and fd in self._drivers:
                    reports += 1
                    self._drivers[fd].report()
        wall_s = time.monotonic() - began
        cpu_after, rss_mib, threads, descriptors = self.usage()
        changes = self._changes() - changes
        while self._sender.collect(1.0):
            pass  # what is still under way
        return {
            "reports_per_second": round(reports / wall_s),
            "publishes_per_second": round((self._versions() - versions) / wall_s),
            "changes_per_second": round(changes / wall_s),
            "cpu_percent": round((cpu_after - cpu_before) / wall_s * 100, 1),
            "cpu_ms_per_report": round((cpu_after - cpu_before) / max(reports, 1) * 1000, 3),
            "rss_mib": rss_mib,
            "threads": threads,
            "descriptors": descriptors,
        }

    def close(self) -> None:
        """End the processes."""
        for process in (self._clients, self._server):
            if process is not None and process.is_alive():
                process.kill()


def board_rate(jobs: int, clients: int, seconds: float) -> int:
    """Publishes a second to a JobBoard while each client waits for changes of one job, in a thread."""
    board = JobBoard(SystemClock(), 10)
    job_ids = [JobId(f"{number:032x}") for number in range(jobs)]
    for job_id in job_ids:
        board.publish(JobDetails(JobOverview(job_id, "job", JobStatus.RUNNING, 1, -1), 0))
    ended = threading.Event()

    def wait(job_id: JobId) -> None:
        version = 0
        while not ended.is_set():
            version = board.await_change(job_id, version, 200).version

    threads = [threading.Thread(target=wait, args=(job_ids[n % jobs],)) for n in range(clients)]
    for thread in threads:
        thread.start()
    count = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        job_id = job_ids[count % jobs]
        board.publish(JobDetails(JobOverview(job_id, "job", JobStatus.RUNNING, 1, -1), 0, restarts=count))
        count += 1
    rate = round(count / (time.monotonic() - began))
    ended.set()
    for thread in threads:
        thread.join()
    return rate


def main(argv: Sequence[str]) -> int:
    """Run once and print the result."""
    parser = argparse.ArgumentParser(description="Measure what many jobs and TaskManagers cost a JobManager.")
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--task-managers", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args(argv)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, scratch)
        try:
            running_s = bench.set_up()
            result = {
                "bench": "scale",
                "jobs": options.jobs,
                "task_managers": options.task_managers,
                "clients": options.clients,
                "seconds_until_all_run": round(running_s, 1),
                "steady": bench.measure(saturated=False),
                "saturated": bench.measure(saturated=True),
            }
        finally:
            bench.close()
    result["board"] = {
        "publishes_per_second": board_rate(options.jobs, options.clients, options.seconds / 2),
        "without_clients": board_rate(options.jobs, 0, options.seconds / 2),
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
