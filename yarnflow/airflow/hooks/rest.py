"""Two clients of a cluster's REST interface: one for workers, and one for the triggerer, which may not block.

Each tries the addresses it knows one after the other: a master that stands by passes requests on to the
leader, one that is gone does not answer.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Self, TypeVar

import httpx

from yarnflow.airflow.hooks.errors import Refused, Unreachable
from yarnflow.airflow.hooks.questions import Ask

T = TypeVar("T")

#: of one request; the stream of events sends something every 15 s
_CONNECT_S: Final = 5.0
_ANSWER_S: Final = 30.0
#: addresses of YARN's web proxy, which passes on no header and no method but GET and PUT
_PROXY: Final = "/proxy/application_"


@dataclass(frozen=True, slots=True)
class Access:
    """Where a cluster's REST interface is, and what it wants to see."""

    #: base URLs
    addresses: tuple[str, ...]
    #: empty = none is needed
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    name: str
    data: Any
    #: sent back as ``Last-Event-ID`` it goes on behind this one
    event_id: str


class EventParser:
    """Makes events of the lines of a stream."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> Event | None:
        """Take a line without its end; the event that it completes, if it does."""
        if line:
            name, _, value = line.partition(":")
            if name:
                # a line that begins with a colon says only that the other side lives
                self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        return Event(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id", ""))


class _Addresses:
    """Known addresses; the one that answered last comes first."""

    def __init__(self, access: Access) -> None:
        self._token = access.token
        self._known = list(access.addresses)

    def __iter__(self) -> Any:
        return iter(tuple(self._known))

    def answered(self, address: str) -> None:
        self._known.remove(address)
        self._known.insert(0, address)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def request(self, address: str, ask: Ask[T]) -> dict[str, Any]:
        """A request as httpx takes it; through YARN's proxy in the only form that gets through."""
        method, path, body = ask.method, ask.path, ask.body
        if ask.put_path and _PROXY in address:
            method, path, body = "PUT", ask.put_path, {**(body or {}), "token": self._token}
        return {"method": method, "url": f"{address}{path}", "json": body, "headers": self.headers()}

    def nobody(self, errors: Sequence[str]) -> Unreachable:
        return Unreachable(f"no REST interface answers: {'; '.join(errors) or 'no address is known'}")


class RestClient:
    """For workers: waits for each answer.

    Parameters
    ----------
    transport : BaseTransport, optional
        In place of the network.
    """

    def __init__(
        self, access: Access, *, timeout_s: float = _ANSWER_S, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._addresses = _Addresses(access)
        self._client = httpx.Client(
            timeout=_timeout(timeout_s), transport=transport, verify=_certificates()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, ask: Ask[T]) -> T:
        """Send a request to the first address that answers.

        Raises
        ------
        Unreachable
            None does.
        Refused
            It answers with an error.
        """
        errors: list[str] = []
        for address in self._addresses:
            try:
                response = self._client.request(**self._addresses.request(address, ask))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                errors.append(_said(address, error))
                continue
            if _is_elsewhere(response, errors, address):
                continue
            self._addresses.answered(address)
            return ask.parse(_content(response))
        raise self._addresses.nobody(errors)


class AsyncRestClient:
    """For the triggerer: the same without blocking, and the events of a job."""

    def __init__(
        self,
        access: Access,
        *,
        timeout_s: float = _ANSWER_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._addresses = _Addresses(access)
        self._client = httpx.AsyncClient(
            timeout=_timeout(timeout_s), transport=transport, verify=_certificates()
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def ask(self, ask: Ask[T]) -> T:
        """As :meth:`RestClient.ask`."""
        errors: list[str] = []
        for address in self._addresses:
            try:
                response = await self._client.request(**self._addresses.request(address, ask))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                errors.append(_said(address, error))
                continue
            if _is_elsewhere(response, errors, address):
                continue
            self._addresses.answered(address)
            return ask.parse(_content(response))
        raise self._addresses.nobody(errors)

    @asynccontextmanager
    async def events(self, job_id: str, last_event_id: str = "") -> AsyncIterator[AsyncIterator[Event]]:
        """The events of a job behind one that was seen; they end with the job, or with the connection.

        Raises
        ------
        Unreachable, Refused
            As :meth:`ask`; also while the events are read.
        """
        errors: list[str] = []
        for address in self._addresses:
            headers = {**self._addresses.headers(), "Accept": "text/event-stream"}
            if last_event_id:
                headers["Last-Event-ID"] = last_event_id
            try:
                url = f"{address}/jobs/{job_id}/events"
                request = self._client.build_request("GET", url, headers=headers)
                response = await self._client.send(request, stream=True)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                errors.append(_said(address, error))
                continue
            try:
                if response.status_code != httpx.codes.OK:
                    try:
                        await response.aread()
                    except httpx.HTTPError as error:
                        errors.append(_said(address, error))
                        continue
                    if _is_elsewhere(response, errors, address):
                        continue
                    _content(response)
                self._addresses.answered(address)
                async with aclosing(_events(response, address)) as events:
                    yield events
                return
            finally:
                await response.aclose()
        raise self._addresses.nobody(errors)


async def _events(response: httpx.Response, address: str) -> AsyncGenerator[Event, None]:
    parser = EventParser()
    try:
        async with aclosing(response.aiter_lines()) as lines:
            async for line in lines:
                event = parser.feed(line)
                if event is not None:
                    yield event
    except (httpx.HTTPError, ValueError) as error:
        raise Unreachable(_said(address, error)) from None


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Read once: it takes 20 ms, in which no other trigger does anything."""
    context: ssl.SSLContext = httpx.create_ssl_context()
    return context


def _timeout(answer_s: float) -> httpx.Timeout:
    return httpx.Timeout(answer_s, connect=_CONNECT_S)


def _said(address: str, error: Exception) -> str:
    return f"{address}: {' '.join(str(error).split()) or type(error).__name__}"


def _is_elsewhere(response: httpx.Response, errors: list[str], address: str) -> bool:
    """Whether this master knows no leader now: another address may."""
    if response.status_code not in (502, 503, 504):
        return False
    errors.append(f"{address}: {_error_text(response)}")
    return True


def _content(response: httpx.Response) -> Any:
    """What an answer holds.

    Raises
    ------
    Refused
        It is an error.
    """
    if response.is_success:
        try:
            return response.json() if response.content else {}
        except ValueError:
            raise Refused(response.status_code, f"{response.url} answers with no JSON") from None
    raise Refused(response.status_code, _error_text(response))


def _error_text(response: httpx.Response) -> str:
    try:
        text = "; ".join(str(line).splitlines()[0] for line in response.json()["errors"] if line)
    except (ValueError, KeyError, TypeError):
        text = ""
    url = response.url.copy_with(query=None)
    return f"{url} answers {response.status_code}{f': {text}' if text else ''}"
