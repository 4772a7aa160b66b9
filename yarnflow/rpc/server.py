"""The Thrift server of a JobManager, TaskManager or driver.

One thread does all I/O for any number of connections; handlers run in daemon threads, except
quick ones, which only post to a mailbox and run on the I/O thread.  Decides: who may speak at
all (:mod:`~yarnflow.rpc.auth`, :mod:`~yarnflow.rpc.admission`), whose fence is stale, which call is too
late to be started, what an exception becomes on the wire.  Never looks into a message, and never dies
of one: what a peer sends costs at most that peer its connection.

Calls of one connection are served one after another; a client opens a second connection to
have two calls under way.  Flink counterpart: ``RpcService`` with ``FencedPekkoRpcActor``.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from yarnflow.core.job.context import job_context
from yarnflow.core.messages import Fence
from yarnflow.errors import (
    InternalError,
    ProgramFailed,
    RpcProtocolError,
    RpcTimeout,
    StaleEpoch,
    UserCodeError,
    YarnflowError,
)
from yarnflow.rpc import framing
from yarnflow.rpc._gen.errors import ttypes as errors_ttypes
from yarnflow.rpc.acceptor import Acceptor
from yarnflow.rpc.admission import Admission
from yarnflow.rpc.auth import Refused, ServerHandshake, refusal
from yarnflow.rpc.listen import bind
from yarnflow.rpc.member import Member, numeric
from yarnflow.rpc.methods import DISPATCHER, BoundMethod, Service
from yarnflow.rpc.pool import DaemonPool
from yarnflow.rpc.rare_warning import RareWarning

_LOG: Final = logging.getLogger(__name__)
#: how long a refused peer may go on sending before the connection is cut, seconds
_LINGER_S: Final = 1.0
_VOID: Final = b"\x00"
#: generated code has no types
_TError: Final[Any] = errors_ttypes.TError


class RpcServer:
    """Serves gateways to authenticated peers.

    Parameters
    ----------
    host : str
        Address to bind to; empty = every interface.
    port_range : str
        ``"0"``, ``"6123"`` or ``"50100-50200"``.
    services : mapping of str to Service
        By name.
    member : Member
        This process.
    fence : callable
        Whom this process takes for leader now; called on the I/O thread for every call.
    on_disconnect : callable, optional
        Told the identity of a peer when its last connection closed.  Runs on the I/O thread:
        it must only post to a mailbox.
    max_frame_bytes : int
        Longest message, both ways (``rpc.framesize``).
    handler_threads, long_poll_threads : int
        Most calls that run at the same time; long polls have their own threads.
    handshake_timeout_ms : int
        A peer that has not authenticated by then is cut off.
    translated_addresses : iterable of str
        ``host:port`` by which clients may have come here from another address of theirs.
    now_s : callable
        Clock that never goes back, by which a peer has had time to authenticate.
    """

    def __init__(
        self,
        host: str,
        port_range: str,
        services: Mapping[str, Service],
        member: Member,
        fence: Callable[[], Fence],
        on_disconnect: Callable[[str], None] | None = None,
        max_frame_bytes: int = framing.DEFAULT_MAX_FRAME_BYTES,
        handler_threads: int = 16,
        long_poll_threads: int = 256,
        handshake_timeout_ms: int = 10_000,
        translated_addresses: Iterable[str] = (),
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        framing.require_fastbinary()
        self._host = host
        self._port_range = port_range
        self.member = member
        self.translated_addresses = frozenset(address.lower() for address in translated_addresses)
        self._fence = fence
        self._on_disconnect = on_disconnect
        self.max_frame_bytes = max_frame_bytes
        self.handshake_timeout_ms = handshake_timeout_ms
        self.serve(services)
        self._pool = DaemonPool("rpc-handler", handler_threads)
        self._long_polls = DaemonPool("rpc-long-poll", long_poll_threads)
        self._connections: set[_Connection] = set()
        self._now_s = now_s
        self._admission = Admission[_Connection]()
        self._cut_off_warning = RareWarning(_LOG)
        self._identities: Counter[str] = Counter()
        self._port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Port that is listened on; 0 before :meth:`start`."""
        return self._port

    def serve(self, services: Mapping[str, Service]) -> None:
        """Answer calls with these from now on; calls under way end as they began.  Any thread."""
        self._methods = {
            bound.spec.call_name: bound for service in services.values() for bound in service.methods
        }

    def start(self) -> None:
        """Bind and serve; returns when connections are accepted.

        Raises
        ------
        PortUnavailable
            No port of the range is free.
        """
        if self._loop is not None:
            raise InternalError("RpcServer.start was called twice")
        listener = bind(self._host, self._port_range)
        self._port = listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._serve, args=(self._loop, listener, ready), name=f"rpc-io-{self._port}", daemon=True
        )
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """Close the port and every connection.  Idempotent; handlers that run are not waited for."""
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        self._thread = None
        self._pool.stop()
        self._long_polls.stop()
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join()

    def _serve(
        self, loop: asyncio.AbstractEventLoop, listener: socket.socket, ready: threading.Event
    ) -> None:
        asyncio.set_event_loop(loop)
        acceptor = Acceptor(loop, listener, lambda: _Connection(self, loop), self._cut_off_one)
        loop.call_soon(acceptor.start)
        loop.call_soon(ready.set)
        try:
            loop.run_forever()
        finally:
            self._on_disconnect = None
            loop.run_until_complete(acceptor.close())
            for connection in list(self._connections):
                connection.abort()
            # one turn for connection_lost of what was aborted
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    # --- for connections, on the I/O thread ---------------------------------

    def opened(self, connection: _Connection) -> None:
        """A connection was accepted."""
        self._connections.add(connection)
        for late in self._admission.came(connection, connection.host, self._now_s()):
            self._cut_off(late)

    def _cut_off_one(self) -> None:
        if (connection := self._admission.drop()) is not None:
            self._cut_off(connection)

    def _cut_off(self, connection: _Connection) -> None:
        """One that has not authenticated makes room for another."""
        self._cut_off_warning.warn(
            "%s has too many connections that do not authenticate; the oldest ones are cut off",
            connection.host,
        )
        connection.abort()

    def authenticated(self, connection: _Connection, identity: str) -> None:
        """A peer proved that it knows the secret."""
        self._admission.left(connection, connection.host)
        if identity:
            self._identities[identity] += 1

    def closed(self, connection: _Connection, identity: str) -> None:
        """A connection is gone; ``identity`` is empty if its peer had none."""
        self._connections.discard(connection)
        self._admission.left(connection, connection.host)
        if not identity:
            return
        self._identities[identity] -= 1
        if self._identities[identity] > 0:
            return
        del self._identities[identity]
        if self._on_disconnect is not None:
            try:
                self._on_disconnect(identity)
            except Exception:
                _LOG.exception("on_disconnect(%s) failed", identity)

    def handle(self, connection: _Connection, message: bytes) -> None:
        """Take one message of an authenticated peer.

        Raises
        ------
        RpcProtocolError
            It is not a call; the connection must be closed.
        """
        header = framing.read_header(message)
        if header.kind != framing.CALL:
            raise RpcProtocolError(f"a message of kind {header.kind} where a call was expected")
        bound = self._methods.get(header.name)
        if bound is None:
            connection.send(framing.unknown_method(header.name, header.sequence))
            return
        args = framing.decode(bound.spec.args_class, message, header.offset)
        context = args.context
        if context is None or context.fence is None:
            raise RpcProtocolError(f"a call of {header.name} without context")
        stale = self._stale(bound.spec.service, context.fence)
        if stale is not None:
            connection.send(_failure(bound, header.sequence, stale))
        elif bound.quick:
            connection.send(self._call(bound, args, header.sequence))
        else:
            self._call_later(connection, bound, args, header.sequence)

    def _stale(self, service: str, claimed: Any) -> StaleEpoch | None:
        if service == DISPATCHER.name and claimed.epoch == 0:
            return None
        mine = self._fence()
        if claimed.epoch == mine.epoch and claimed.leaderId == mine.leader_id and mine.epoch != 0:
            return None
        return StaleEpoch(
            f"the call takes {claimed.leaderId or 'nobody'} (epoch {claimed.epoch}) for leader, here it is "
            f"{mine.leader_id or 'nobody'} (epoch {mine.epoch}); look the leader up again"
        )

    def _call_later(self, connection: _Connection, bound: BoundMethod, args: Any, sequence: int) -> None:
        arrived = time.monotonic()
        connection.busy = True
        loop = self._loop
        assert loop is not None

        def task() -> None:
            waited_ms = (time.monotonic() - arrived) * 1000
            limit_ms = args.context.timeoutMs or 0
            if 0 < limit_ms <= waited_ms:
                late = RpcTimeout(
                    f"{bound.spec.call_name} waited {waited_ms:.0f} ms for a free thread, "
                    f"the caller's limit is {limit_ms} ms; try again later"
                )
                answer = _failure(bound, sequence, late)
            else:
                answer = self._call(bound, args, sequence)
            try:
                loop.call_soon_threadsafe(connection.answered, answer)
            except RuntimeError:
                pass  # the server was stopped meanwhile, nobody waits for the answer

        (self._long_polls if bound.spec.long_poll else self._pool).submit(task)

    def _call(self, bound: BoundMethod, args: Any, sequence: int) -> bytes:
        spec = bound.spec
        try:
            values = [
                _argument(spec.call_name, name, getattr(args, name), convert)
                for name, convert in zip(spec.arg_names, spec.args_from_thrift)
            ]
            with job_context(spec.job_of(values)):
                result = bound.handler(*values)
            if spec.returns_nothing:
                return framing.frame(framing.REPLY, spec.wire_name, sequence, _VOID)
            convert = spec.result_to_thrift
            body = framing.encode(spec.result_class(success=result if convert is None else convert(result)))
            if len(body) > self.max_frame_bytes - 1024:
                raise RpcProtocolError(
                    f"the answer of {spec.call_name} has {len(body)} bytes, more than rpc.framesize "
                    f"({self.max_frame_bytes} bytes); raise the option on both sides"
                )
            return framing.frame(framing.REPLY, spec.wire_name, sequence, body)
        except YarnflowError as error:
            return _failure(bound, sequence, error)
        except Exception as exc:
            request = args.context.requestId
            _LOG.exception("call %s of %s failed", request, spec.call_name)
            text = " ".join(str(exc).split())[:500]
            return _failure(
                bound,
                sequence,
                InternalError(
                    f"{spec.call_name} failed: {type(exc).__name__}: {text}; "
                    f"see the log of the process at port {self._port}, request {request}"
                ),
            )


def _argument(call: str, name: str, raw: Any, convert: Callable[[Any], Any] | None) -> Any:
    if raw is None:
        raise RpcProtocolError(
            f"{call}: argument {name} is missing; check that both processes are of the same yarnflow version"
        )
    return raw if convert is None else convert(raw)


def _failure(bound: BoundMethod, sequence: int, error: YarnflowError) -> bytes:
    details = error.traceback_text if isinstance(error, (UserCodeError, ProgramFailed)) else ""
    # what cannot be encoded (half surrogates of a file name) must not hide the error itself
    clean = [text.encode("utf-8", "replace").decode() for text in (error.code, error.message, details)]
    body = framing.encode(bound.spec.result_class(error=_TError(*clean)))
    return framing.frame(framing.REPLY, bound.spec.wire_name, sequence, body)


class _Connection(asyncio.Protocol):
    """One peer.  Every method runs on the I/O thread."""

    def __init__(self, server: RpcServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._handshake: ServerHandshake | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._buffer = bytearray()
        self._identity = ""
        #: the peer's address without port
        self.host = ""
        self._peer = "?"
        #: a handler thread works on a call; what else came waits
        self.busy = False
        self._refused = False
        self._full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address = transport.get_extra_info("peername")
        if address:
            self.host, self._peer = str(address[0]), f"{address[0]}:{address[1]}"
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._handshake = ServerHandshake(
            self._server.member,
            numeric(connection.getsockname()),
            self._peer,
            self._server.translated_addresses,
        )
        self._timer = self._loop.call_later(self._server.handshake_timeout_ms / 1000, self._silent)
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._buffer and not self._refused:
            _LOG.warning("%s closed the connection in the middle of a message", self._peer)
        self._transport = None
        self._server.closed(self, self._identity)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._handshake is not None:
            self._authenticate(data)
            return
        self._buffer += data
        self._pump()

    def pause_writing(self) -> None:
        # a peer that does not read its answers gets no more of them
        self._full = True
        self._hold()

    def resume_writing(self) -> None:
        self._full = False
        self._pump()

    def answered(self, answer: bytes) -> None:
        """A handler thread is done with this connection's call."""
        self.busy = False
        self.send(answer)
        self._pump()

    def send(self, data: bytes) -> None:
        """Write, unless the peer is gone."""
        if self._transport is not None:
            self._transport.write(data)

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _authenticate(self, data: bytes) -> None:
        handshake = self._handshake
        assert handshake is not None
        try:
            reply = handshake.feed(data)
        except Refused as refused:
            self._refuse(refused.error.message, refused.reply)
            return
        if reply:
            self.send(reply)
        if handshake.done:
            self._handshake = None
            if self._timer is not None:
                self._timer.cancel()
            self._identity = handshake.identity
            if self._identity:
                self._peer = f"{self._peer} ({self._identity!r})"
            self._server.authenticated(self, self._identity)
            self._buffer += handshake.rest()
            self._pump()

    def _pump(self) -> None:
        buffer = self._buffer
        while not (self.busy or self._full or self._refused) and len(buffer) >= framing.LENGTH_BYTES:
            length = int.from_bytes(buffer[: framing.LENGTH_BYTES], "big")
            if length > self._server.max_frame_bytes:
                self._malformed(
                    f"a message of {length} bytes, more than rpc.framesize "
                    f"({self._server.max_frame_bytes} bytes)"
                )
                return
            end = framing.LENGTH_BYTES + length
            if len(buffer) < end:
                break
            message = bytes(buffer[framing.LENGTH_BYTES : end])
            del buffer[:end]
            try:
                self._server.handle(self, message)
            except RpcProtocolError as error:
                self._malformed(error.message)
                return
            except Exception:
                _LOG.exception("message from %s", self._peer)
                self._malformed("a message this process failed on")
                return
        self._hold()

    def _hold(self) -> None:
        """Read on only while what came can be worked on."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        waiting = (self.busy or self._full) and len(self._buffer) > 0
        if waiting:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _silent(self) -> None:
        waited_ms = self._server.handshake_timeout_ms
        self._refuse(
            f"{self._peer} did not authenticate within {waited_ms} ms",
            refusal(RpcTimeout(f"no handshake within {waited_ms} ms")),
        )

    def _malformed(self, what: str) -> None:
        self._refuse(f"closing the connection of {self._peer}: {what}", b"")

    def _refuse(self, reason: str, reply: bytes) -> None:
        _LOG.warning("%s", reason)
        self._refused = True
        self._buffer.clear()
        transport = self._transport
        if transport is None:
            return
        if not reply:
            transport.abort()
            return
        transport.write(reply)
        # closing with unread input would reset the connection and lose the reply on its way
        transport.write_eof()
        transport.resume_reading()
        self._loop.call_later(_LINGER_S, self.abort)
