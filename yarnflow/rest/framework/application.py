"""From the table of routes to an ASGI application: who is asking, are the parameters good, what is answered.

Flink counterparts: ``AbstractHandler``, ``RestServerEndpoint``.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as Mounted
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from yarnflow.errors import YarnflowError
from yarnflow.rest.framework.authentication import Checks
from yarnflow.rest.framework.errors import JSON, RestError, about_to_end, error_body, of_yarnflow
from yarnflow.rest.framework.parameters import MAX_CHARACTERS, Parameter
from yarnflow.rest.framework.route import Call, EventStream, Route, TextFile
from yarnflow.rest.framework.uploads import ReceivedFile, Uploads

logger: Final = logging.getLogger(__name__)

#: a body that comes slower than one piece in this time is given up
BODY_TIMEOUT_S: Final = 15.0
#: requests that wait for a thread; further ones are told to come again
MAX_WAITING: Final = 128
#: requests that may take minutes, at the same time
MAX_LONG: Final = 2
#: clients of event streams at the same time
MAX_STREAMS: Final = 64
_EVENTS: Final = "text/event-stream; charset=UTF-8"
#: of a length
_MAX_DIGITS: Final = 18
_BUSY: Final = "the JobManager has too many requests to answer; try again"


@dataclass(slots=True)
class _Threads:
    """Threads of one kind of requests."""

    pool: ThreadPoolExecutor
    most: int
    #: with those that wait for a thread; only changed in the event loop's thread
    under_way: int = 0

    @classmethod
    def create(cls, most: int, name: str) -> _Threads:
        """None of them has been started."""
        return cls(ThreadPoolExecutor(most, name), most)


class HandlerPool:
    """The threads in which handlers run, bounded: of each kind of requests there are some.

    Parameters
    ----------
    threads : int
        Of each kind but the long one.  Flink: ``rest.server.numThreads``.
    """

    def __init__(self, threads: int) -> None:
        self._own = _Threads.create(threads, "rest-handler")
        self._remote = _Threads.create(threads, "rest-remote")
        self._long = _Threads.create(MAX_LONG, "rest-long")
        #: only changed in the event loop's thread
        self.streams = 0
        self._closed = False

    @property
    def under_way(self) -> int:
        """Requests that ask nobody else, with those that wait for a thread."""
        return self._own.under_way

    async def run(self, route: Route, work: Callable[[], Any]) -> Any:
        """The result of ``work``; raises RestError when too many wait."""
        if route.long:
            # nothing of it waits for a thread
            refusal = f"{MAX_LONG} programs are run or planned already; try again"
            return await self._run(self._long, 0, refusal, work)
        if route.remote:
            refusal = "too many requests wait for TaskManagers or drivers already; try again"
            return await self._run(self._remote, MAX_WAITING, refusal, work)
        return await self._run(self._own, MAX_WAITING, _BUSY, work)

    async def _run(self, threads: _Threads, waiting: int, refusal: str, work: Callable[[], Any]) -> Any:
        if threads.under_way >= threads.most + waiting:
            raise RestError(503, refusal)
        threads.under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads.pool, work)
        except RuntimeError:
            if self._closed:
                raise about_to_end() from None
            raise
        finally:
            threads.under_way -= 1

    def close(self) -> None:
        """Take no more work."""
        self._closed = True
        for threads in (self._own, self._remote, self._long):
            threads.pool.shutdown(wait=False, cancel_futures=True)


class Application:
    """Answers requests by the handlers of a table; an ASGI application.

    Parameters
    ----------
    routes : sequence of Route
    context : object
        Passed to every handler.
    authentication : Checks
    pool : HandlerPool
    uploads : Uploads, optional
        Receives files; None = no route takes any.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        context: Any,
        authentication: Checks,
        pool: HandlerPool,
        uploads: Uploads | None = None,
    ) -> None:
        self._context = context
        self._authentication = authentication
        self._pool = pool
        self._uploads = uploads
        by_path: dict[str, dict[str, Route]] = {}
        for route in routes:
            by_path.setdefault(route.template, {})[route.method] = route
        self._router = Router(
            # words before parameters, as Flink has it: /jobs/overview is no job
            [
                Mounted(path, self._endpoint(methods), methods=None)
                for path, methods in sorted(by_path.items(), key=lambda item: item[0].replace("{", "~"))
            ],
            redirect_slashes=False,
            default=_nothing_there,
        )
        # every method reaches the endpoint, which knows which there are
        for mounted in self._router.routes:
            if isinstance(mounted, Mounted):
                mounted.methods = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._router(scope, receive, send)

    def _endpoint(self, methods: Mapping[str, Route]) -> Callable[[Request], Any]:
        # who looks at the head of something changes nothing
        by_method = dict(methods)
        if "GET" in methods and not methods["GET"].writes:
            by_method["HEAD"] = methods["GET"]
        allowed = ", ".join(sorted(by_method))

        async def endpoint(request: Request) -> Response:
            route = by_method.get(request.method)
            if route is None:
                message = (
                    f"{request.method} is not supported for {request.scope['path'][:200]}; use {allowed}."
                )
                return error_response(RestError(405, message), {"Allow": allowed})
            try:
                return await self._answer(route, request)
            except RestError as error:
                return error_response(error, _advice(error))
            except YarnflowError as error:
                return error_response(of_yarnflow(error))

        return endpoint

    async def _answer(self, route: Route, request: Request) -> Response:
        if route.body is ReceivedFile:
            return await self._take_file(route, request)
        body = await _read_body(request, route.max_body_bytes)
        may_read = self._authentication.check(request, route, body)
        values = _values(route, request.path_params, request.query_params)
        call = Call(values, dict(request.headers), may_read)
        arguments = [self._context, call]
        if route.body is not None:
            arguments.append(_decoded(body, route.body))
        work = functools.partial(self._work, route, arguments)
        if route.quick:
            answer = work()
        else:
            answer = await self._pool.run(route, work)
        if isinstance(answer, EventStream):
            return await self._stream(answer, request.method)
        return answer if isinstance(answer, Response) else _response(answer, route.status, request.headers)

    async def _take_file(self, route: Route, request: Request) -> Response:
        # before anything of the body is read
        may_read = self._authentication.check(request, route)
        values = _values(route, request.path_params, request.query_params)
        call = Call(values, dict(request.headers), may_read)
        if self._uploads is None:
            # the handler knows why
            work = functools.partial(self._work, route, [self._context, call, None])
            return _response(await self._pool.run(route, work), route.status, request.headers)

        async def use(file: ReceivedFile) -> Any:
            work = functools.partial(self._work, route, [self._context, call, file])
            return await self._pool.run(route, work)

        return _response(await self._uploads.receive(request, use), route.status, request.headers)

    @staticmethod
    def _work(route: Route, arguments: Sequence[Any]) -> Any:
        """In a thread of the pool: what is answered, as bytes already where it is JSON."""
        answer = route.handler(*arguments)
        if isinstance(answer, (EventStream, TextFile, Response)):
            return answer
        return encoded(answer)

    async def _stream(self, answer: EventStream, method: str) -> Response:
        if method == "HEAD":
            await answer.events.aclose()
            return Response(media_type=_EVENTS)
        if self._pool.streams >= MAX_STREAMS:
            raise RestError(503, f"{MAX_STREAMS} clients follow events already; try again later")

        async def counted() -> Any:
            self._pool.streams += 1
            try:
                async for event in answer.events:
                    yield event
            finally:
                self._pool.streams -= 1

        return StreamingResponse(counted(), media_type=_EVENTS)


def encoded(answer: Any) -> bytes:
    """An answer as JSON."""
    try:
        return msgspec.json.encode(answer)
    except UnicodeEncodeError:
        # half surrogates, which file names may hold
        return json.dumps(msgspec.to_builtins(answer), separators=(",", ":")).encode()


def error_response(error: RestError, headers: Mapping[str, str] | None = None) -> Response:
    """An error in Flink's shape."""
    messages = [text for text in (error.message, error.details) if text]
    return Response(error_body(*messages), error.status, dict(headers or {}), JSON)


def _advice(error: RestError) -> dict[str, str]:
    if error.status == 401:
        return {"WWW-Authenticate": 'Bearer realm="yarnflow"'}
    return {"Retry-After": "1"} if error.status == 503 else {}


def _response(answer: bytes | TextFile, status: int, headers: Headers) -> Response:
    if isinstance(answer, bytes):
        return Response(answer, status, media_type=JSON)
    if answer.part is None:
        made = Response(answer.content, status, media_type=answer.media_type)
    else:
        first, total = answer.part
        made = Response(answer.content, 206, media_type=answer.media_type)
        made.headers["Content-Range"] = f"bytes {first}-{first + len(answer.content) - 1}/{total}"
    made.headers["Accept-Ranges"] = "bytes"
    return made


async def _nothing_there(scope: Scope, receive: Receive, send: Send) -> None:
    # Flink's words
    error = RestError(404, f"Unable to load requested file {scope['path'][:200]}.")
    await error_response(error)(scope, receive, send)


async def _read_body(request: Request, most: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    is_number = declared.isascii() and declared.isdecimal() and len(declared) <= _MAX_DIGITS
    if not is_number or int(declared) > most:
        raise RestError(413, f"the body is longer than {most} bytes")
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise RestError(413, f"the body is longer than {most} bytes")
                parts.append(part)
    except TimeoutError:
        raise RestError(408, "the body did not come in time") from None
    except ClientDisconnect:
        raise RestError(400, "the body did not come as a whole") from None
    return b"".join(parts)


def _decoded(body: bytes, expected: Any) -> Any:
    try:
        return msgspec.json.decode(body or b"{}", type=expected)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RestError(
            400, f"Bad request received. The body is not what is expected here: {error}"
        ) from None


def _values(route: Route, path: Mapping[str, str], query: QueryParams) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for parameter in route.path_parameters:
        values[parameter.name] = _parsed(parameter, path[parameter.name], "path")
    for parameter in route.query_parameters:
        given = query.getlist(parameter.name)
        if not given or (given == [""] and not parameter.is_list):
            values[parameter.name] = parameter.default
        else:
            joined = ",".join(given) if parameter.is_list else given[-1]
            values[parameter.name] = _parsed(parameter, joined, "query")
    return values


def _parsed(parameter: Parameter[Any], text: str, place: str) -> Any:
    try:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"at most {MAX_CHARACTERS} characters")
        return parameter.parse(text)
    except ValueError as error:
        # Flink's words, and what is expected
        raise RestError(
            400,
            f"Bad request, could not parse parameters: Cannot resolve {place} parameter ({parameter.name}) "
            f'from value "{text[:80]}"; expected {error}.',
        ) from None
