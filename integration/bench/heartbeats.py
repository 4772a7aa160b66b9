"""How many TaskManager heartbeats one server takes.

One process serves the ResourceManager service on one I/O thread with a handler that only keeps
the report; another opens the connections and keeps a heartbeat of four slots under way on each.
Prints one line of JSON::

    python integration/bench/heartbeats.py --connections 1000 --seconds 5

``cpu_seconds_per_1000_heartbeats`` is the server's CPU alone; ``cpu_percent_at_interval`` is what
that makes for the given number of TaskManagers at a heartbeat interval of 10 s.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import select
import socket
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId
from yarnflow.core.messages import ExecutorStatus, Fence, SlotStatus, TaskManagerHeartbeat
from yarnflow.rpc import auth, framing
from yarnflow.rpc._gen.types import ttypes
from yarnflow.rpc.codec import to_thrift
from yarnflow.rpc.gateways import resource_manager_service
from yarnflow.rpc.methods import methods_of
from yarnflow.rpc.server import RpcServer

SECRET = b"bench" * 8
FENCE = Fence("leader", 1)
HEARTBEAT_INTERVAL_S = 10


class LastReports:
    """Cheapest possible ResourceManager: it only keeps what it was told."""

    def __init__(self) -> None:
        self.reports: dict[str, TaskManagerHeartbeat] = {}
        self.count = 0

    def heartbeat(self, report: TaskManagerHeartbeat) -> None:
        self.reports[report.task_manager_id] = report
        self.count += 1

    def register_task_manager(self, registration: Any) -> Any:
        raise NotImplementedError

    def disconnect_task_manager(self, task_manager_id: TaskManagerId, reason: str) -> None: ...


def serve(pipe: Connection) -> None:
    """Server process: reports its port, then CPU seconds and heartbeats whenever it is asked."""
    manager = LastReports()
    services = {"ResourceManager": resource_manager_service(manager)}
    server = RpcServer("127.0.0.1", "0", services, SECRET, lambda: FENCE)
    server.start()
    pipe.send(server.port)
    while pipe.recv() == "count":
        usage = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send((usage.ru_utime + usage.ru_stime, manager.count, len(manager.reports), usage.ru_maxrss))
    server.stop()


def heartbeat_frame(index: int, slots: int) -> bytes:
    """One heartbeat call of a TaskManager whose slots all belong to one job."""
    job, driver = JobId(f"{index:032x}"), DriverId(f"driver-{index}")
    report = TaskManagerHeartbeat(
        TaskManagerId(f"container_1700000000000_0001_01_{index:06d}"),
        tuple(SlotStatus(slot, AllocationId(f"{index:028x}{slot:04x}"), job) for slot in range(slots)),
        (ExecutorStatus(ExecutorId("1"), job, driver, 4711, slots),),
    )
    types: Any = ttypes
    context = types.TCallContext(to_thrift(FENCE), 10_000, f"bench-{index}")
    spec = methods_of("ResourceManager")["heartbeat"]
    args = spec.args_class(context, to_thrift(report))
    return framing.frame(framing.CALL, spec.call_name, 1, framing.encode(args))


def connect(port: int, identity: str) -> socket.socket:
    """Authenticated connection."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(None)  # MSG_WAITALL waits only on a socket without a timeout
    handshake = auth.ClientHandshake(SECRET, f"127.0.0.1:{port}", identity)
    connection.sendall(handshake.hello())
    connection.sendall(handshake.prove(connection.recv(auth.CHALLENGE_BYTES, socket.MSG_WAITALL)))
    handshake.verify(connection.recv(1 + auth.PROOF_BYTES, socket.MSG_WAITALL)[1:])
    connection.setblocking(False)
    return connection


def drive(connections: Sequence[socket.socket], frames: Sequence[bytes], seconds: float) -> int:
    """Keep one heartbeat under way on each connection; the number of answers."""
    expected = framing.frame(framing.REPLY, "heartbeat", 1, b"\x00")
    poll = select.epoll()
    by_fd = {connection.fileno(): (connection, frame) for connection, frame in zip(connections, frames)}
    for fd, (connection, frame) in by_fd.items():
        poll.register(fd, select.EPOLLIN)
        connection.sendall(frame)
    answered = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for fd, _ in poll.poll(1.0):
            connection, frame = by_fd[fd]
            answer = connection.recv(4096)
            if answer != expected:
                raise SystemExit(f"heartbeats: unexpected answer {answer!r}")
            answered += 1
            connection.sendall(frame)
    poll.close()
    return answered


def main(argv: Sequence[str]) -> int:
    """Run once and print the result."""
    parser = argparse.ArgumentParser(description="Measure how many heartbeats one server takes.")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args(argv)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < options.connections + 64:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, options.connections + 64), hard))

    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        port = ours.recv()
        began = time.monotonic()
        connections = [connect(port, f"tm-{index}") for index in range(options.connections)]
        connect_s = time.monotonic() - began
        frames = [heartbeat_frame(index, options.slots) for index in range(options.connections)]
        ours.send("count")
        cpu_before, count_before, _, _ = ours.recv()
        began = time.monotonic()
        drive(connections, frames, options.seconds)
        ours.send("count")
        cpu_after, count_after, known, rss_kib = ours.recv()
        wall_s = time.monotonic() - began
        ours.send("stop")
        for connection in connections:
            connection.close()
        server.join(30)
    finally:
        if server.is_alive():
            server.kill()
    count, cpu_s = count_after - count_before, cpu_after - cpu_before
    per_1000 = cpu_s / count * 1000
    print(
        json.dumps(
            {
                "connections": options.connections,
                "slots_per_task_manager": options.slots,
                "task_managers_seen": known,
                "heartbeat_bytes": len(frames[0]),
                "heartbeats": count,
                "heartbeats_per_second": round(count / wall_s),
                "cpu_seconds_per_1000_heartbeats": round(per_1000, 4),
                "cpu_percent_at_interval": round(
                    per_1000 / 1000 * options.connections / HEARTBEAT_INTERVAL_S * 100, 3
                ),
                "connect_ms_per_connection": round(connect_s / options.connections * 1000, 3),
                "server_rss_mib": rss_kib // 1024,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
