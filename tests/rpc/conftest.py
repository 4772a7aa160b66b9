"""Servers and clients on the loopback interface."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.patience import PATIENCE
from yarnflow.core.messages import Fence
from yarnflow.rpc.auth import ClientHandshake
from yarnflow.rpc.client import RpcClient
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.member import Destination, Member, Role, numeric
from yarnflow.rpc.methods import ENDPOINTS, Service, methods_of
from yarnflow.rpc.server import RpcServer

SECRET = b"0123456789abcdef0123456789abcdef"
FENCE = Fence("leader-1", 5)
#: whom every server lets in
JOB_MANAGER = Member(Role.JOB_MANAGER, SECRET, "c")
#: a handshake may take as long as the machine stands still
LONG_MS = 3_600_000


class Recorder:
    """Implements every method of a service: records the arguments, answers what it was told."""

    def __init__(self, service: str) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.answers: dict[str, Any] = {}
        for name in methods_of(service):
            setattr(self, name, self._method(name))

    def _method(self, name: str) -> Callable[..., Any]:
        def method(*arguments: Any) -> Any:
            self.calls.append((name, arguments))
            answer = self.answers.get(name)
            if isinstance(answer, BaseException):
                raise answer
            return answer(*arguments) if callable(answer) else answer

        return method


class Cluster:
    """A server whose services are recorders, and what a test needs to call it.

    It has all services, whatever its role is.
    """

    def __init__(self, role: Role = Role.DRIVER, **options: Any) -> None:
        self.role = role
        self.fence = FENCE
        self.recorders = {name: Recorder(name) for name in ENDPOINTS}
        self.gone: list[str] = []
        self.someone_gone = threading.Event()
        self.on_gone: Callable[[str], None] = lambda identity: None
        services = {name: Service(ENDPOINTS[name], recorder) for name, recorder in self.recorders.items()}
        self.server = RpcServer(
            "127.0.0.1",
            "0",
            services,
            Member(role, SECRET, "c"),
            lambda: self.fence,
            self._disconnected,
            **options,
        )
        self.server.start()
        self._closers: list[Callable[[], None]] = [self.server.stop]

    def become(self, role: Role) -> None:
        """Be another process for connections that come from now on."""
        self.role = role
        self.server.member = Member(role, SECRET, "c")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def factory(self, secret: bytes = SECRET, **options: Any) -> ThriftGatewayFactory:
        member = Member(Role.JOB_MANAGER, secret, "c")
        factory = ThriftGatewayFactory(member, fence=lambda: FENCE, **options)
        self._closers.append(factory.close)
        return factory

    def client(self, **options: Any) -> RpcClient:
        client = RpcClient(self.address, self.role, JOB_MANAGER, fence=lambda: FENCE, **options)
        self._closers.append(client.close)
        return client

    def handshake(self, connection: socket.socket, identity: str = "") -> ClientHandshake:
        """That of a JobManager over a connection to the server."""
        reached = numeric(connection.getpeername())
        return ClientHandshake(JOB_MANAGER, Destination(self.role, self.address, reached), identity)

    def raw(self) -> socket.socket:
        """A connection that has sent nothing yet."""
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE.answer_s)
        self._closers.append(connection.close)
        return connection

    def close(self) -> None:
        for closer in reversed(self._closers):
            closer()

    def _disconnected(self, identity: str) -> None:
        self.gone.append(identity)
        self.someone_gone.set()
        self.on_gone(identity)


@pytest.fixture
def make_cluster() -> Iterator[Callable[..., Cluster]]:
    made: list[Cluster] = []

    def make(**options: Any) -> Cluster:
        made.append(Cluster(**options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    return make_cluster()


def read(connection: socket.socket, size: int) -> bytes:
    """Exactly ``size`` bytes (MSG_WAITALL does not wait on a socket with a timeout)."""
    found = b""
    while len(found) < size:
        data = connection.recv(size - len(found))
        assert data, f"the peer closed after {len(found)} of {size} bytes"
        found += data
    return found


def read_all(connection: socket.socket) -> bytes:
    """Everything until the peer closes."""
    found = b""
    while True:
        try:
            data = connection.recv(65536)
        except ConnectionResetError:
            return found
        if not data:
            return found
        found += data
