"""Blocking Thrift client of one address.

Decides when a connection is opened, used again or given up, and what each failure of the
network is called; every call has a deadline.  A call that finds its connection broken is sent
once more if its method is idempotent.  Never waits for another caller: each call under way has
a connection of its own, kept for the next one, so a long poll holds up nobody.
"""

from __future__ import annotations

import itertools
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from thrift.protocol.TProtocol import TProtocolException
from thrift.transport.TTransport import TTransportException

from yarnflow.core.messages import Fence
from yarnflow.errors import RpcProtocolError, RpcTimeout, RpcUnavailable, YarnflowError, error_from_code
from yarnflow.rpc import framing
from yarnflow.rpc._gen.types import ttypes
from yarnflow.rpc.auth import (
    CHALLENGE_BYTES,
    MAGIC,
    MAX_REFUSAL_BYTES,
    PROOF_BYTES,
    ClientHandshake,
    explain_answer,
    is_accepted,
)
from yarnflow.rpc.codec import to_thrift
from yarnflow.rpc.member import Destination, Member, Role, numeric
from yarnflow.rpc.methods import MethodSpec

#: "whoever leads"; only the Dispatcher service takes it
NO_FENCE: Final = Fence("", 0)
#: as ``rpc.ask.timeout``
DEFAULT_TIMEOUT_MS: Final = 10_000
#: connections kept open although no call needs them now: one tells the server that this process lives, and
#: serves the next call; a thousand TaskManagers with four each way would be 8,000 descriptors
_MAX_IDLE: Final = 1
#: generated code has no types
_TYPES: Final[Any] = ttypes


@contextmanager
def map_thrift_errors(address: str, call: str, timeout_ms: int) -> Iterator[None]:
    """Turn what sockets and Thrift raise into errors of ours.

    Parameters
    ----------
    address : str
        ``host:port`` that was called.
    call : str
        ``Service:method``, for messages.
    timeout_ms : int
        The call's limit, for messages.
    """
    try:
        yield
    except YarnflowError:
        # ours already; several of them are OSErrors or TimeoutErrors as well
        raise
    except TimeoutError as exc:
        raise RpcTimeout(
            f"{address} did not answer {call} within {timeout_ms} ms; "
            "check that the process there is not overloaded or stopped"
        ) from exc
    except (TProtocolException, TTransportException) as exc:
        raise RpcProtocolError(
            f"{address} sent bytes that are no answer to {call}: {exc}; "
            "check that it runs the same yarnflow version"
        ) from exc
    except ConnectionRefusedError as exc:
        raise RpcUnavailable(
            f"nobody listens at {address} ({call}); check the address and start the process"
        ) from exc
    except EOFError as exc:
        raise RpcUnavailable(
            f"{address} closed the connection during {call}; check that the process there is up"
        ) from exc
    except OSError as exc:
        raise RpcUnavailable(
            f"cannot reach {address} for {call}: {exc.strerror or exc}; "
            "check the address and that the process is up"
        ) from exc


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` (or ``[v6]:port``) in its parts.

    Raises
    ------
    RpcUnavailable
        The text is no such address.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise RpcUnavailable(f"{address!r} is no address; write host:port")
    return host.strip("[]"), int(port)


class RpcClient:
    """Calls to one address, from any number of threads.

    Parameters
    ----------
    address : str
        ``host:port`` of the server.
    server : Role
        What that process has to be.
    member : Member
        This process.
    identity : str
        Who this process is (a TaskManager's id); the server learns of its end by it.
    fence : callable, optional
        Whom the caller takes for leader, asked for every call that brings no own fence.
    timeout_ms : int
        Limit of a call that brings no own one.
    max_frame_bytes : int
        Longest message, both ways (``rpc.framesize``).
    """

    def __init__(
        self,
        address: str,
        server: Role,
        member: Member,
        identity: str = "",
        fence: Callable[[], Fence] | None = None,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        max_frame_bytes: int = framing.DEFAULT_MAX_FRAME_BYTES,
    ) -> None:
        framing.require_fastbinary()
        self.address = address
        self._host, self._port = split_address(address)
        self._server = server
        self._member = member
        self._identity = identity
        self._fence = fence or (lambda: NO_FENCE)
        self._timeout_ms = timeout_ms
        self._max_frame_bytes = max_frame_bytes
        self._request_prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        #: most recently used last
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._closed = False

    def call(
        self,
        spec: MethodSpec,
        arguments: Sequence[object],
        fence: Fence | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """Call a method and wait for its answer.

        Parameters
        ----------
        spec : MethodSpec
            Which one.
        arguments : sequence
            Values as in ``core.ports``, without ``self``.
        fence, timeout_ms : optional
            Instead of the client's own.  A long poll's own time comes on top.

        Raises
        ------
        YarnflowError
            What the handler raised, as the same class; or an :class:`RpcError` for the call itself.
        """
        limit_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        if spec.long_poll:
            limit_ms += max(0, int(str(arguments[spec.poll_timeout_index])))
        deadline = time.monotonic() + limit_ms / 1000
        claimed = self._fence() if fence is None else fence
        context = _TYPES.TCallContext(
            fence=to_thrift(claimed),
            timeoutMs=limit_ms,
            requestId=f"{self._request_prefix}-{next(self._numbers)}",
        )
        values = [v if to is None else to(v) for v, to in zip(arguments, spec.args_to_thrift, strict=True)]
        body = framing.encode(spec.args_class(context, *values))
        if len(body) > self._max_frame_bytes - 1024:
            raise RpcProtocolError(
                f"{spec.call_name}: the arguments have {len(body)} bytes, more than rpc.framesize "
                f"({self._max_frame_bytes} bytes); send less or raise the option on both sides"
            )
        with map_thrift_errors(self.address, spec.call_name, limit_ms):
            return _result(spec, *self._exchange(spec, body, deadline), self.address)

    @property
    def has_connections(self) -> bool:
        """Whether any connection is open, in use or idle."""
        with self._lock:
            return bool(self._open)

    def drop_ended(self) -> bool:
        """Close the idle connections whose other end is closed; whether any connection is left."""
        with self._lock:
            ended = [connection for connection in self._idle if not connection.is_alive()]
            self._idle = [connection for connection in self._idle if connection not in ended]
            self._open.difference_update(ended)
            left = bool(self._open)
        for connection in ended:
            connection.close()
        return left

    def close(self) -> None:
        """Close every connection; calls under way end with :class:`RpcUnavailable`.  Idempotent."""
        with self._lock:
            self._closed = True
            connections = list(self._open)
            self._idle.clear()
        for connection in connections:
            connection.interrupt()

    def _exchange(self, spec: MethodSpec, body: bytes, deadline: float) -> tuple[bytes, framing.Header]:
        retry = spec.idempotent
        while True:
            connection = self._take(deadline)
            try:
                answer = connection.exchange(spec.call_name, body, deadline)
            except (ConnectionError, EOFError):
                self._discard(connection)
                if not retry or self._closed:
                    raise
                retry = False
                # the server is probably a new process: no old connection is worth a try
                self._discard_idle()
            except BaseException:
                # the answer may still come: this connection is out of step
                self._discard(connection)
                raise
            else:
                self._give_back(connection)
                return answer

    def _take(self, deadline: float) -> _Connection:
        while True:
            with self._lock:
                if self._closed:
                    raise RpcUnavailable(f"the client of {self.address} was closed")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect(deadline)
            if connection.is_alive():
                return connection
            self._discard(connection)

    def _connect(self, deadline: float) -> _Connection:
        connection = _Connection(self._host, self._port, self._max_frame_bytes, deadline)
        try:
            destination = Destination(self._server, self.address, connection.reached())
            connection.authenticate(
                ClientHandshake(self._member, destination, self._identity), self.address, deadline
            )
        except BaseException:
            connection.close()
            raise
        with self._lock:
            closed = self._closed
            if not closed:
                self._open.add(connection)
        if closed:
            connection.close()
            raise RpcUnavailable(f"the client of {self.address} was closed")
        return connection

    def _give_back(self, connection: _Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        self._discard(connection)

    def _discard(self, connection: _Connection) -> None:
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def _discard_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            self._discard(connection)


def _result(spec: MethodSpec, message: bytes, header: framing.Header, address: str) -> Any:
    if header.kind == framing.EXCEPTION:
        text = framing.application_error(message, header.offset)
        raise RpcProtocolError(f"{address}: {text}; check that it is the right process and yarnflow version")
    result = framing.decode(spec.result_class, message, header.offset)
    if result.error is not None:
        error = result.error
        raise error_from_code(error.code or "", error.message or "", error.details or "")
    if spec.returns_nothing:
        return None
    if result.success is None:
        raise RpcProtocolError(f"{address} answered {spec.call_name} with neither a result nor an error")
    convert = spec.result_from_thrift
    return result.success if convert is None else convert(result.success)


class _Connection:
    """One socket, used by one call at a time."""

    def __init__(self, host: str, port: int, max_frame_bytes: int, deadline: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=_remaining(deadline))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # an idle connection to a machine that vanished ends after two minutes, and not never
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
        self._max_frame_bytes = max_frame_bytes
        self._sequence = 0

    def reached(self) -> str:
        """Return the numeric address of the other end."""
        return numeric(self._socket.getpeername())

    def authenticate(self, handshake: ClientHandshake, peer: str, deadline: float) -> None:
        """Prove the secret to the server and have it prove it to us."""
        try:
            self._send(handshake.hello(), deadline)
            challenge = self._receive_some(CHALLENGE_BYTES, deadline)
            if len(challenge) < CHALLENGE_BYTES or not challenge.startswith(MAGIC):
                raise explain_answer(peer, challenge + self._receive_line(deadline))
            self._send(handshake.prove(challenge), deadline)
            first = self._receive_some(1, deadline)
            if not is_accepted(first):
                raise explain_answer(peer, first + self._receive_line(deadline))
            handshake.verify(self._receive(PROOF_BYTES, deadline))
        except ConnectionResetError as exc:
            raise explain_answer(peer, b"") from exc

    def exchange(self, name: str, body: bytes, deadline: float) -> tuple[bytes, framing.Header]:
        """Send one call and receive its answer."""
        self._sequence = (self._sequence + 1) & 0x7FFFFFFF
        self._send(framing.frame(framing.CALL, name, self._sequence, body), deadline)
        length = int.from_bytes(self._receive(framing.LENGTH_BYTES, deadline), "big")
        if length > self._max_frame_bytes:
            raise RpcProtocolError(
                f"the answer to {name} has {length} bytes, more than rpc.framesize "
                f"({self._max_frame_bytes} bytes); raise the option on both sides"
            )
        message = self._receive(length, deadline)
        header = framing.read_header(message)
        if header.sequence != self._sequence:
            raise RpcProtocolError(
                f"answer {header.sequence} to {name} where {self._sequence} was expected; please report it"
            )
        return message, header

    def is_alive(self) -> bool:
        """Whether an idle connection is still open, with nothing to read."""
        try:
            self._socket.setblocking(False)
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def interrupt(self) -> None:
        """End a call under way in another thread, then close."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # not connected any more
        self.close()

    def close(self) -> None:
        """Close the socket.  Idempotent."""
        self._socket.close()

    def _send(self, data: bytes, deadline: float) -> None:
        self._socket.settimeout(_remaining(deadline))
        self._socket.sendall(data)

    def _receive(self, size: int, deadline: float) -> bytes:
        data = self._receive_some(size, deadline)
        if len(data) < size:
            raise EOFError(f"{len(data)} of {size} bytes")
        return data

    def _receive_some(self, size: int, deadline: float) -> bytes:
        """``size`` bytes, or fewer if the peer ends before."""
        buffer = bytearray(size)
        view = memoryview(buffer)
        done = 0
        while done < size:
            self._socket.settimeout(_remaining(deadline))
            count = self._socket.recv_into(view[done:])
            if count == 0:
                break
            done += count
        return bytes(view[:done])

    def _receive_line(self, deadline: float) -> bytes:
        """The rest of a refusal: up to the end of the stream, or as much as one may be."""
        try:
            return self._receive_some(MAX_REFUSAL_BYTES, deadline).partition(b"\n")[0]
        except OSError:
            return b""  # what came so far is explanation enough


def _remaining(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
