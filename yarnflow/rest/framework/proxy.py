"""A standby's REST interface: every request is passed on to the leader, with the same answer.

Nothing of a request is kept, and answers pass as they come, so that event streams do too.  Flink counterpart:
the gateway of ``LeaderRetrievalHandler``, by which a standby's handlers ask the leader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import h11
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from yarnflow.rest.framework.application import MAX_STREAMS, error_response
from yarnflow.rest.framework.authentication import FORWARDED_HEADER, Authentication
from yarnflow.rest.framework.errors import RestError

logger: Final = logging.getLogger(__name__)

_CONNECT_TIMEOUT_S: Final = 5.0
#: without a byte of the answer
_ANSWER_TIMEOUT_S: Final = 60.0
#: the same where a program is run; the leader gives up sooner
_PROGRAM_TIMEOUT_S: Final = 660.0
_OF_PROGRAMS: Final = ("/jars/",)
#: without a byte of the body
_BODY_TIMEOUT_S: Final = 15.0
#: requests that are passed on at the same time; the leader lets only some of them be event streams
MAX_FORWARDED: Final = MAX_STREAMS + 64
_BLOCK_BYTES: Final = 64 * 1024
#: between two hops only
_HOP_BY_HOP: Final = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer",
        b"transfer-encoding", b"upgrade", b"proxy-connection", b"expect",
    }
)  # fmt: skip


class LeaderProxy:
    """An ASGI application.

    Parameters
    ----------
    leader_url : callable
        ``http://host:port`` of the leader's REST interface; empty = no master leads, or it has none.
    authentication : Authentication
        Who comes through YARN's proxy to this master may read from the leader, too.
    """

    def __init__(self, leader_url: Callable[[], str], authentication: Authentication) -> None:
        self._leader_url = leader_url
        self._authentication = authentication
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        try:
            await self._pass_on(Request(scope, receive), send)
        except RestError as error:
            headers = {"Retry-After": "1"} if error.status == 503 else {}
            await error_response(error, headers)(scope, receive, send)

    async def _pass_on(self, request: Request, send: Send) -> None:
        url = urlsplit(self._leader_url())
        if not url.hostname or FORWARDED_HEADER in request.headers:
            raise RestError(503, "this master is a standby and no master leads at the moment; try again")
        if self._under_way >= MAX_FORWARDED:
            raise RestError(503, "this standby passes on too many requests already; try again")
        self._under_way += 1
        begun = asyncio.Event()
        try:
            async with _connected(url.hostname, url.port or 80) as (reader, writer):
                exchange = _Exchange(request, send, reader, writer, begun)
                await exchange.run(self._head(request, url.netloc))
        except (OSError, TimeoutError, h11.ProtocolError) as error:
            if begun.is_set():
                raise
            logger.info("The leader's REST interface at %s does not answer: %s", url.netloc, error)
            raise RestError(
                503, f"this master is a standby and the leader at {url.netloc} does not answer; try again"
            ) from None
        finally:
            self._under_way -= 1

    def _head(self, request: Request, leader: str) -> h11.Request:
        scope = request.scope
        target = scope.get("raw_path") or scope["path"].encode()
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        # the leader knows its own names, and not those of this master, which were checked here
        left_out = _HOP_BY_HOP | {b"host", b"origin"}
        headers = [(name, value) for name, value in scope["headers"] if name not in left_out]
        headers += [(b"connection", b"close"), (FORWARDED_HEADER.encode(), b"1"), (b"host", leader.encode())]
        # that of YARN's proxy is checked here, see there; the leader could only take it for another site's
        if (origin := request.headers.get("origin")) and not self._authentication.is_proxy(request):
            # a page of this master is as one of the leader's; another's stays what it is
            is_own = origin.partition("://")[2] == request.headers.get("host")
            headers.append((b"origin", f"http://{leader}".encode() if is_own else origin.encode("latin-1")))
        token = self._authentication.token_for(request)
        if token:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        if "transfer-encoding" in request.headers:
            headers.append((b"transfer-encoding", b"chunked"))
        if _has_body(request):
            # what the leader refuses by its head is answered; else the connection would break in the body
            headers.append((b"expect", b"100-continue"))
        return h11.Request(method=scope["method"], target=target, headers=headers)


class _Exchange:
    """One request with its answer, as long as the client is there.

    Parameters
    ----------
    request, send
        The client's.
    reader, writer
        The leader's.
    begun : asyncio.Event
        Set when the answer begins.
    """

    def __init__(
        self,
        request: Request,
        send: Send,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        begun: asyncio.Event,
    ) -> None:
        self._request = request
        self._send = send
        self._reader = reader
        self._writer = writer
        self._begun = begun
        self._connection = h11.Connection(h11.CLIENT)
        is_program = request.scope["path"].startswith(_OF_PROGRAMS)
        self._timeout_s = _PROGRAM_TIMEOUT_S if is_program else _ANSWER_TIMEOUT_S
        self._wants_body = asyncio.Event()

    async def run(self, head: h11.Request) -> None:
        """Return when the answer is passed on as a whole.

        Raises
        ------
        ClientDisconnect
            The client has gone: an event stream might have nothing to send for hours by which that is seen.
        RestError
            The body does not come.
        OSError, TimeoutError, h11.ProtocolError
            The leader does not answer.
        """
        await self._say(head)
        answer = asyncio.create_task(self._pass_answer())
        client = asyncio.create_task(self._follow_client())
        try:
            await asyncio.wait((answer, client), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                client.result()
            await answer
        finally:
            for task in (answer, client):
                task.cancel()
            await asyncio.gather(answer, client, return_exceptions=True)

    async def _pass_answer(self) -> None:
        while True:
            event = await _next_event(self._connection, self._reader, self._timeout_s)
            if isinstance(event, h11.InformationalResponse):
                self._wants_body.set()
            elif isinstance(event, h11.Response):
                self._begun.set()
                await self._send(_start(event))
            elif isinstance(event, h11.Data):
                await self._send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
            elif isinstance(event, h11.EndOfMessage):
                await self._send({"type": "http.response.body", "body": b""})
                return
            elif isinstance(event, h11.ConnectionClosed):
                raise OSError("the leader closed the connection")

    async def _follow_client(self) -> None:
        """Pass the body on, then wait until the client has gone."""
        if _has_body(self._request):
            await self._wants_body.wait()
        try:
            await self._pass_body()
        except TimeoutError:
            if self._begun.is_set():
                return
            raise RestError(408, "the body did not come in time") from None
        except OSError:
            return  # the leader wants no more of it, and its answer says why
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        raise ClientDisconnect

    async def _pass_body(self) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_BODY_TIMEOUT_S) as pause:
            async for part in self._request.stream():
                pause.reschedule(loop.time() + _BODY_TIMEOUT_S)
                if part:
                    await self._say(h11.Data(data=part))
        await self._say(h11.EndOfMessage())

    async def _say(self, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        self._writer.write(self._connection.send(event) or b"")
        await self._writer.drain()


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


@asynccontextmanager
async def _connected(
    host: str, port: int
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with asyncio.timeout(_CONNECT_TIMEOUT_S):
        reader, writer = await asyncio.open_connection(host, port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def _next_event(
    connection: h11.Connection, reader: asyncio.StreamReader, timeout_s: float
) -> Any:
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        async with asyncio.timeout(timeout_s):
            connection.receive_data(await reader.read(_BLOCK_BYTES))


def _start(response: h11.Response) -> dict[str, Any]:
    headers = [
        (name, value) for name, value in response.headers if name not in _HOP_BY_HOP and name != b"date"
    ]
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}
