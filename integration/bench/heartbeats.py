"""How many TaskManager heartbeats one JobManager takes.

One process is a whole JobManager (RPC server, ResourceManager, Dispatcher); another plays its
TaskManagers: it registers them, each over a connection of its own, and keeps a heartbeat of four
slots under way on each.  Prints one line of JSON::

    scripts/bench heartbeats --connections 1000 --seconds 5

``cpu_seconds_per_1000_heartbeats`` is the JobManager's CPU alone; ``cpu_percent_at_interval`` is
what that makes for the given number of TaskManagers at a heartbeat interval of 10 s.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import select
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import TaskManagerId
from yarnflow.core.messages import Fence, SlotStatus, TaskManagerHeartbeat, TaskManagerRegistration
from yarnflow.entrypoint.ha_services import services_of
from yarnflow.entrypoint.master.job_manager import JobManager
from yarnflow.rpc import auth, framing
from yarnflow.rpc._gen.types import ttypes
from yarnflow.rpc.codec import to_thrift
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.member import Destination, Member, Role
from yarnflow.rpc.methods import methods_of
from yarnflow.testing.driver_launcher import FakeDriverLauncher
from yarnflow.testing.resource_provider import FakeResourceProvider

SECRET = b"bench" * 8
HEARTBEAT_INTERVAL_S = 10


def serve(pipe: Connection, directory: str) -> None:
    """JobManager process: reports port and fence, then CPU seconds and TaskManagers whenever asked."""
    configuration = Configuration.from_dict({"jobmanager.rpc.port": "0"}, "bench")
    manager = JobManager(
        configuration,
        Path(directory),
        SECRET,
        FakeDriverLauncher(),
        FakeResourceProvider(),
        services_of(configuration, SECRET, None),
    )
    thread = threading.Thread(target=manager.run, daemon=True)
    thread.start()
    address_file = Path(directory) / "jobmanager.json"
    while not address_file.exists():
        thread.join(0.01)
    leader = manager.leader_info()
    dispatcher = ThriftGatewayFactory(Member(Role.CLIENT, SECRET), "bench").dispatcher(leader.address)
    pipe.send((int(leader.address.rsplit(":", 1)[1]), leader.fence))
    while pipe.recv() == "count":
        usage = resource.getrusage(resource.RUSAGE_SELF)
        known = dispatcher.cluster_overview().task_managers
        pipe.send((usage.ru_utime + usage.ru_stime, known, usage.ru_maxrss))
    manager.ended.set()


def _call(fence: Fence, method: str, message: object, index: int) -> bytes:
    types: Any = ttypes
    context = types.TCallContext(to_thrift(fence), 10_000, f"bench-{index}")
    spec = methods_of("ResourceManager")[method]
    return framing.frame(
        framing.CALL, spec.call_name, 1, framing.encode(spec.args_class(context, to_thrift(message)))
    )


def task_manager_id(index: int) -> TaskManagerId:
    """A name as YARN gives them."""
    return TaskManagerId(f"container_1700000000000_0001_01_{index:06d}")


def registration_frame(fence: Fence, index: int, slots: int) -> bytes:
    """The registration of one TaskManager."""
    registration = TaskManagerRegistration(task_manager_id(index), "127.0.0.1:1", "127.0.0.1", 1, slots)
    return _call(fence, "register_task_manager", registration, index)


def heartbeat_frame(fence: Fence, index: int, slots: int) -> bytes:
    """One heartbeat of a TaskManager."""
    report = TaskManagerHeartbeat(task_manager_id(index), tuple(SlotStatus(slot) for slot in range(slots)))
    return _call(fence, "heartbeat", report, index)


def connect(port: int, identity: str) -> socket.socket:
    """Connection to a JobManager that takes it for one of a client."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(None)  # MSG_WAITALL waits only on a socket without a timeout
    address = f"127.0.0.1:{port}"
    destination = Destination(Role.JOB_MANAGER, address, address)
    handshake = auth.ClientHandshake(Member(Role.CLIENT, SECRET), destination, identity)
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
    scratch = tempfile.TemporaryDirectory()
    server = context.Process(target=serve, args=(theirs, scratch.name), daemon=True)
    server.start()
    try:
        port, fence = ours.recv()
        began = time.monotonic()
        connections = [connect(port, f"tm-{index}") for index in range(options.connections)]
        connect_s = time.monotonic() - began
        for index, connection in enumerate(connections):
            connection.setblocking(True)
            connection.sendall(registration_frame(fence, index, options.slots))
            connection.recv(4096)
            connection.setblocking(False)
        frames = [heartbeat_frame(fence, index, options.slots) for index in range(options.connections)]
        ours.send("count")
        cpu_before, _, _ = ours.recv()
        began = time.monotonic()
        count = drive(connections, frames, options.seconds)
        ours.send("count")
        cpu_after, known, rss_kib = ours.recv()
        wall_s = time.monotonic() - began
        ours.send("stop")
        for connection in connections:
            connection.close()
        server.join(30)
    finally:
        if server.is_alive():
            server.kill()
        scratch.cleanup()
    cpu_s = cpu_after - cpu_before
    per_1000 = cpu_s / count * 1000
    print(
        json.dumps(
            {
                "bench": "heartbeats",
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
