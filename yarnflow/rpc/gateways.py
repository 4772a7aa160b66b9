"""The gateways of ``core.ports`` over Thrift, as clients call them; made from the protocols.

Decides which fence a call carries: a Dispatcher client asks who leads and looks again, once,
when it is told that it is out of date; the others carry what their maker knows.  Never decides
how bytes travel (:mod:`~yarnflow.rpc.client`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, TypeVar, cast

from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.core.ports import (
    DriverGateway,
    JobMasterGateway,
    MasterGateway,
    RemoteDispatcher,
    ResourceManagerGateway,
    TaskExecutorGateway,
)
from yarnflow.errors import RpcUnavailable, StaleEpoch
from yarnflow.rpc import framing
from yarnflow.rpc.client import DEFAULT_TIMEOUT_MS, NO_FENCE, RpcClient, split_address
from yarnflow.rpc.member import Member, Role
from yarnflow.rpc.methods import (
    DISPATCHER,
    DRIVER,
    JOB_MASTER,
    MASTER,
    RESOURCE_MANAGER,
    TASK_EXECUTOR,
    Endpoint,
    MethodSpec,
    methods_of,
)

G = TypeVar("G")
FenceSupplier = Callable[[], Fence]

#: clients a factory has before it first looks which of them nobody needs any more
_FIRST_SWEEP: Final = 16


class Caller(Protocol):
    """Calls one address; see :class:`~yarnflow.rpc.client.RpcClient`."""

    def call(self, spec: MethodSpec, arguments: Sequence[object], fence: Fence | None = None) -> Any: ...


class _Fenced:
    """Calls carry what the maker knows."""

    def __init__(self, client: Caller, fence: FenceSupplier) -> None:
        self._client = client
        self._fence = fence

    def _call(self, spec: MethodSpec, arguments: Sequence[object]) -> Any:
        return self._client.call(spec, arguments, fence=self._fence())


class _LeaderFenced:
    """Calls carry the fence of whoever leads at the address, which is asked for at first."""

    def __init__(self, client: Caller) -> None:
        self._client = client
        #: see :class:`~yarnflow.core.ports.RemoteDispatcher`
        self.known_fence: Fence | None = None

    def leader(self) -> LeaderInfo:
        info = cast(LeaderInfo, self._client.call(methods_of(DISPATCHER.name)["leader"], (), fence=NO_FENCE))
        self.known_fence = info.fence
        return info

    def _call(self, spec: MethodSpec, arguments: Sequence[object]) -> Any:
        try:
            return self._client.call(spec, arguments, fence=self.known_fence or self.leader().fence)
        except StaleEpoch:
            # refused before the handler saw it, so that even a call that may not be repeated can be
            return self._client.call(spec, arguments, fence=self.leader().fence)


@cache
def _gateway_class(name: str, base: type) -> Any:
    """A subclass that has every method of a service's protocol which ``base`` lacks."""
    made = {spec.name: _method(spec) for spec in methods_of(name).values() if not hasattr(base, spec.name)}
    return type(f"Thrift{name}Gateway", (base,), made)


def _method(spec: MethodSpec) -> Callable[..., Any]:
    count = len(spec.arg_names)

    def method(self: Any, *arguments: object, **named: object) -> Any:
        if named or len(arguments) != count:
            arguments = spec.signature.bind(self, *arguments, **named).args[1:]
        return self._call(spec, arguments)

    method.__name__ = spec.name
    return method


def gateway(endpoint: Endpoint[G], client: Caller, fence: FenceSupplier) -> G:
    """A service of another process, as its protocol; ``fence`` is asked at each call."""
    return cast(G, _gateway_class(endpoint.name, _Fenced)(client, fence))


def dispatcher_gateway(client: Caller) -> RemoteDispatcher:
    """The Dispatcher of whoever leads at an address."""
    return cast(RemoteDispatcher, _gateway_class(DISPATCHER.name, _LeaderFenced)(client))


@dataclass(slots=True)
class _Entry:
    """The client of one address."""

    client: RpcClient
    #: calls under way
    users: int = 0


class _Shared:
    """Calls a process with the client the factory has for it at that time."""

    def __init__(
        self, factory: ThriftGatewayFactory, server: Role, address: str, timeout_ms: int | None = None
    ) -> None:
        split_address(address)  # a bad one is the maker's mistake, not that of a call
        self._factory = factory
        self._server = server
        self._address = address
        self._timeout_ms = timeout_ms

    def call(self, spec: MethodSpec, arguments: Sequence[object], fence: Fence | None = None) -> Any:
        with self._factory.borrow(self._server, self._address) as client:
            return client.call(spec, arguments, fence=fence, timeout_ms=self._timeout_ms)


class ThriftGatewayFactory:
    """:class:`yarnflow.core.ports.GatewayFactory` over Thrift; one client per process.

    Drivers and TaskManagers come and go, so a client is kept only as long as it has a connection:
    it goes with the call that found nobody there, and one whose process has closed its end goes
    when the number of clients has grown.  A gateway stays usable; it gets a new client.

    Parameters
    ----------
    member : Member
        This process.
    identity : str
        Who this process is; servers report its end by it.
    timeout_ms : int
        Limit of each call (``rpc.ask.timeout``).
    max_frame_bytes : int
        ``rpc.framesize``.

    Attributes
    ----------
    fence : callable
        Fence of calls to TaskExecutors and drivers; a JobManager sets it to its own leadership.
    """

    def __init__(
        self,
        member: Member,
        identity: str = "",
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        max_frame_bytes: int = framing.DEFAULT_MAX_FRAME_BYTES,
        fence: FenceSupplier | None = None,
    ) -> None:
        self._member = member
        self._identity = identity
        self._timeout_ms = timeout_ms
        self._max_frame_bytes = max_frame_bytes
        self.fence: FenceSupplier = fence or (lambda: NO_FENCE)
        self._lock = threading.Lock()
        #: by role and address: a port may be given to a process of another kind later
        self._clients: dict[tuple[Role, str], _Entry] = {}
        self._sweep_at = _FIRST_SWEEP
        self._closed = False

    def task_executor(self, address: str) -> TaskExecutorGateway:
        """Gateway to a TaskManager, with this factory's fence at the time of each call."""
        return gateway(TASK_EXECUTOR, _Shared(self, Role.TASK_MANAGER, address), lambda: self.fence())

    def driver(self, address: str) -> DriverGateway:
        """Gateway to a driver, with this factory's fence at the time of each call."""
        return gateway(DRIVER, _Shared(self, Role.DRIVER, address), lambda: self.fence())

    def resource_manager(self, address: str, fence: Fence) -> ResourceManagerGateway:
        """Gateway to the ResourceManager of one leader."""
        return gateway(RESOURCE_MANAGER, _Shared(self, Role.JOB_MANAGER, address), lambda: fence)

    def job_master(self, address: str, fence: Fence) -> JobMasterGateway:
        """Gateway to the JobMasters of one leader."""
        return gateway(JOB_MASTER, _Shared(self, Role.JOB_MANAGER, address), lambda: fence)

    def dispatcher(self, address: str, timeout_ms: int | None = None) -> RemoteDispatcher:
        """Gateway to whoever leads at an address."""
        return dispatcher_gateway(_Shared(self, Role.JOB_MANAGER, address, timeout_ms))

    def master(self, address: str) -> MasterGateway:
        """Gateway to a standby, with this factory's fence at the time of each call."""
        return gateway(MASTER, _Shared(self, Role.JOB_MANAGER, address), lambda: self.fence())

    @property
    def addresses(self) -> list[str]:
        """Where there are connections to."""
        with self._lock:
            return [address for _, address in self._clients]

    @contextmanager
    def borrow(self, server: Role, address: str) -> Iterator[RpcClient]:
        """Yield the client of a process, which stays open at least for the time of the block.

        Raises
        ------
        RpcUnavailable
            The factory is closed.
        """
        with self._lock:
            if self._closed:
                raise RpcUnavailable(f"cannot call {address}: this process is shutting down")
            entry = self._clients.get((server, address))
            if entry is None:
                self._sweep()
                entry = self._clients[server, address] = _Entry(self._make(server, address))
            entry.users += 1
        try:
            yield entry.client
        finally:
            with self._lock:
                entry.users -= 1
                if not self._closed and not entry.users and not entry.client.has_connections:
                    del self._clients[server, address]

    def close(self) -> None:
        """Close every connection.  Idempotent; no gateway can be opened afterwards."""
        with self._lock:
            self._closed = True
            entries, self._clients = list(self._clients.values()), {}
        for entry in entries:
            entry.client.close()

    def _make(self, server: Role, address: str) -> RpcClient:
        return RpcClient(
            address,
            server,
            self._member,
            self._identity,
            timeout_ms=self._timeout_ms,
            max_frame_bytes=self._max_frame_bytes,
        )

    def _sweep(self) -> None:
        """Let go of clients whose connections were closed from the other end."""
        if len(self._clients) < self._sweep_at:
            return
        self._clients = {
            process: entry
            for process, entry in self._clients.items()
            if entry.users or entry.client.drop_ended()
        }
        # so that the cost of all sweeps stays a small multiple of that of all connections
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._clients))
