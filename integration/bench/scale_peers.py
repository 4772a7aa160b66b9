"""Those around a JobManager that the bench of its scale plays: TaskManagers, drivers and waiting clients."""

from __future__ import annotations

import ipaddress
import itertools
import queue
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, Final

from integration.bench.heartbeats import SECRET, connect, task_manager_id
from yarnflow.config.options.cluster import CLUSTER_ID
from yarnflow.core.checkpoint.messages import CheckpointOrder
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId
from yarnflow.core.messages import (
    DriverDeployment,
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ExecutorDescriptor,
    Fence,
    LogLevel,
    QueryProgress,
    SlotOffer,
    SlotRequest,
    SlotStatus,
    TaskManagerHeartbeat,
    TaskManagerRegistration,
)
from yarnflow.core.resources.diagnostics import LogFile, LogPart, ThreadInfo
from yarnflow.errors import FileMissing
from yarnflow.rpc import framing
from yarnflow.rpc._gen.types import ttypes
from yarnflow.rpc.codec import to_thrift
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.member import Member, Role
from yarnflow.rpc.methods import DRIVER, TASK_EXECUTOR, Service, methods_of
from yarnflow.rpc.server import RpcServer

#: of clients
POLL_MS: Final = 5_000


def call_frame(fence: Fence, service: str, method: str, *arguments: object) -> bytes:
    """One call, ready to be sent."""
    types: Any = ttypes
    spec = methods_of(service)[method]
    context = types.TCallContext(to_thrift(fence), 10_000 + POLL_MS, "bench")
    values = [value if to is None else to(value) for value, to in zip(arguments, spec.args_to_thrift)]
    return framing.frame(framing.CALL, spec.call_name, 1, framing.encode(spec.args_class(context, *values)))


def poll(pipe: Connection, port: int, fence: Fence, jobs: Sequence[JobId]) -> None:
    """Client process: one waiting client per job named; answers each ``count`` with the changes seen."""
    spec = methods_of("Dispatcher")["await_job_change"]
    epoll = select.epoll()
    epoll.register(pipe.fileno(), select.EPOLLIN)
    waiting: dict[int, tuple[socket.socket, JobId, bytearray]] = {}
    for job_id in jobs:
        connection = connect(port, "")
        waiting[connection.fileno()] = (connection, job_id, bytearray())
        epoll.register(connection.fileno(), select.EPOLLIN)
        connection.sendall(call_frame(fence, "Dispatcher", "await_job_change", job_id, 0, POLL_MS))
    changes = 0
    while True:
        for fd, _ in epoll.poll():
            if fd == pipe.fileno():
                if pipe.recv() != "count":
                    return
                pipe.send(changes)
                continue
            connection, job_id, buffer = waiting[fd]
            buffer += connection.recv(1 << 16)
            if len(buffer) < 4 or len(buffer) < 4 + int.from_bytes(buffer[:4], "big"):
                continue
            message = bytes(buffer[4:])
            buffer.clear()
            result: Any = framing.decode(spec.result_class, message, framing.read_header(message).offset)
            changes += 1
            version = result.success.version
            connection.sendall(call_frame(fence, "Dispatcher", "await_job_change", job_id, version, POLL_MS))


class Peers:
    """TaskManagers and drivers as the JobManager calls them; the first TaskManager has all slots of jobs.

    One server is all TaskManagers and one all drivers, each under an address of its own: how much is under
    way to one address is bounded.
    """

    def __init__(self, master: str, fence: Fence) -> None:
        self._master, self._fence = master, fence
        self._gateways = ThriftGatewayFactory(Member(Role.CLIENT, SECRET), "", timeout_ms=60_000)
        self._offers: queue.Queue[SlotRequest] = queue.Queue()
        self.slots: dict[int, SlotStatus] = {}
        self.executors: dict[JobId, ExecutorId] = {}
        self.attempts: dict[JobId, int] = {}
        task_managers = self._serve(Role.TASK_MANAGER, {"TaskExecutor": Service(TASK_EXECUTOR, self)})
        self._drivers = self._serve(Role.DRIVER, {"Driver": Service(DRIVER, self)})
        self._hosts = (ipaddress.IPv4Address("127.0.0.2") + number for number in itertools.count())
        self.address = self._next_address(task_managers)
        threading.Thread(target=self._offer, daemon=True).start()

    def _serve(self, role: Role, services: Mapping[str, Service]) -> RpcServer:
        member = Member(role, SECRET, CLUSTER_ID.default)
        server = RpcServer("0.0.0.0", "0", services, member, lambda: self._fence)
        server.start()
        return server

    def _next_address(self, server: RpcServer) -> str:
        return f"{next(self._hosts)}:{server.port}"

    def register(self, slots: int) -> None:
        """The first TaskManager comes."""
        manager = self._gateways.resource_manager(self._master, self._fence)
        manager.register_task_manager(
            TaskManagerRegistration(task_manager_id(0), self.address, "127.0.0.1", 1, slots)
        )

    def launched(self, job_id: JobId, driver_id: DriverId) -> None:
        """A driver is up."""
        self._gateways.job_master(self._master, self._fence).register_driver(
            DriverRegistration(
                job_id, driver_id, self._next_address(self._drivers), 1, "spark://x@y:1", f"app-{driver_id}"
            )
        )

    def heartbeat(self, slots: int) -> bytes:
        """Of the first TaskManager."""
        statuses = tuple(self.slots.get(index, SlotStatus(index)) for index in range(slots))
        report = TaskManagerHeartbeat(task_manager_id(0), statuses)
        return call_frame(self._fence, "ResourceManager", "heartbeat", report)

    def _offer(self) -> None:
        gateway = self._gateways.job_master(self._master, self._fence)
        while True:
            request = self._offers.get()
            offer = SlotOffer(request.allocation_id, request.slot_index, task_manager_id(0), self.address)
            gateway.offer_slots(request.job_id, (offer,))

    # --- what the JobManager calls ---

    def request_slot(self, request: SlotRequest) -> None:
        self.slots[request.slot_index] = SlotStatus(request.slot_index, request.allocation_id, request.job_id)
        self._offers.put(request)

    def free_slot(self, allocation_id: AllocationId) -> None: ...

    def start_executor(self, descriptor: ExecutorDescriptor) -> None:
        self.executors[descriptor.job_id] = descriptor.executor_id

    def stop_executor(self, job_id: JobId, executor_id: ExecutorId) -> None: ...

    def deploy(self, deployment: DriverDeployment) -> None:
        if deployment.submission is not None:
            self.attempts[deployment.submission.job_id] = deployment.attempt

    def cancel(self) -> None: ...

    def take_checkpoint(self, order: CheckpointOrder) -> None: ...

    def shut_down(self) -> None: ...

    def ping(self) -> None: ...

    def halt(self) -> None: ...

    def set_log_level(self, level: LogLevel) -> None: ...

    # --- nobody looks at these processes ---

    def log_files(self) -> Sequence[LogFile]:
        return ()

    def read_log(self, name: str, offset: int, max_bytes: int) -> LogPart:
        raise FileMissing(f"there is no log {name}")

    def thread_dump(self) -> Sequence[ThreadInfo]:
        return ()


class Sender:
    """Calls that drivers and TaskManagers make over and over, each over its own connection."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._connections: dict[int, socket.socket] = {}
        self.calls = 0

    def add(self, connection: socket.socket) -> None:
        """One more peer."""
        self._connections[connection.fileno()] = connection
        self._epoll.register(connection.fileno(), select.EPOLLIN)

    def collect(self, timeout_s: float) -> list[int]:
        """Who was answered."""
        answered = []
        for fd, _ in self._epoll.poll(max(timeout_s, 0)):
            answer = self._connections[fd].recv(1 << 16)
            # a void answer ends with the one byte of an empty struct; anything else is an error
            if not answer.endswith(b"\x00") or len(answer) > 64:
                raise SystemExit(f"scale: unexpected answer {answer[:300]!r}")
            self.calls += 1
            answered.append(fd)
        return answered


class Driver:
    """One job's driver."""

    def __init__(self, port: int, fence: Fence, job_id: JobId, driver_id: DriverId, peers: Peers) -> None:
        self.connection = connect(port, driver_id)
        self._fence, self._job_id, self._driver_id, self._peers = fence, job_id, driver_id, peers
        self._batch = -1

    def report(self) -> None:
        """Send the next one."""
        self._batch += 1
        now_ms = int(time.time() * 1000)
        query = QueryProgress("q", self._batch, now_ms, 100, 1000, total_input_rows=1000 * self._batch)
        report = DriverReport(
            self._job_id,
            self._driver_id,
            self._peers.attempts[self._job_id],
            DriverPhase.RUNNING,
            (self._peers.executors[self._job_id],),
            (query,),
        )
        self.connection.sendall(call_frame(self._fence, "JobMaster", "report", report))
