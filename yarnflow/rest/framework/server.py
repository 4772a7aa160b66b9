"""HTTP on one port: uvicorn in a thread, with bounds on everything a client can send or hold.

Flink counterpart: the Netty half of ``RestServerEndpoint``.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
import threading
from typing import Final

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from yarnflow.rest.access.hosts import AllowedHosts, NameKind
from yarnflow.rest.framework.authentication import BY_PROXY, NAME_KIND, WARNING
from yarnflow.rest.framework.errors import JSON, MAX_SHOWN_CHARACTERS, RestError, error_body

logger: Final = logging.getLogger(__name__)

#: a connection without a (whole) request for so long is closed
IDLE_TIMEOUT_S: Final = 15.0
#: a client that takes nothing of an answer for so long is given up
SEND_TIMEOUT_S: Final = 30.0
#: further ones are closed at once
MAX_CONNECTIONS: Final = 1024
#: of request line and headers
MAX_HEAD_BYTES: Final = 16 * 1024
_STOP_TIMEOUT_S: Final = 1

#: only what this server sends itself may run, and it may talk to nobody else
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
)
#: Flink's prefixes of versions
_VERSION_PREFIXES: Final = ("/v1",)


class WebServer:
    """Serves an ASGI application.

    Parameters
    ----------
    listener : socket.socket
        Bound and listening; closed with the server.
    application : ASGIApp
    hosts : AllowedHosts
    proxy_path : str
        See :class:`Guarded`.
    """

    def __init__(
        self, listener: socket.socket, application: ASGIApp, hosts: AllowedHosts, proxy_path: str = ""
    ) -> None:
        self._listener = listener
        self._server = _Server(
            uvicorn.Config(
                Guarded(application, hosts, proxy_path),
                loop="asyncio",
                http=_Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=int(IDLE_TIMEOUT_S),
                timeout_graceful_shutdown=_STOP_TIMEOUT_S,
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            )
        )
        # what goes wrong is logged here
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._thread = threading.Thread(target=self._run, name="rest", daemon=True)

    @property
    def port(self) -> int:
        """Port that is listened on."""
        return int(self._listener.getsockname()[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port; answers under way have a second."""
        self._server.should_exit = True
        self._thread.join(2 * _STOP_TIMEOUT_S)
        self._listener.close()

    def _run(self) -> None:
        try:
            self._server.run([self._listener])
        except Exception:
            logger.exception("the REST interface has ended")


class Guarded:
    """What holds for every request, whoever answers it: by which name it may come, its path, the headers.

    No error is bare, either.

    Parameters
    ----------
    application : ASGIApp
    hosts : AllowedHosts
        Names that a request may have asked for, unless it comes through YARN's proxy, which tells its own.
    proxy_path : str
        First word of the paths that YARN's proxy asks for; empty = none does.
    """

    def __init__(self, application: ASGIApp, hosts: AllowedHosts, proxy_path: str = "") -> None:
        self._application = application
        self._hosts = hosts
        self._proxy_path = proxy_path.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        self._take_proxy_path(scope)
        scope["path"] = _plain_path(scope["path"])
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                given = {name.lower() for name, _ in message["headers"]}
                warning = [(b"warning", scope[WARNING].encode())] if WARNING in scope else []
                message["headers"] = [
                    *message["headers"], *(pair for pair in (*_HEADERS, *warning) if pair[0] not in given)
                ]  # fmt: skip
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await send(message)

        try:
            refusal = await self._refusal(scope)
            if refusal is None:
                await self._application(scope, receive, guarded)
            else:
                await _send_error(guarded, refusal)
        except Exception as error:
            if _is_clients(error):
                logger.debug("client %s went away or takes nothing: %s", scope.get("client"), error)
                raise _Gone from None
            logger.exception("request %s %s", scope["method"], scope["path"])
            if begun:
                raise _Gone from None
            await _send_error(guarded, RestError(500, "Internal server error; see the JobManager's log."))

    async def _refusal(self, scope: Scope) -> RestError | None:
        """Return why a request is not looked at."""
        if _head_bytes(scope) > MAX_HEAD_BYTES:
            return RestError(431, f"the head is longer than {MAX_HEAD_BYTES} bytes")
        if scope.get(BY_PROXY):
            return None
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
        scope[NAME_KIND] = await self._hosts.kind(host)
        if scope[NAME_KIND] is not NameKind.FOREIGN:
            return None
        return RestError(
            421,
            f"this interface does not answer to the host {host[:MAX_SHOWN_CHARACTERS]!r}: use its address or "
            "name, or add the host to the option rest.allowed-hosts of the cluster",
        )

    def _take_proxy_path(self, scope: Scope) -> None:
        """Mark a request that came through YARN's proxy, and go on as if its path had no such word."""
        first, _, rest = scope["path"].lstrip("/").partition("/")
        if self._proxy_path and hmac.compare_digest(first.encode("utf-8", "replace"), self._proxy_path):
            scope["path"] = f"/{rest}"
            _, _, raw = (scope.get("raw_path") or b"").lstrip(b"/").partition(b"/")
            scope["raw_path"] = b"/" + raw
            scope[BY_PROXY] = True


def _is_clients(error: BaseException) -> bool:
    """Whether only the client is to blame; streams are sent by groups of tasks, which group their errors."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_clients(each) for each in error.exceptions)
    return isinstance(error, (TimeoutError, ClientDisconnect))


class _Gone(Exception):
    """The connection is of no use any more; it is closed."""


async def _send_error(send: Send, error: RestError) -> None:
    body = error_body(error.message)
    headers = [(b"content-type", JSON.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _head_bytes(scope: Scope) -> int:
    """Of what arrived at once: of what arrives in parts no more is kept."""
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    return headers + len(scope.get("raw_path") or b"") + len(scope["query_string"])


def _plain_path(path: str) -> str:
    """Without a version, and without the slashes that proxies double or add."""
    plain = "/" + path.strip("/")
    for prefix in _VERSION_PREFIXES:
        if plain == prefix or plain.startswith(prefix + "/"):
            return "/" + plain.removeprefix(prefix).strip("/")
    return plain


class _Server(uvicorn.Server):
    """Without a look ten times a second whether it is to end."""

    async def main_loop(self) -> None:
        ticks = 0
        while not self.should_exit:
            # also renews the date in the headers
            await self.on_tick(ticks)
            ticks += 10
            await asyncio.sleep(0.25)


class _Protocol(H11Protocol):
    """One connection, which may not be held without a use."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse one too many; give the others a time for their request."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        # asyncio does so for sockets that say which protocol they have, and accepted ones do not: the second
        # part of an answer would wait 40 ms until the client has acknowledged the first
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head_timer = self.loop.call_later(IDLE_TIMEOUT_S, self._no_request)

    def data_received(self, data: bytes) -> None:
        """The time counts from the first byte of each request until all of its head is there."""
        if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._head_timer = self.loop.call_later(IDLE_TIMEOUT_S, self._no_request)
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What is not even a request is answered in JSON too."""
        body = error_body(f"Bad request: {msg}")
        head = (
            f"HTTP/1.1 400 Bad Request\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _no_request(self) -> None:
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
