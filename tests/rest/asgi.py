"""Requests to an ASGI application, without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message


@dataclass
class Answer:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        assert self.headers["content-type"].startswith("application/json"), self.headers
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The one error."""
        (only,) = self.json["errors"]
        return str(only)


def ask(
    app: ASGIApp,
    method: str,
    target: str,
    body: bytes | Mapping[str, Any] = b"",
    headers: Mapping[str, str] | None = None,
    client: str = "10.0.0.9",
) -> Answer:
    """One request; ``body`` may be what becomes JSON."""
    return asyncio.run(ask_async(app, method, target, body, headers, client))


async def ask_async(
    app: ASGIApp,
    method: str,
    target: str,
    body: bytes | Mapping[str, Any] = b"",
    headers: Mapping[str, str] | None = None,
    client: str = "10.0.0.9",
) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    path, _, query = target.partition("?")
    given = {"host": "jm:8081", "content-length": str(len(content)), **(headers or {})}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        "client": (client, 1), "server": ("jm", 8081),
    }  # fmt: skip
    answer = Answer()
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()
        sent = True
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    await app(scope, receive, send)
    return answer
